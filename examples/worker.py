#!/usr/bin/env python3
"""Claims tasks one after the other, prints what their earlier holders left, and finishes them.

Usage: worker.py COMMAND [ARGUMENTS...], in the project's folder. The command gets the task as JSON on standard input.
"""

import json
import os
import subprocess
import sys

AGENT = f"worker-{os.getpid()}"
NOTHING_READY = 10


def tenure(*args):
    """The exit code and the answer of a command."""
    done = subprocess.run(["tenure", "--json", *args], stdout=subprocess.PIPE, check=False, text=True)
    return done.returncode, json.loads(done.stdout or "{}")


def main():
    while True:
        code, answer = tenure("tasks", "next", "--claim", "--agent", AGENT)
        if code == NOTHING_READY:
            return 0
        if code != 0:
            sys.exit(answer["error"]["message"])
        grant = answer["data"]
        key, lease = grant["task"]["key"], grant["lease"]
        for message in grant["messages"]:
            print(f"{key}: {message['from']} says: {message['text']}", file=sys.stderr)
        # The key of the lease proves the holder, also to commands that the child starts.
        environment = {**os.environ, "TENURE_LEASE": f"{lease['leaseId']}-{lease['leaseKey']}"}
        work = subprocess.run(sys.argv[1:], input=json.dumps(grant["task"]), text=True, env=environment, check=False)
        if work.returncode == 0:
            tenure("tasks", "done", key, "--agent", AGENT)
        else:
            tenure("tasks", "fail", key, "--agent", AGENT, "-m", f"exit code {work.returncode}")


if __name__ == "__main__":
    sys.exit(main())
