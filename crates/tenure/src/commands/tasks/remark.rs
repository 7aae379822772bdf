//! The `-m` option of verbs that store a remark with a change of a task.

/// A required remark.
#[derive(Debug, clap::Args)]
pub(super) struct Remark {
    /// The reason; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
    pub(super) message: String,
}

/// An optional remark.
#[derive(Debug, clap::Args)]
pub(super) struct OptionalRemark {
    /// A remark; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
    pub(super) message: Option<String>,
}
