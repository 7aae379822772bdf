#!/bin/sh
# Reserves the project for this script: runners and wake-up skip it until the file is removed.
# Usage: exclusive-lock.sh COMMAND [ARGUMENTS…], in the project's folder.
set -eu

lock=.tenure/.exclusive-lock
[ -d .tenure ] || lock=.beads/.exclusive-lock

# With noclobber the file is created or the script ends: two scripts never have the lock at once.
set -C
cat > "$lock" <<EOF
{
  "holder": "exclusive-lock.sh",
  "pid": $$,
  "hostname": "$(hostname)",
  "started_at": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
  "version": "1.0.0"
}
EOF
set +C
# Whatever ends the script removes the lock. If it is killed, its pid is dead, and the lock is stale.
trap 'rm -f "$lock"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$@"
