#!/bin/sh
# A stop that is refused, repaired and allowed; in a throw-away folder, offline: sh examples/demo.sh [turngate]
set -eu
turngate=${1:-turngate}
case $turngate in */*) turngate=$(cd "$(dirname "$turngate")" && pwd)/$(basename "$turngate") ;; esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TURNGATE_STATE="$scratch/state" HOME="$scratch/home"
mkdir -p "$scratch/home" "$scratch/project/.turngate"
cd "$scratch/project"

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { sed 's/^/    /' "$1"; }

step '1. A project whose test fails'
cat > test_sum.py <<'PY'
import unittest

class Sum(unittest.TestCase):
    def test_two_and_two(self):
        self.assertEqual(2 + 2, 5)

unittest.main(verbosity=0)
PY
show test_sum.py

step '2. and a Stop hook that runs it: .turngate/settings.json'
cat > .turngate/settings.json <<'JSON'
{"hooks": {"Stop": [{"hooks": [
  {"type": "command", "id": "tests", "command": "python3 test_sum.py >&2 || exit 2", "timeout": 60}
]}]}}
JSON
show .turngate/settings.json

step '3. The settings are sound: turngate check'
"$turngate" check | sed 's/^/    /'

step '4. The agent says "done". May it stop? turngate fire Stop'
set +e
"$turngate" fire Stop --trust | sed 's/^/    /'
"$turngate" fire Stop --trust >/dev/null
refused=$?
set -e
echo "    (exit code $refused: it goes on, with that text as its next prompt)"

step '5. It repairs the test and says "done" again'
sed -i.old 's/, 5)/, 4)/' test_sum.py
"$turngate" fire Stop --trust | sed 's/^/    /'

[ "$refused" = 10 ] || { echo "the first stop should have been refused" >&2; exit 1; }
step 'That is Turngate. Read on: README.md, docs/hooks.md, turngate fire --help'
