//! The `--limit` option of lists that show the newest rows first.

#[derive(Debug, PartialEq, Eq, clap::Args)]
pub(crate) struct ListLimit {
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u64,
}

impl Default for ListLimit {
    fn default() -> Self {
        Self { limit: 20 }
    }
}
