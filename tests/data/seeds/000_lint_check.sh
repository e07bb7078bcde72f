# .mux/stop
if make lint 2>&1 | grep -q 'error'; then
  echo "Fix lint errors before stopping" >&2
  exit 2
fi
