# Makes .venv with the first Python that is new enough, and installs WHAT into it: sh tools/venv.sh WHAT
set -eu
what=$1

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'
for python in python3 python3.14 python3.13 python3.12 python3.11 ''; do
  [ -n "$python" ] || { echo "Turngate needs Python 3.11 or newer; python3 is older or missing" >&2; exit 1; }
  "$python" -c "$new_enough" 2>/dev/null && break
done

# The wheel of this package holds the whole Claude Code program, 350 MB that no test needs; its source is 1 MB.
small=claude-agent-sdk

echo "setting up .venv (once, about half a minute)" >&2
if command -v uv >/dev/null 2>&1; then
  [ -x .venv/bin/python ] || uv venv -q --python "$python" .venv
  uv pip install -q --no-binary "$small" --python .venv/bin/python -e "$what"
else
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-binary "$small" -e "$what"
fi
