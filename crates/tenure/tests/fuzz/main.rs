//! Hostile input: each target takes a text of its corpus (`fuzz/corpus`), changes it at random, and reads it. Nothing may
//! panic, hang, or break the target's rule.
//!
//! `TENURE_TEST_FULL=1` tries twenty times as many inputs; `TENURE_TEST_SEED` repeats a run.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod agent_output;
mod config;
mod imports;
mod json_rpc;
mod lock_files;
mod mutations;
