# Makes .venv with the first Python that is new enough, and installs WHAT into it: sh tools/venv.sh WHAT
set -eu
what=$1

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'
for python in python3 python3.14 python3.13 python3.12 python3.11 ''; do
  [ -n "$python" ] || { echo "Turngate needs Python 3.11 or newer; python3 is older or missing" >&2; exit 1; }
  "$python" -c "$new_enough" 2>/dev/null && break
done

echo "setting up .venv (once, about half a minute)" >&2
if command -v uv >/dev/null 2>&1; then
  [ -x .venv/bin/python ] || uv venv -q --python "$python" .venv
  uv pip install -q --python .venv/bin/python -e "$what"
else
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  # As `no-binary-package` in pyproject.toml, which only uv reads.
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-binary claude-agent-sdk -e "$what"
fi
