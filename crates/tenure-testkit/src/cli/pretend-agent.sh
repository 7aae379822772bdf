#!/bin/sh
# The pretend agent. Its prompt tells it what to do: every line that begins with "$WORD: " (default "do: ") is one step.
# PRETEND is a folder that it shares with the test.
umask 077
prompt=$(cat)
name=${WORD:-do}
printf '%s\n' "$prompt" >"$PRETEND/prompt-$name-$TENURE_FENCE"
echo $$ >"$PRETEND/pid-$TENURE_FENCE"
# In a conversation that goes on, it remembers the steps of its first prompt.
memory=$PRETEND/memory-$name-$TENURE_TASK_ID
case $prompt in
"Your work on task "*" was interrupted"*) [ ! -e "$memory" ] || prompt=$(cat "$memory") ;;
"You ended without a report"*) ;;
*) printf '%s\n' "$prompt" >"$memory" ;;
esac

# A child, and whether it listens to SIGTERM is the parent's doing.
linger() { while :; do sleep 1000; done; }

# One line in the journal of all agents: the seconds since the boot, the attempt, and a text.
journal() {
    read -r up _ </proc/uptime
    printf '%s %s %s\n' "$up" "$TENURE_ATTEMPT" "$1" >>"$PRETEND/journal"
}

step() {
    verb=${1%% *}
    rest=${1#"$verb"}
    rest=${rest# }
    case $verb in
    print) printf '%s\n' "$rest" ;;
    sleep) sleep "$rest" ;;
    exit) exit "$rest" ;;
    mark) echo "$TENURE_FENCE" >>"$PRETEND/$rest" ;;
    journal) eval "journal \"$rest\"" ;;
    # A child that writes to the journal for as long as it lives.
    ticking) (while :; do journal tick; sleep 0.1; done) & ;;
    # A step that is left out once the test has given `calm`.
    storm) [ -e "$PRETEND/calm" ] || step "$rest" ;;
    wait) n=0; while [ ! -e "$PRETEND/$rest" ] && [ $n -lt 6000 ]; do sleep 0.02; n=$((n + 1)); done ;;
    fork) linger & linger & ;;
    deaf) trap '' TERM ;;
    away) (setsid sh -c 'trap "" TERM; while :; do sleep 1000; done' &) ;;
    # Leaves the attempt on purpose, and keeps its standard output open.
    escape) (env -i TENURE_ATTEMPT= PATH="$PATH" setsid sleep 60 &) ;;
    # A process in the agent's group without its environment.
    clear) (env -i PATH="$PATH" sh -c 'echo $$ >"$1"; exec sleep 60' sh "$PRETEND/$rest" &) ;;
    hang) linger ;;
    flood) yes "$(printf '%01000d' 7)" | head -c "$rest" ;;
    # Prints a file of the test as it is; the prompt cannot contain control characters.
    show) cat "$PRETEND/$rest" ;;
    # Many events of Claude Code, each with the output of a tool.
    events)
        yes '{"type":"user","message":{"content":[{"type":"tool_result","content":"'"$(printf '%01000d' 7)"'"}]}}' | head -c "$rest"
        echo
        ;;
    # Fails as recorded for as long as the test leaves that recording there.
    replay) if [ -e "$PRETEND/$rest" ]; then cat "$PRETEND/$rest"; exit 1; fi ;;
    line) head -c "$rest" /dev/zero | tr '\0' x; echo ;;
    bytes) printf 'before\377\376\033[2J\033]0;title\007\rafter\n' ;;
    stream) n=0; while [ $n -lt "$rest" ]; do echo "line $n"; n=$((n + 1)); sleep 0.05; done ;;
    kill) kill "-$rest" $$ ;;
    write) printf '%s\n' "${rest#* }" >"${rest%% *}" ;;
    # An agent that has a shell can leave the limits of agents under a runner.
    shell) eval "env -u TENURE_SUPERVISED $rest"; code=$?; echo "exit $code"; echo "$code" >>"$PRETEND/codes-$TENURE_FENCE" ;;
    tenure) eval "tenure $rest"; code=$?; echo "exit $code"; echo "$code" >>"$PRETEND/codes-$TENURE_FENCE" ;;
    *) echo "no such step: $verb"; exit 99 ;;
    esac
}

while IFS= read -r text; do
    case $text in
    "$name: "*) step "${text#"$name: "}" ;;
    esac
done <<PROMPT
$prompt
PROMPT
exit 0
