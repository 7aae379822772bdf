#!/bin/sh
# Works on tasks until none is ready. For each task it runs the given command with TENURE_TASK_KEY set.
# Usage: worker.sh COMMAND [ARGUMENTS…], in the project's folder.
set -eu

agent="worker-$$"
while :; do
    # Exit 10: nothing is ready.
    next=$(tenure tasks next --agent "$agent" 2> /dev/null) || exit 0
    key=${next%%[[:space:]]*}
    # `run` claims the task, renews the lease while the command runs, and finishes the task as done or failed.
    # Exit 6: another worker was faster, so the next task is tried.
    TENURE_TASK_KEY=$key tenure tasks run "$key" --agent "$agent" -- "$@" || [ $? -eq 6 ] || exit 1
done
