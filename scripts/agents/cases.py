"""The cases: what the pretend model does, and what has to become of the task."""

import json
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from pretend_model import Call, Failure, PretendModel, Run, Say
from programs import PACKAGES, point_at_model

# Generous: nothing waits this long unless it is broken.
PATIENCE = 400


class Room:
    """A home and a project for one case, with a model of its own."""

    def __init__(self, agent, folder, path):
        self.agent, self.folder = agent, folder
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.model = PretendModel()
        self.env = {
            "HOME": str(self.home),
            "PATH": path,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **point_at_model(agent, self.model.port, self.home),
        }
        self.git("init", "--quiet")
        self.git("config", "user.name", "pretend")
        self.git("config", "user.email", "pretend@example.org")
        self.tenure("init")
        script = self.project / "build.sh"
        script.write_text("#!/bin/sh\necho built >built.txt\n")
        script.chmod(0o755)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "first")
        self.task = self.tenure("tasks", "add", "Build it")["task"]["key"]
        self.log = open(folder / "log", "w")

    def close(self):
        self.model.close()
        self.log.close()

    def git(self, *args):
        done = subprocess.run(["git", *args], cwd=self.project, env=self.env, check=True, capture_output=True, text=True)
        return done.stdout

    def tenure(self, *args):
        done = subprocess.run(["tenure", "--json", *args], cwd=self.project, env=self.env, capture_output=True, text=True)
        answer = json.loads(done.stdout)
        if not answer["success"]:
            raise RuntimeError(answer["error"]["message"])
        return answer["data"]

    def configure(self, key, value):
        self.tenure("config", "set", key, value)

    def start_runner(self):
        command = ["tenure", "runners", "start", "--foreground", "--preset", self.agent]
        return subprocess.Popen(command, cwd=self.project, env=self.env, stdout=self.log, stderr=self.log)

    def run_until_idle(self):
        self.start_runner().wait(PATIENCE)

    def outcome(self):
        """The status of the task, how often it was charged, and what is parked."""
        task = self.tenure("tasks", "show", self.task)["task"]
        parked = [f"{row['kind']} parked: {row['ending']}" for row in self.parked()]
        return ", ".join([task["status"], f"charged {task['attempts']}", *parked])

    def parked(self):
        return [row for row in self.tenure("status")["parked"] if row["parkedAt"]]

    def processes(self, words):
        """The ids of processes with these words in their command line."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if entry.name.isdigit() and words in line:
                found.append(int(entry.name))
        return found


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def good_work(room):
    return [
        Run("./build.sh && git add built.txt && git commit --quiet --message built"),
        Run(f"tenure task done {room.task}"),
        Say("It is done."),
    ]


def committed(room):
    return "committed" if "built" in room.git("log", "--format=%s").split() else "not committed"


def commit(room):
    """A good run. The first command writes outside of the project, which a sandbox prevents, and copilot itself."""
    outside = room.home / "outside"
    room.model.play(Run(f"touch {outside}"), *good_work(room))
    room.run_until_idle()
    wrote = "wrote" if outside.exists() else "could not write"
    return f"{room.outcome()}, {committed(room)}, {wrote} outside"


def commit_expected(agent):
    wrote = "could not write" if agent in ("claude", "codex", "copilot") else "wrote"
    return f"completed, charged 0, committed, {wrote} outside"


def report(room):
    """The task is finished over MCP, by the server that the runner passes to agents with a sandbox."""
    room.model.play(
        Run("./build.sh && git add built.txt && git commit --quiet --message built"),
        Call("finish_task", {"task": room.task, "outcome": "done"}),
        Say("It is done."),
    )
    room.run_until_idle()
    return f"{room.outcome()}, {committed(room)}"


def denied(room):
    """The agent may only edit, tries to run a command, and gives up. It is asked once for a report and gives none."""
    room.configure("runners.permissions", "edit")
    command = "git commit --quiet --allow-empty --message built" if room.agent == "codex" else "./build.sh"
    room.model.play(Run(command), Say("I could not run it."), Say("As I said, I could not run it."))
    room.run_until_idle()
    ran = committed(room) == "committed" or (room.project / "built.txt").exists()
    asked = "asked" if room.model.played == 3 else f"{room.model.played} turns"
    return f"{room.outcome()}, {'ran' if ran else 'did not run'}, {asked}"


def limit_of(agent, resets_at):
    """How the provider of each agent says that a limit was reached."""
    if agent == "claude":
        headers = {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(resets_at),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-5h-status": "rejected",
            "anthropic-ratelimit-unified-5h-reset": str(resets_at),
            "anthropic-ratelimit-unified-5h-utilization": "1.0",
            "anthropic-ratelimit-unified-overage-status": "rejected",
            "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
        }
        message = "This request would exceed your account's rate limit. Please try again later."
        return Failure(429, {"type": "error", "error": {"type": "rate_limit_error", "message": message}}, headers)
    if agent == "codex":
        error = {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "plan_type": "plus",
            "resets_at": resets_at,
        }
        return Failure(429, {"error": error})
    if agent == "gemini":
        details = [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}],
            }
        ]
        message = "You exceeded your current quota, please check your plan and billing details."
        error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": details}
        return Failure(429, {"error": error})
    error = {"message": "Rate limit reached for requests", "type": "requests", "code": "rate_limit_exceeded"}
    return Failure(429, {"error": error}, {"retry-after": "1"})


def limit(room):
    """A limit parks the account. After its reset the same task is tried again, and completed."""
    room.model.play(*good_work(room))
    room.model.fail(limit_of(room.agent, int(time.time()) + 30))
    room.run_until_idle()
    first = room.outcome()
    reset = "reset known" if any(row["resetsAt"] for row in room.parked()) else "reset not known"
    room.model.fail(None)
    until(lambda: all(row["nextTryAt"] and is_past(row["nextTryAt"]) for row in room.parked()), "the next try")
    room.run_until_idle()
    return f"{first}, {reset}; then {room.outcome()}, {committed(room)}"


def is_past(timestamp):
    return timestamp <= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def limit_expected(agent):
    reset = "reset known" if agent == "claude" else "reset not known"
    first = "pending, charged 0, account parked: limited"
    return f"{first}, {reset}; then completed, charged 0, committed"


def no_network(room):
    """Nothing answers. Most programs would retry for minutes, so the runner's patience is short."""
    silent = room.agent == "opencode"
    room.configure("runners.subprocessHangTimeout", "3m" if silent else "20s")
    room.model.close()
    room.run_until_idle()
    return room.outcome()


def kill_and_resume(room):
    """The runner is killed in the middle of a command. The session is resumed in the same conversation."""
    # Nobody else sleeps for exactly this long.
    sleep, before = f"sleep 7{room.model.port}", f"echo before {room.model.port}"
    room.model.play(Run(before), Run(sleep))
    runner = room.start_runner()
    until(lambda: room.processes(sleep), "the command")
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    room.model.play(*good_work(room))
    session = room.tenure("sessions", "list")["sessions"][0]["id"]
    command = ["tenure", "resume", session]
    subprocess.run(command, cwd=room.project, env=room.env, stdout=room.log, stderr=room.log, timeout=PATIENCE)
    same = "same conversation" if any(before in text for text in room.model.requests) else "new conversation"
    left = "processes left" if room.processes(sleep) else "nothing left"
    return f"{room.outcome()}, {committed(room)}, {same}, {left}"


# How each agent is started by a person, without a runner.
BY_HAND = {
    "claude": ["claude", "-p", "--allowedTools", "mcp__tenure"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "-"],
    "gemini": ["gemini", "--approval-mode", "yolo"],
    "opencode": ["opencode", "run", "--auto"],
    "copilot": ["copilot", "--allow-all-tools"],
}


def mcp(room):
    """Without a runner: the agent claims and finishes a task over the server that `tenure setup` has configured."""
    room.tenure("setup", room.agent, "--mcp")
    fence = lambda text: {"task": room.task, "outcome": "done", "fence": fence_in(text)}
    room.model.play(Call("claim_next"), Call("finish_task", fence), Say("It is done."))
    # A person would have trusted the folder in an interactive session.
    env = {**room.env, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    done = subprocess.run(
        BY_HAND[room.agent], cwd=room.project, env=env, input="Claim a task and finish it.", text=True,
        stdout=room.log, stderr=room.log, timeout=PATIENCE,
    )
    return f"{room.outcome()}, exit {done.returncode}"


def fence_in(text):
    """The fence that the answer to the claim names, as JSON or as text."""
    found = re.findall(r'fence[\\"]*:? ?(\d+)', text, re.IGNORECASE)
    return int(found[-1]) if found else 0


@dataclass
class Case:
    play: Callable
    expected: Callable
    agents: tuple = tuple(PACKAGES)


def always(outcome):
    return lambda _agent: outcome


CASES = {
    "commit": Case(commit, commit_expected),
    "report": Case(report, always("completed, charged 0, committed"), ("claude", "codex")),
    "denied": Case(denied, always("review, charged 0, did not run, asked")),
    "limit": Case(limit, limit_expected),
    "no-network": Case(no_network, always("pending, charged 0, host parked: no_network")),
    "kill-resume": Case(
        kill_and_resume, always("completed, charged 1, committed, same conversation, nothing left")
    ),
    "mcp": Case(mcp, always("completed, charged 0, exit 0")),
}
