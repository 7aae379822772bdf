//! How the release binary is linked on Linux: see `docs/decisions/0026-what-a-fast-start-is-worth.md` and, for the order of the
//! functions, `docs/decisions/0029-called-functions-share-pages.md`.

use std::env;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|actual| actual == value);
    if !(is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu"))
    {
        return Ok(());
    }
    // A static program is linked as a position-independent one with its own start code, which crashes at a fixed address; and it has no shared
    // libraries to save.
    if env::var("CARGO_CFG_TARGET_FEATURE")
        .is_ok_and(|features| features.split(',').any(|it| it == "crt-static"))
    {
        return Ok(());
    }
    // At a fixed address the loader has nothing to relocate, so that no page of data is copied before `main`.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // The standard library asks for the shared libgcc, whose only use here is to print backtraces. This linker script of the same name has
    // the linker take it from the static library, and the loader has one file less to find and map.
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    std::fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh -lgcc)\n")?;
    println!("cargo:rustc-link-search=native={}", folder.display());
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && !has_own_linker() {
        let order = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("link-order.ld");
        println!("cargo:rerun-if-changed={}", order.display());
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", order.display());
    }
    Ok(())
}

/// Whether the user has chosen a linker, which may be one without linker scripts, such as mold. GNU ld and LLD have them.
fn has_own_linker() -> bool {
    for name in ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    env::var_os("RUSTC_LINKER").is_some()
        || env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"))
}
