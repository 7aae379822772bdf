//! How much of a list is shown that has the newest first.

/// Flattened into the arguments of such a list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListLimit {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u64,
}

impl Default for ListLimit {
    fn default() -> Self {
        Self { limit: 20 }
    }
}
