//! Exit codes and error codes are public API: this is the contract's table, code for code.

use tenure_core::ErrorCode;

const TABLE: &[(u8, &[&str])] = &[
    (1, &["GENERAL_ERROR", "STORE_ERROR", "HOOK_FAILED", "AGENT_FAILED", "UNSUPPORTED"]),
    (2, &["INVALID_ARGUMENTS", "AMBIGUOUS", "DEPENDENCY_CYCLE", "INVALID_TRANSITION", "DEFINITION_CHANGED"]),
    (3, &["CONFIG_ERROR", "NOT_INITIALIZED", "STORE_TOO_NEW", "STORE_COPIED", "STORE_MOVED"]),
    (
        4,
        &[
            "TASK_NOT_FOUND",
            "SECTION_NOT_FOUND",
            "LOCK_NOT_FOUND",
            "RUNNER_NOT_FOUND",
            "AGENT_NOT_FOUND",
            "SESSION_NOT_FOUND",
            "JOB_NOT_FOUND",
            "PROJECT_NOT_FOUND",
        ],
    ),
    (5, &["PERMISSION_DENIED", "UNTRUSTED"]),
    (6, &["TASK_LOCKED", "SECTION_LOCKED", "RUNNER_ACTIVE", "EXCLUSIVE_LOCKED", "RESUME_LOCKED"]),
    (7, &["CHECK_FAILED"]),
    (8, &["LEASE_LOST", "NOT_HOLDER", "CHANGED"]),
    (9, &["WAIT_TIMEOUT"]),
    (10, &["NOTHING_READY", "NOT_READY"]),
];

#[test]
fn every_error_code_of_the_contract_exists_with_its_exit_code() {
    for (exit, codes) in TABLE {
        for code in *codes {
            let found = ErrorCode::ALL.iter().find(|known| known.as_str() == *code);
            assert_eq!(found.map(|known| known.exit_code()), Some(*exit), "{code}");
        }
    }
}

#[test]
fn no_error_code_is_missing_from_the_contract() {
    let listed: Vec<&str> = TABLE.iter().flat_map(|(_, codes)| *codes).copied().collect();
    for code in ErrorCode::ALL {
        assert!(listed.contains(&code.as_str()), "{} is not in the contract", code.as_str());
    }
}
