#!/bin/bash
# Read stdin
input=$(cat)
stop_hook_active=$(echo "$input" | jq -r '.stop_hook_active')

# If we're already in a continue cycle, allow the stop
if [ "$stop_hook_active" = "true" ]; then
  echo '{"decision": "approve"}'
  exit 0
fi

# Otherwise, run quality checks
if ! npm test; then
  echo '{"decision": "block", "reason": "Tests failed. Please fix them."}'
  exit 0
fi

echo '{"decision": "approve"}'
