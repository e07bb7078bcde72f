# The GitHub Action: installs Turngate from its own checkout and runs the gates. Inputs are variables, never shell text.
set -eu
venv=${RUNNER_TEMP:-/tmp}/turngate-venv
[ -x "$venv/bin/turngate" ] || {
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "$GITHUB_ACTION_PATH"
}
base=${TURNGATE_BASE:-${GITHUB_BASE_REF:+origin/$GITHUB_BASE_REF}}
set -f  # the names of gates are words, not globs
# shellcheck disable=SC2086
set -- ${TURNGATE_GATES:-}
[ -z "$base" ] || set -- "$@" --base "$base"
[ "${TURNGATE_LENIENT:-false}" != true ] || set -- "$@" --lenient
exec "$venv/bin/turngate" gates run --trust --format github --project "${TURNGATE_FOLDER:-.}" "$@"
