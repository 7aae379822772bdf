//! Applies random sequences of commands to the real kernel on a real store and to a naive model written from the
//! specification; after each command both must give the same answer and have the same state.

mod command;
mod naive;
mod naive_ends;
mod real;

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use tenure_testkit::Fixture;

use naive::Naive;
use real::Real;

/// The seed from the environment, to repeat a run, or a random one.
fn seed() -> u64 {
    let given = std::env::var("TENURE_TEST_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or_else(|| RandomState::new().build_hasher().finish())
}

#[test]
fn the_kernel_on_sqlite_agrees_with_the_naive_model() {
    compare(Fixture::sqlite(), 5_000, Duration::from_secs(30));
}

#[test]
fn the_kernel_on_postgresql_agrees_with_the_naive_model() {
    compare(Fixture::postgres(), 500, Duration::from_secs(15));
}

#[expect(clippy::panic, reason = "a failed comparison is a failed test")]
fn compare(fixture: Fixture, cases: u32, limit: Duration) {
    // The run is limited by time, so a busy machine runs fewer sequences; the seed still determines them.
    let (cases, limit) = if crate::full() { (10 * cases, Duration::from_hours(2)) } else { (cases, limit) };
    let seed = seed();
    println!("TENURE_TEST_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    let start = Instant::now();
    // One database for all sequences, because creating one takes longer than a sequence.
    let real = RefCell::new(Real::new(fixture));
    let (steps, sequences) = (Cell::new(0_usize), Cell::new(0_usize));
    let outcome = runner.run(&command::sequences(), |commands| {
        if start.elapsed() > limit {
            return Ok(());
        }
        sequences.set(sequences.get() + 1);
        let mut real = real.borrow_mut();
        let mut naive = Naive::new(real.reset());
        for (at, command) in commands.iter().enumerate() {
            steps.set(steps.get() + 1);
            let (theirs, ours) = (real.perform(command), naive.perform(command));
            if theirs != ours {
                let text =
                    format!("step {at}, {command:?}: the kernel answers {theirs:?}, the model {ours:?}");
                return Err(TestCaseError::fail(text));
            }
            let (theirs, ours) = (real.visible_state(), naive.visible_state());
            if theirs != ours {
                let text = format!("after step {at}, {command:?}:\n kernel {theirs:?}\n model  {ours:?}");
                return Err(TestCaseError::fail(text));
            }
        }
        real.check_feed();
        Ok(())
    });
    println!(
        "{} sequences, {} commands, {:.1} s",
        sequences.get(),
        steps.get(),
        start.elapsed().as_secs_f64()
    );
    assert!(sequences.get() > 20, "too few sequences to show anything");
    if let Err(TestError::Fail(why, commands)) = outcome {
        panic!("TENURE_TEST_SEED={seed}\n{commands:?}\n{why}");
    }
}
