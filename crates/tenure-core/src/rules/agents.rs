//! Agents: names that hold leases.

use serde_json::json;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::holder::Holder;
use crate::kernel;
use crate::lease::{Lease, ResourceKind};
use crate::store::{Agent, LeaseFilter, Tx};
use crate::text;

/// The limit for the client name within an agent id, which has room for 64 characters.
const MAX_CLIENT_CHARS: usize = 40;

/// Registers a new agent with a generated id.
pub fn join_agent(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    name: Option<&str>,
    capabilities: &[String],
) -> Result<Agent> {
    name.map_or(Ok(()), text::check_display_name)?;
    for capability in capabilities {
        text::check_capability(capability)?;
    }
    join_as(tx, || ctx.ids.agent(), name, capabilities)
}

/// Registers an agent for a connected client. Its id begins with the client's name, so that a person can find the
/// client that a refusal refers to.
pub fn join_client(tx: &mut dyn Tx, ctx: &Context<'_>, client: &str) -> Result<Agent> {
    let prefix: String = client.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let prefix: String = prefix.trim_matches('-').chars().take(MAX_CLIENT_CHARS).collect();
    let prefix = if prefix.is_empty() { "client" } else { prefix.trim_end_matches('-') };
    let name: String = client.chars().filter(|c| !c.is_control()).take(MAX_CLIENT_CHARS).collect();
    let name = Some(name.trim()).filter(|name| !name.is_empty());
    join_as(tx, || format!("{prefix}-{}", ctx.ids.hex8()), name, &[])
}

fn join_as(
    tx: &mut dyn Tx,
    new_id: impl Fn() -> String,
    name: Option<&str>,
    capabilities: &[String],
) -> Result<Agent> {
    let mut id = new_id();
    for _ in 0..100 {
        if tx.agent(&id)?.is_none() {
            break;
        }
        id = new_id();
    }
    let agent = Agent {
        id,
        name: name.map(str::to_owned),
        capabilities: capabilities.to_vec(),
        joined_at: tx.now(),
        last_seen_at: tx.now(),
        left_at: None,
        active_claims: 0,
    };
    tx.save_agent(&agent)?;
    let detail = json!({"name": agent.name, "capabilities": agent.capabilities});
    tx.append(NewEvent::new(EventKind::AgentJoined, &agent.id).detail(detail))?;
    Ok(agent)
}

/// Releases the tasks that the agent of an ended attempt has claimed and not finished, and returns their leases. Its name was
/// made for the attempt, so no other process will finish them. A lease that records a process is left to that process.
pub fn release_claims_of_attempt(tx: &mut dyn Tx, ctx: &Context<'_>, agent: &str) -> Result<Vec<Lease>> {
    let mut held = tx.leases(&tasks_held_by(agent))?;
    held.retain(|lease| lease.process.is_none());
    for lease in &held {
        kernel::release(tx, ctx, agent, lease)?;
    }
    Ok(held)
}

/// Selects the open leases on tasks that the agent holds.
pub fn tasks_held_by(agent: &str) -> LeaseFilter {
    LeaseFilter {
        kinds: Some(vec![ResourceKind::Task]),
        holder: Some(Holder::agent(agent)),
        ..LeaseFilter::default()
    }
}

/// Removes the agent and returns the tasks that it holds.
pub fn leave_agent(tx: &mut dyn Tx, ctx: &Context<'_>, id: &str) -> Result<(Agent, Vec<Lease>)> {
    let found = tx.agent(id)?.ok_or_else(|| Error::AgentNotFound { id: id.to_owned() })?;
    let held = tx.leases(&tasks_held_by(id))?;
    for lease in &held {
        kernel::release(tx, ctx, id, lease)?;
    }
    let agent = Agent { left_at: Some(tx.now()), last_seen_at: tx.now(), active_claims: 0, ..found };
    tx.save_agent(&agent)?;
    tx.append(NewEvent::new(EventKind::AgentLeft, id).detail(json!({"released": held.len()})))?;
    Ok((agent, held))
}
