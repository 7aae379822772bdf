//! The conformance suite on every store.

use std::panic::{AssertUnwindSafe, catch_unwind};

use libtest_mimic::{Arguments, Failed, Trial};
use tenure_testkit::Fixture;
use tenure_testkit::conformance::{Case, cases};

type Fresh = fn() -> Fixture;

fn main() {
    let stores: [(&str, Fresh); 3] =
        [("memory", Fixture::memory), ("sqlite", Fixture::sqlite), ("postgres", Fixture::postgres)];
    let trials = stores
        .into_iter()
        .flat_map(|(store, fresh)| {
            cases()
                .into_iter()
                .map(move |(name, case)| Trial::test(format!("{store}::{name}"), move || run(case, fresh)))
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn run(case: Case, fresh: Fresh) -> Result<(), Failed> {
    catch_unwind(AssertUnwindSafe(|| case(&fresh))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Failed::from(text.unwrap_or_else(|| "it panicked".to_owned()))
    })
}
