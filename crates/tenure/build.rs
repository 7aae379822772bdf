//! How the release binary is linked on Linux: see `docs/decisions/0026-what-a-fast-start-is-worth.md` and, for the order of the
//! functions, `docs/decisions/0029-called-functions-share-pages.md`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=TENURE_DYNAMIC");
    println!("cargo:rustc-check-cfg=cfg(static_libc)");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|actual| actual == value);
    if !(is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu"))
    {
        return Ok(());
    }
    // With this feature, the compiler has chosen the start code of a static position-independent program, which crashes at a fixed
    // address.
    if env::var("CARGO_CFG_TARGET_FEATURE")
        .is_ok_and(|features| features.split(',').any(|it| it == "crt-static"))
    {
        return Ok(());
    }
    // At a fixed address nothing has to be relocated, so that no page of data is copied before `main`.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // The compiler asks for shared libraries by name. Linker scripts of these names have the linker take static ones.
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rustc-link-search=native={}", folder.display());
    // Only backtraces use it.
    fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh -lgcc)\n")?;
    let scripts = ["libc.so", "libm.so"].map(|name| folder.join(name));
    match static_libc() {
        Some([c, m]) if env::var_os("TENURE_DYNAMIC").is_none() => {
            fs::write(&scripts[0], format!("GROUP({} -lgcc_eh -lgcc)\n", c.display()))?;
            fs::write(&scripts[1], format!("INPUT({})\n", m.display()))?;
            println!("cargo:rustc-link-arg-bins=-static");
            println!("cargo:rustc-cfg=static_libc");
        }
        // An earlier run may have written them.
        _ => scripts.iter().filter(|script| script.exists()).try_for_each(fs::remove_file)?,
    }
    if has_own_linker() {
        return Ok(());
    }
    // A panic ends this program without unwinding, and it has no symbols that a backtrace could show. The tables are an eighth of it.
    let discard = folder.join("without-unwind-tables.ld");
    let tables = "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.gcc_except_table*) } } INSERT AFTER .text;\n";
    fs::write(&discard, tables)?;
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", discard.display());
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") {
        let order = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("link-order.ld");
        println!("cargo:rerun-if-changed={}", order.display());
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", order.display());
    }
    Ok(())
}

/// The static C library and its mathematical part, if both are installed for the target.
fn static_libc() -> Option<[PathBuf; 2]> {
    let linker = env::var_os("RUSTC_LINKER");
    if linker.is_none() && env::var_os("HOST") != env::var_os("TARGET") {
        return None;
    }
    let linker = linker.unwrap_or_else(|| "cc".into());
    let find = |name: &str| {
        let found = Command::new(&linker).arg(format!("-print-file-name={name}")).output().ok()?;
        let path = PathBuf::from(String::from_utf8(found.stdout).ok()?.trim());
        Some(path).filter(|path| path.is_absolute() && Path::exists(path))
    };
    Some([find("libc.a")?, find("libm.a")?])
}

/// Whether the user has chosen a linker, which may be one without linker scripts, such as mold. GNU ld and LLD have them.
fn has_own_linker() -> bool {
    for name in ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    env::var_os("RUSTC_LINKER").is_some()
        || env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"))
}
