//! Windows, where the commands that use this crate are refused.

use std::fs::DirBuilder;
use std::io;
use std::process::Child;

pub(crate) fn kill(_pid: u32) {}

pub(crate) fn terminate(_pid: u32) {}

pub(crate) fn wait_for_exit(_child: &Child) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn private_folder() -> DirBuilder {
    DirBuilder::new()
}
