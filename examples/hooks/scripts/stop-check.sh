#!/usr/bin/env bash
# Stop: the tests were run in this session. Document 000 names it as $MUX_PROJECT_DIR/.mux/hooks/stop-check.sh.
# Input that is not a hook's ends with exit code 1, which never blocks.
set -u
read_field() {
  python3 -c 'import json, sys
value = json.load(sys.stdin)[sys.argv[1]]
print({True: "true", False: "false"}.get(value, value))' "$1" 2>/dev/null <<<"$input"
}

input=$(cat)
active=$(read_field stop_hook_active) && transcript=$(read_field transcript_path) || {
  echo "stop-check.sh: the input is not that of a hook" >&2
  exit 1
}

# Already continuing from a stop hook: do not loop.
[ "$active" = true ] && exit 0

if ! grep -q '"tool_name":"bash","script":"[^"]*test' -- "$transcript" 2>/dev/null; then
  echo "Please run tests before stopping" >&2
  exit 2
fi
