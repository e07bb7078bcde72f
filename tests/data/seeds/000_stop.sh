#!/usr/bin/env bash
# .mux/stop

# Don't stop if tests haven't been run
if [[ "$MUX_STOP_HOOK_ACTIVE" == "true" ]]; then
  # Already continuing from a stop hook - don't loop
  exit 0
fi

# Check if tests were run in this session
if ! grep -q '"tool_name":"bash".*"script":".*test' "$MUX_TRANSCRIPT_PATH" 2>/dev/null; then
  echo "Please run tests before stopping" >&2
  exit 2
fi

exit 0
