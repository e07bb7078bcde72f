# .mux/subagent_stop
# Ensure subagent actually did something
if ! grep -q 'tool_name' "$MUX_TRANSCRIPT_PATH"; then
  echo "Subagent should use tools to complete the task" >&2
  exit 2
fi
