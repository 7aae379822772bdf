//! Random numbers that can be repeated by their seed.

use tenure_core::{Clock, SystemClock};

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Seeded by [`Dice::seed`].
    pub fn for_test(name: &str) -> Self {
        Self(Self::seed(name))
    }

    /// `TENURE_TEST_SEED`, or a seed from the clock; printed, so that the run can be repeated.
    #[expect(clippy::print_stderr, reason = "the seed belongs to the output of a failed test")]
    pub fn seed(test: &str) -> u64 {
        let given = std::env::var("TENURE_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            u64::try_from(SystemClock.now().as_millis()).unwrap() ^ u64::from(std::process::id())
        });
        eprintln!("{test}: TENURE_TEST_SEED={seed}");
        seed
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// An index into a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}
