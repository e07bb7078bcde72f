# .mux/stop
if ! grep -q 'test.*pass' "$MUX_TRANSCRIPT_PATH"; then
  echo "Run and verify tests pass before stopping" >&2
  exit 2
fi
