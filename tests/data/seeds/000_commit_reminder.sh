# .mux/stop
if [[ -n "$(git status --porcelain)" ]]; then
  echo "You have uncommitted changes. Please commit or stash." >&2
  exit 2
fi
