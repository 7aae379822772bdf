//! Chance that can be repeated.

use tenure_core::SystemClock;

/// Random numbers that a seed repeats (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

/// `TENURE_TEST_SEED`, or one from the clock; printed, so that the run can be repeated.
pub(crate) fn seed(of: &str) -> u64 {
    let given = std::env::var("TENURE_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| {
        u64::try_from(tenure_core::Clock::now(&SystemClock).as_millis()).unwrap()
            ^ u64::from(std::process::id())
    });
    eprintln!("{of}: TENURE_TEST_SEED={seed}");
    seed
}
