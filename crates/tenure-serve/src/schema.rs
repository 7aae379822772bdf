//! The schemas of answers: the contract's objects, as `wire` writes them.
//!
//! Each is either the answer or an `error`, and may carry `lost`: leases that the client no longer holds.

use serde_json::{Map, Value, json};

fn nullable(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// An object that has these fields, and perhaps more.
fn with(fields: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": fields, "required": required})
}

fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// The answer of a tool: these fields, or an error.
fn answer(fields: Value, required: &[&str]) -> Value {
    let mut properties = Map::new();
    if let Value::Object(fields) = fields {
        properties.extend(fields);
    }
    properties.insert("error".into(), error());
    properties.insert("lost".into(), list(lost()));
    json!({
        "type": "object",
        "properties": properties,
        "anyOf": [{"required": required}, {"required": ["error"]}],
    })
}

fn error() -> Value {
    with(
        json!({
            "code": {"type": "string", "description": "A stable name, such as TASK_LOCKED"},
            "message": {"type": "string"},
            "details": {"description": "Holder, fence, expiry and place in the queue, as far as they apply"},
            "next": nullable("string"),
        }),
        &["code", "message"],
    )
}

fn lost() -> Value {
    with(
        json!({
            "code": {"const": "LEASE_LOST"},
            "task": {"type": "string"},
            "taskId": {"type": "string"},
            "fence": {"type": "integer"},
            "message": {"type": "string"},
        }),
        &["code", "task", "taskId", "fence", "message"],
    )
}

fn holder() -> Value {
    with(
        json!({
            "kind": {"enum": ["agent", "runner", "person"]},
            "id": {"type": "string"},
            "pid": {"type": "integer"},
            "host": {"type": "string"},
        }),
        &["kind", "id"],
    )
}

fn lease() -> Value {
    with(
        json!({
            "leaseId": {"type": "string"},
            "resource": {"type": "string"},
            "taskId": nullable("string"),
            "sectionId": nullable("string"),
            "holder": holder(),
            "fence": {"type": "integer", "description": "The credential of this claim"},
            "acquiredAt": {"type": "string"},
            "heartbeatAt": {"type": "string"},
            "expiresAt": {"type": "string"},
            "ttlMs": {"type": "integer"},
            "expired": {"type": "boolean"},
            "alive": nullable("boolean"),
            "reacquired": {"type": "boolean"},
        }),
        &["leaseId", "resource", "holder", "fence", "acquiredAt", "expiresAt", "ttlMs", "expired"],
    )
}

fn task() -> Value {
    with(
        json!({
            "id": {"type": "string"},
            "key": {"type": "string"},
            "title": {"type": "string"},
            "description": {"type": "string"},
            "status": {"enum": ["pending", "in_progress", "review", "completed", "failed", "skipped"]},
            "section": nullable("string"),
            "sectionId": nullable("string"),
            "sourceFile": nullable("string"),
            "priority": {"type": "integer"},
            "position": {"type": "integer"},
            "dependsOn": list(json!({"type": "string"})),
            "labels": list(json!({"type": "string"})),
            "attempts": {"type": "integer"},
            "rejections": {"type": "integer"},
            "ready": {"type": "boolean"},
            "blockedBy": list(json!({"type": "string"})),
            "lease": or_null(lease()),
            "createdAt": {"type": "string"},
            "updatedAt": {"type": "string"},
        }),
        &["id", "key", "title", "description", "status", "ready", "dependsOn", "blockedBy", "labels"],
    )
}

fn message() -> Value {
    with(
        json!({
            "id": {"type": "integer"},
            "taskId": nullable("string"),
            "task": nullable("string"),
            "from": {"type": "string"},
            "to": nullable("string"),
            "text": {"type": "string"},
            "sentAt": {"type": "string"},
            "acknowledgedAt": nullable("string"),
            "acknowledgedBy": nullable("string"),
        }),
        &["id", "from", "text", "sentAt"],
    )
}

pub(crate) fn status() -> Value {
    answer(
        json!({
            "you": nullable("string"),
            "project": with(json!({"path": {"type": "string"}, "name": nullable("string")}), &["path"]),
            "tasks": {"type": "object", "additionalProperties": {"type": "integer"}},
            "total": {"type": "integer"},
            "nextReady": nullable("string"),
            "agentsRegistered": {"type": "integer"},
            "activeClaims": {"type": "integer"},
            "waiting": {"type": "integer"},
        }),
        &["you", "project", "tasks", "total", "nextReady", "agentsRegistered", "activeClaims"],
    )
}

pub(crate) fn tasks() -> Value {
    answer(json!({"tasks": list(task()), "total": {"type": "integer"}}), &["tasks", "total"])
}

pub(crate) fn task_shown() -> Value {
    let fields = json!({
        "task": task(),
        "queue": {"type": "integer"},
        "messages": list(message()),
        "events": list(json!({"type": "object"})),
    });
    answer(fields, &["task", "queue", "messages"])
}

pub(crate) fn task_only() -> Value {
    answer(json!({"task": task()}), &["task"])
}

pub(crate) fn grant() -> Value {
    let fields = json!({"task": task(), "lease": lease(), "takenOver": or_null(lease())});
    answer(fields, &["task", "lease"])
}

pub(crate) fn lease_only() -> Value {
    answer(json!({"lease": lease()}), &["lease"])
}

pub(crate) fn finished() -> Value {
    answer(json!({"task": task(), "changed": {"type": "boolean"}}), &["task", "changed"])
}

pub(crate) fn message_only() -> Value {
    answer(json!({"message": message()}), &["message"])
}

pub(crate) fn inbox() -> Value {
    let fields = json!({
        "messages": list(message()),
        "total": {"type": "integer"},
        "acknowledged": list(json!({"type": "integer"})),
    });
    answer(fields, &["messages", "total", "acknowledged"])
}

pub(crate) fn reasons() -> Value {
    let reason = with(json!({"kind": {"type": "string"}, "reason": {"type": "string"}}), &["kind", "reason"]);
    let hint = with(
        json!({"why": {"type": "string"}, "command": {"type": "string", "description": "For a shell"}}),
        &["why", "command"],
    );
    let fields = json!({
        "task": {"type": ["object", "null"]},
        "moving": {"type": "boolean"},
        "reasons": list(reason),
        "total": {"type": "integer"},
        "hints": list(hint),
    });
    answer(fields, &["moving", "reasons"])
}
