//! Linux.

use std::path::PathBuf;

/// The name of this process's controlling terminal, such as `pts/3` or `tty1`. Found even if all standard streams
/// are pipes.
pub(crate) fn controlling_terminal() -> Option<String> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The command name may contain spaces and parentheses, so the fields are read after the last parenthesis.
    let number: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xfff00);
    match major {
        136..=143 => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        4 if minor < 64 => Some(format!("tty{minor}")),
        4 => Some(format!("ttyS{}", minor - 64)),
        _ => None,
    }
}

/// The running binary itself, even if its file was replaced or deleted.
pub(crate) fn running_binary() -> Option<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    running.exists().then_some(running)
}

/// The program that opens a file as a person would.
#[cfg(feature = "web")]
pub(crate) const OPENER: &str = "xdg-open";

/// Whether all usual browsers resolve the names below `localhost` by themselves.
#[cfg(feature = "web")]
pub(crate) const BROWSERS_KNOW_LOCALHOST: bool = true;

/// Lets names be resolved only from `/etc/hosts` and by DNS, and users only from `/etc/passwd`, if the C library is part of the program.
/// It would otherwise load the modules that `/etc/nsswitch.conf` names from the system, which fit only the system's own C library.
pub(crate) fn resolve_names_without_modules() {
    #[cfg(static_libc)]
    static_libc::resolve_names_without_modules();
}

/// Lets all threads allocate from one heap. Few of them allocate at the same time, and each heap would keep memory of its own.
pub(crate) fn share_one_heap() {
    #[cfg(static_libc)]
    static_libc::share_one_heap();
}

#[cfg(static_libc)]
mod static_libc {
    use std::ffi::{c_char, c_int};
    use std::sync::Once;

    #[expect(unsafe_code, reason = "functions of glibc")]
    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
        fn mallopt(option: c_int, value: c_int) -> c_int;
    }

    const M_ARENA_MAX: c_int = -8;

    pub(super) fn share_one_heap() {
        #[expect(unsafe_code, reason = "it takes numbers, and a lock of the library")]
        // If it fails, there are more heaps.
        let _ = unsafe { mallopt(M_ARENA_MAX, 1) };
    }

    pub(super) fn resolve_names_without_modules() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            for (database, services) in [(c"hosts", c"files dns"), (c"passwd", c"files")] {
                #[expect(
                    unsafe_code,
                    reason = "both are static strings; the function takes a lock of the library"
                )]
                // If it fails, the modules are used.
                let _ = unsafe { __nss_configure_lookup(database.as_ptr(), services.as_ptr()) };
            }
        });
    }
}
