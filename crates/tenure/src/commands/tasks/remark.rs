//! The remark that a verb stores with a change of a task. It is spelled the same everywhere.

/// A remark that is required.
#[derive(Debug, clap::Args)]
pub(super) struct Remark {
    /// Why; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
    pub(super) message: String,
}

/// A remark that may be left out.
#[derive(Debug, clap::Args)]
pub(super) struct OptionalRemark {
    /// A remark; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
    pub(super) message: Option<String>,
}
