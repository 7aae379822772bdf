//! Configuration: merges `config.yaml` of the user and of the project, the environment and flags into one typed [`Config`].
//!
//! Guarantees: every accepted key is in [`KEYS`]; every error in a file has its line and column; no input causes a
//! panic, or work that is out of proportion to its size; [`set`] changes one value of a text and nothing else, or
//! refuses; a project's setting that needs trust counts only if the caller says that the file is trusted.
//! Does no I/O: the caller reads and writes the files and reads the variables.

mod document;
mod edit;
mod error;
mod hook;
mod hook_event;
mod keys;
mod nearest;
mod origin;
mod resolve;
mod show;
mod size;
mod tree;
mod trust;
mod types;
mod value;
mod wrapper;
mod write;

pub use document::Document;
pub use edit::{set, unset};
pub use error::{Cause, ConfigError, Location, Position};
pub use hook::{Hook, HookAction};
pub use hook_event::HookEvent;
pub use keys::{Authority, KEYS, Key, Kind};
pub use origin::Origin;
pub use resolve::{Layer, Layers, Override};
pub use show::{Lookup, Setting};
pub use trust::{TrustChange, TrustContent, TrustRecord, TrustState, TrustSummary};
pub use types::{
    Config, IgnoredSetting, Locking, Mcp, Permissions, Preset, Project, Review, Runners, Tasks, Wakeup,
};
