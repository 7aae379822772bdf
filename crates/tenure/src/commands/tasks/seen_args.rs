//! The arguments that make a change depend on what its caller was shown.

use tenure_core::Timestamp;
use tenure_core::id::Fence;
use tenure_core::rules::Seen;

#[derive(Debug, clap::Args)]
pub(super) struct SeenArgs {
    /// Refuse the change (exit 8) unless the task was last changed at this time: the `updatedAt` that you were shown
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    if_updated_at: Option<Timestamp>,
    /// With --if-updated-at: the fence of the lease that you were shown. Without --if-fence, the task must not be held
    #[arg(long, value_name = "N", requires = "if_updated_at")]
    if_fence: Option<i64>,
}

impl SeenArgs {
    /// The state that the task must have; `None` if the change does not depend on it.
    pub(super) fn seen(&self) -> Option<Seen> {
        Some(Seen { updated_at: self.if_updated_at?, fence: self.if_fence.map(Fence::new) })
    }
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text)
        .ok_or_else(|| "write it as in JSON output, like 2026-01-15T11:30:00.123Z".to_owned())
}
