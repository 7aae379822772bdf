//! How ids, times and names of states appear in JSON and in its schemas.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::event::EventKind;
use crate::holder::HolderKind;
use crate::id::{Fence, LeaseId, SectionId, TaskId};
use crate::lease::{AttemptState, EndReason};
use crate::runner::RunnerStatus;
use crate::section::SectionMode;
use crate::task::TaskStatus;

/// The types serialize as their `as_str`.
macro_rules! serialize_by_name {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )*};
}

serialize_by_name!(TaskStatus, SectionMode, EndReason, AttemptState, EventKind, RunnerStatus);

/// A schema that is written out wherever the type is used.
macro_rules! inline_schema {
    ($($name:ident => $schema:expr;)*) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

inline_schema! {
    TaskId => json_schema!({"type": "string"});
    SectionId => json_schema!({"type": "string"});
    LeaseId => json_schema!({"type": "string"});
    Timestamp => json_schema!({"type": "string"});
    EventKind => json_schema!({"type": "string"});
    Fence => json_schema!({"type": "integer"});
    TaskStatus => one_of(TaskStatus::ALL.map(TaskStatus::as_str).as_slice());
    EndReason => one_of(EndReason::ALL.map(EndReason::as_str).as_slice());
    HolderKind => one_of(HolderKind::ALL.map(HolderKind::as_str).as_slice());
    RunnerStatus => one_of(RunnerStatus::ALL.map(RunnerStatus::as_str).as_slice());
}

fn one_of(names: &[&str]) -> Schema {
    json_schema!({"type": "string", "enum": names})
}
