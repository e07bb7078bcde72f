"""Configurations as people write them: half of them are correct, half have one defect, and `check` knows which."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.support.builders import script
from tests.support.kinds import LISTED_SETTINGS_KINDS
from turngate.cli.main import main

PROGRAMS = (
    "bash bun cargo cat curl date deno echo env eslint find git go grep jq make mkdir mypy node npm npx notify-send pnpm "
    "prettier pytest python python3 ruff sed sh tail tee timeout touch tsc uv wc xargs yarn"
)
FAILS = "so the hook fails at every run"
EITHER = "so the hook fails or blocks at every run"
NEVER = "and only exit code 2 blocks: this hook can never block"
BLOCKS = "error: the program {} is not in the PATH, so the hook blocks at every run"
ON_STDOUT = (
    "warning: exits with 2, but its reason goes to stdout, and only stderr is read: this hook can never block"
)
GATE_SH = """#!/usr/bin/env bash
set -euo pipefail
input=$(cat)
if [[ "$(jq -r .stop_hook_active <<< "$input")" == "true" ]]; then exit 0; fi
if ! npm test >&2; then
  echo "The tests fail. Fix them." >&2
  exit 2
fi
"""
RALPH_SH = """#!/bin/bash
# Sends the agent back until the promise is in the transcript.
STATE=.claude/loop.local.md
[[ -f "$STATE" ]] || exit 0
if ! command -v jq > /dev/null; then
  echo "jq is missing" >&2
  exit 1
fi
jq -n --arg prompt "$(cat "$STATE")" '{"decision": "block", "reason": $prompt}'
"""
GATE_PY = """#!/usr/bin/env python3
import json
import sys


def main() -> int:
    event = json.load(sys.stdin)
    if event["stop_hook_active"]:
        return 0
    if "TODO" in open("PLAN.md").read():
        print("Finish the plan.", file=sys.stderr)
        return 2
    return 0


sys.exit(main())
"""
LOG_SH = """#!/bin/sh
command -v jq > /dev/null || exit 1
jq -c . >> "$HOME/stops.jsonl"
"""


class Case(NamedTuple):
    hooks: Any  # the `hooks` object, or a command at Stop
    files: Mapping[str, str] = MappingProxyType(
        {}
    )  # executable; a name that begins with "-" is not; "~/" is the home folder
    settings: Mapping[str, Any] = MappingProxyType({})  # further keys of the file
    found: tuple[str, ...] = ()  # errors and warnings; notes are not compared
    file: str = ".claude/settings.json"


def at(event: str, *hooks: dict[str, Any] | str, **group: Any) -> dict[str, Any]:
    entries = [{"type": "command", "command": hook} if isinstance(hook, str) else hook for hook in hooks]
    return {event: [{**group, "hooks": entries}]}


def command(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **fields}


CORRECT: dict[str, Case] = {
    "relative script": Case(".claude/hooks/stop.sh", {".claude/hooks/stop.sh": GATE_SH}),
    "relative script of an interpreter": Case(
        "bash .claude/hooks/stop.sh", {"-.claude/hooks/stop.sh": GATE_SH}
    ),
    "project variable": Case(
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/stop.sh', {".claude/hooks/stop.sh": GATE_SH}
    ),
    "project variable in braces": Case(
        '"${CLAUDE_PROJECT_DIR}/.claude/hooks/plan.py" --strict', {".claude/hooks/plan.py": GATE_PY}
    ),
    "project variable without quotes": Case(
        "$CLAUDE_PROJECT_DIR/.claude/hooks/stop.sh", {".claude/hooks/stop.sh": GATE_SH}
    ),
    "nested defaults": Case(
        '"${AGENTS_DIR:-${CLAUDE_PROJECT_DIR:-$(git rev-parse --show-toplevel)}}"/hooks/stop.sh',
    ),
    "python with a quoted path": Case(
        'python3 "$CLAUDE_PROJECT_DIR/.claude/hooks/plan.py"', {"-.claude/hooks/plan.py": GATE_PY}
    ),
    "everything quoted": Case('"python3" "scripts/plan.py" "--all"', {"-scripts/plan.py": GATE_PY}),
    "uv script": Case(
        'uv run --script "$CLAUDE_PROJECT_DIR/.claude/hooks/plan.py"', {"-.claude/hooks/plan.py": GATE_PY}
    ),
    "node script": Case(
        'node "$CLAUDE_PROJECT_DIR/.claude/hooks/stop.mjs"',
        {"-.claude/hooks/stop.mjs": "if (process.env.X) process.exit(2);\n"},
    ),
    "script in the home folder": Case("~/.claude/hooks/stop.sh", {"~/.claude/hooks/stop.sh": GATE_SH}),
    "script in $HOME": Case('bash "$HOME/.claude/hooks/stop.sh"', {"~/.claude/hooks/stop.sh": GATE_SH}),
    "variable of the settings": Case(
        'bash "$HOOKS/stop.sh"', {"tools/stop.sh": GATE_SH}, {"env": {"HOOKS": "tools"}}
    ),
    "variable of the command": Case(
        'HOOKS="$CLAUDE_PROJECT_DIR/tools"; bash "$HOOKS/stop.sh"', {"tools/stop.sh": GATE_SH}
    ),
    "name with a blank": Case("'scripts/my gate.sh'", {"scripts/my gate.sh": GATE_SH}),
    "tests as a gate": Case("npm test >&2 || exit 2"),
    "tests as a gate with JSON": Case(
        """npm test > /dev/null 2>&1 || echo '{"decision": "block", "reason": "Fix the tests."}'"""
    ),
    "output through a filter": Case("pytest -q 2>&1 | tail -5 >&2 && exit 0 || exit 2"),
    "both outputs to stderr": Case("pytest -q >&2 2>&1 || exit 2"),
    "tests as a gate in a subfolder": Case(
        "cd web && npm run lint >&2 || exit 2", {"web/package.json": "{}"}
    ),
    "tests as a gate with a message": Case('npm test >&2 || { echo "Fix the tests." >&2; exit 2; }'),
    "bash -c": Case("bash -c 'npm test >&2 || exit 2'"),
    "make ends with 2": Case("make test"),
    "tests whose failure blocks": Case(at("Stop", command("pytest -q", blocking=True))),
    "failure of a guard blocks": Case(
        at("PreToolUse", command("npm run lint", onFailure="block"), matcher="Bash"),
    ),
    "matcher that matches everything": Case(at("Stop", "make", matcher=".*")),
    "tests that only observe": Case(at("Stop", command("pytest -q", mode="observe"))),
    "tests in the background": Case(at("Stop", command("npm test", **{"async": True}))),
    "tests that are only shown": Case("pytest -q || true"),
    "condition": Case("if [ -f package.json ]; then npm test >&2 || exit 2; fi"),
    "silent check with a message": Case("test -s CHANGELOG.md || { echo 'Write it.' >&2; exit 2; }"),
    "condition with a message": Case("if ! grep -q x y; then echo 'Write it.' >&2; exit 2; fi"),
    "output of the check is the reason": Case("npm test >&2 || { echo 'Fix the tests.'; exit 2; }"),
    "condition with JSON": Case(
        "scripts/x.sh",
        {
            "scripts/x.sh": """#!/bin/sh\necho checking >&2\nif ! test -s X; then\n"""
            """  echo '{"decision": "block", "reason": "no"}'\nfi\n"""
        },
    ),
    "condition of another command": Case("test -d web && make -C web"),
    "silent checks of a script that goes on": Case(
        "scripts/x.sh", {"scripts/x.sh": "#!/bin/sh\ntest -s PLAN.md\nmake >&2 || exit 2\n"}
    ),
    "clean tree": Case('test -z "$(git status --porcelain)" || { echo "Commit first." >&2; exit 2; }'),
    "guarded script": Case("[ -f .claude/hooks/local.sh ] && bash .claude/hooks/local.sh"),
    "guarded program": Case("command -v osascript >/dev/null && osascript -e 'display notification' || true"),
    "promise loop": Case(
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/ralph.sh', {".claude/hooks/ralph.sh": RALPH_SH}
    ),
    "log": Case('"$CLAUDE_PROJECT_DIR"/.claude/hooks/log.sh', {".claude/hooks/log.sh": LOG_SH}),
    "append to a log": Case('echo "$(date) stop" >> ~/.claude/stops.log'),
    "notification": Case(at("Stop", command("notify-send done", timeout=5), matcher="")),
    "script without a shebang": Case("sh scripts/gate.sh", {"-scripts/gate.sh": "grep x y >&2 || exit 2\n"}),
    "env -S": Case(
        "scripts/gate.py", {"scripts/gate.py": "#!/usr/bin/env -S uv run --script\nraise SystemExit(2)\n"}
    ),
    "Windows lines in Python": Case("python3 gate.py", {"-gate.py": "import sys\r\nsys.exit(2)\r\n"}),
    "bash": Case(at("Stop", command("[[ -f PLAN.md ]] && exit 2 || exit 0", shell="bash"))),
    "program without a shell": Case(
        at("Stop", command("node", args=["${CLAUDE_PROJECT_DIR}/gate.js"])), {"-gate.js": "process.exit(2)\n"}
    ),
    "long timeouts": Case(
        at(
            "Stop",
            *(command(f"make check-{seconds}", timeout=seconds) for seconds in (600, 1800, 3600, 7200)),
        )
    ),
    "keys of other programs": Case(
        at(
            "Stop",
            command(
                "make",
                statusMessage="Testing",
                description="tests",
                once=True,
                asyncRewake=True,
                rewakeMessage="done",
                commandWindows="make.cmd",
            ),
        ),
        settings={
            "permissions": {"allow": ["Bash(make:*)"]},
            "model": "opus",
            "statusLine": {"type": "command"},
        },
    ),
    "comments": Case(
        {
            "_comment": "what each hook is for",
            "// Stop": "the gates",
            **at("Stop", {**command("make"), "_why": "it must build"}, _comment="gates"),
        },
        settings={"_note": "shared"},
    ),
    "events of Claude Code": Case(
        {**at("Notification", "notify-send"), **at("SessionStart", "cat CONTEXT.md")}
    ),
    "matcher of subagents": Case(at("SubagentStop", "make", matcher="code-reviewer|tester")),
    "tool hooks": Case(
        {
            **at("PreToolUse", "echo 'rm is not allowed' >&2; exit 2", matcher="Bash"),
            **at(
                "PostToolUse",
                "jq -r '.tool_input.file_path' | xargs npx prettier --write",
                matcher="Edit|Write",
            ),
        }
    ),
    "formatter after an edit": Case(at("PostToolUse", "npx eslint --fix .", matcher="Edit")),
    "prompt hook": Case(
        at("Stop", {"type": "prompt", "prompt": "Are all tasks done? $ARGUMENTS", "timeout": 30})
    ),
    "prompt hooks on tool events": Case(
        {
            **at("PreToolUse", {"type": "prompt", "prompt": "Is this safe? $ARGUMENTS"}, matcher="Bash"),
            **at("UserPromptSubmit", {"type": "prompt", "prompt": "Is this about the project?"}),
            **at("PostToolUse", {"type": "agent", "prompt": "Was the file formatted?"}, matcher="Write"),
        }
    ),
    "http hook": Case(
        at(
            "Stop",
            {
                "type": "http",
                "url": "http://localhost:8080/stop",
                "headers": {"Authorization": "Bearer $TOKEN"},
                "allowedEnvVars": ["TOKEN"],
            },
        )
    ),
    "turngate's own file": Case(
        "scripts/stop.sh", {"scripts/stop.sh": GATE_SH}, file=".turngate/settings.json"
    ),
    "local file": Case("scripts/stop.sh", {"scripts/stop.sh": GATE_SH}, file=".mux/settings.local.json"),
    "here-document": Case("cat <<'EOF' >&2\nRun the tests first.\nEOF\n[ -f .tests-passed ] || exit 2"),
    "block with a reason of a run": Case(
        "scripts/x.sh",
        {
            "scripts/x.sh": """#!/bin/sh\nout=$(pytest -q)\n"""
            """echo "{\\"decision\\":\\"block\\",\\"reason\\":\\"$out\\"}"\n"""
        },
    ),
    "block with exit 1 on a condition": Case(
        """test -s X || { echo '{"decision": "block", "reason": "no"}'; exit 1; }"""
    ),
    "exit 2 after a check that exits": Case("pytest -q >&2 && exit 0; exit 2"),
    "optional program": Case("bundle x || { echo 'bundle is missing' >&2; exit 0; }"),
    "optional program on a condition": Case("if ! bundle x; then echo 'no bundle' >&2; fi"),
    "program that is looked for": Case(
        "command -v bundle > /dev/null || exit 0; bundle x || { echo no >&2; exit 2; }"
    ),
    "optional script": Case("bash ~/.claude/hooks/mine.sh 2>/dev/null || true"),
    "timeout in front": Case("timeout 60 bash scripts/stop.sh", {"scripts/stop.sh": GATE_SH}),
}


BLOCK = '{"decision": "block", "reason": "no"}'
EVERY_TIME = (
    "warning: blocks every time, whatever the agent did, so the agent is sent back until the limit is reached"
)
LOST = "warning: prints a block that cannot be read or has no reason: this hook can never block"
# A hook that prints this at every stop does not block.
LOST_BLOCKS = {
    "block after text in its line": f"echo 'result: {BLOCK}'",
    "block in a code fence": f"printf '```json\\n%s\\n```\\n' '{BLOCK}'",
    "block after an escape sequence": f"printf '\\033[0m%s' '{BLOCK}'",
    "block without a reason": """echo '{"decision": "block"}'""",
    "block with an empty reason": """echo '{"decision": "block", "reason": ""}'""",
    "block in single quotes": """echo "{'decision': 'block', 'reason': 'x'}\"""",
    "block of a specific output": (
        """echo '{"hookSpecificOutput": {"hookEventName": "Stop", "decision": "block", "reason": "x"}}'"""
    ),
    "block after text on a condition": f"test -s X || echo 'result: {BLOCK}'",
}


def gone(name: str) -> str:
    return f"error: {name} does not exist, {FAILS}"


def no_program(name: str) -> str:
    return f"error: the program {name} is not in the PATH, {FAILS}"


def never(text: str) -> str:
    return f"warning: {text} does not end with exit code 2 when it fails, {NEVER}"


def silent(text: str) -> str:
    return (
        f"warning: the output of {text} does not go to stderr, so exit code 2 comes without a reason "
        "and does not block"
    )


def unread_json(text: str, where: str = "") -> str:
    return (
        f"warning: {where}the output of {text} comes before the JSON, which is then not read: "
        "this hook can never block"
    )


def exits_with_1(script: str) -> str:
    return (
        f"warning: {script} ends with exit code 1 and never with 2, "
        "and only exit code 2 blocks: it can never block"
    )


DEFECT: dict[str, Case] = {
    "relative script missing": Case(".claude/hooks/stop.sh", found=(gone(".claude/hooks/stop.sh"),)),
    "project script missing": Case(
        'bash "$CLAUDE_PROJECT_DIR"/.claude/hooks/stop.sh', found=(gone(".claude/hooks/stop.sh"),)
    ),
    "home script missing": Case("~/.claude/hooks/stop.sh", found=(gone("~/.claude/hooks/stop.sh"),)),
    "home script of an interpreter missing": Case(
        "python3 ~/.claude/hooks/stop.py", found=(gone("~/.claude/hooks/stop.py"),)
    ),
    "$HOME script missing": Case("$HOME/.claude/hooks/stop.sh", found=(gone("~/.claude/hooks/stop.sh"),)),
    "${HOME} script missing": Case('bash "${HOME}/hooks/stop.sh" --all', found=(gone("~/hooks/stop.sh"),)),
    "variable of the settings leads nowhere": Case(
        '"$HOOKS/stop.sh"',
        settings={"env": {"HOOKS": "/opt/no/hooks"}},
        found=(gone("/opt/no/hooks/stop.sh"),),
    ),
    "variable of the hook leads nowhere": Case(
        at("Stop", command('sh "$HOOKS/stop.sh"', env={"HOOKS": "/opt/no"})),
        found=(gone("/opt/no/stop.sh"),),
    ),
    "variable of the command leads nowhere": Case(
        'HOOKS=~/hooks && bash "$HOOKS/stop.sh"', found=(gone("~/hooks/stop.sh"),)
    ),
    "exported variable leads nowhere": Case(
        "export HOOKS=/opt/no; python3 $HOOKS/stop.py", found=(gone("/opt/no/stop.py"),)
    ),
    "variable not set": Case(
        '"$MY_HOOKS"/stop.sh',
        found=("error: $MY_HOOKS is not set, so /stop.sh does not exist and the hook fails at every run",),
    ),
    "quoted program and script": Case('"python3" "scripts/x.py"', found=(gone("scripts/x.py"),)),
    "quoted script with a blank": Case("'my script.sh'", found=(no_program("my script.sh"),)),
    "quoted path with a blank": Case("'./my script.sh' --all", found=(gone("./my script.sh"),)),
    "script of bash -c missing": Case('bash -c "scripts/x.sh --all"', found=(gone("scripts/x.sh"),)),
    "script after a cd missing": Case(
        "cd web && bash check.sh", {"web/package.json": "{}"}, found=(gone("check.sh"),)
    ),
    "folder missing": Case("cd web && make", found=(f"error: the folder web does not exist, {EITHER}",)),
    "folder of a gate missing": Case(
        "cd web && make >&2 || exit 2",
        found=("error: the folder web does not exist, so the hook blocks at every run",),
    ),
    "program before a condition missing": Case(
        "scripts/x.sh",
        {"scripts/x.sh": "#!/bin/sh\nbundle x >&2\nif [ $? -ne 0 ]; then echo no >&2; exit 2; fi\n"},
        found=(f"error: scripts/x.sh: the program bundle is not in the PATH, {EITHER}",),
    ),
    "program of a pipeline missing": Case(
        "bundle x | grep -q x || { echo no >&2; exit 2; }",
        found=(f"error: the program bundle is not in the PATH, {EITHER}",),
    ),
    "program of bash -c in a gate missing": Case(
        "bash -lc 'bundle x' >&2 || exit 2", found=(BLOCKS.format("bundle"),)
    ),
    "folder instead of a program": Case(
        ".claude", found=(f"error: .claude is a folder, expected a program, {FAILS}",)
    ),
    "script behind timeout and env missing": Case(
        "timeout 60 env CI=1 node scripts/gate.js", found=(gone("scripts/gate.js"),)
    ),
    "script of uv missing": Case("uv run hooks/gate.py", found=(gone("hooks/gate.py"),)),
    "plugin variable outside of a plugin": Case(
        '"${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh"',
        found=(f"error: uses $CLAUDE_PLUGIN_ROOT, which only hooks of a plugin have, {FAILS}",),
    ),
    "configuration of a plugin": Case(
        at("Stop", {"type": "http", "url": "${user_config.endpoint}/stop"}),
        found=(f"error: uses ${{user_config.endpoint}}, which Turngate does not replace, {FAILS}",),
    ),
    "interpreter missing": Case(
        "python3.99 gate.py", {"gate.py": GATE_PY}, found=(no_program("python3.99"),)
    ),
    "program missing": Case("pnpx vitest run", found=(no_program("pnpx"),)),
    "program of a gate missing": Case("bundle exec rake >&2 || exit 2", found=(BLOCKS.format("bundle"),)),
    "script of a gate missing": Case(
        "./gone.sh >&2 || exit 2",
        found=("error: ./gone.sh does not exist, so the hook blocks at every run",),
    ),
    "program of a gate without its messages missing": Case(
        "bundle exec rake > log 2>&1 || exit 2", found=(no_program("bundle"),)
    ),
    "program of a gate with a message missing": Case(
        "bundle x || { echo no >&2; exit 2; }", found=(BLOCKS.format("bundle"),)
    ),
    "program of a gate on several lines missing": Case(
        "cat > /dev/null\nbundle x > /dev/null 2>&1 || {\n  echo no >&2\n  exit 2\n}\nexit 0",
        found=(BLOCKS.format("bundle"),),
    ),
    "program of a condition missing": Case(
        "if ! bundle x; then echo no >&2; exit 2; fi", found=(BLOCKS.format("bundle"),)
    ),
    "program of a gate with a message in a script missing": Case(
        "scripts/x.sh",
        {"scripts/x.sh": "#!/bin/sh\nmise run check || {\n  echo no >&2\n  exit 2\n}\nmake\n"},
        found=(BLOCKS.format("mise").replace("the program", "scripts/x.sh: the program"),),
    ),
    "program in a script missing": Case(
        "scripts/x.sh",
        {"scripts/x.sh": "#!/bin/sh\nmise run check >&2 || exit 2\n"},
        found=(BLOCKS.format("mise").replace("the program", "scripts/x.sh: the program"),),
    ),
    "not executable": Case(
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/stop.sh',
        {"-.claude/hooks/stop.sh": GATE_SH},
        found=(f"error: .claude/hooks/stop.sh is not executable, {FAILS}",),
    ),
    "folder instead of a script": Case(
        "./scripts",
        {"scripts/x.sh": GATE_SH},
        found=(f"error: ./scripts is a folder, expected a program, {FAILS}",),
    ),
    "interpreter of the script missing": Case(
        "scripts/x.py",
        {"scripts/x.py": GATE_PY.replace("/usr/bin/env python3", "/usr/bin/pyhton3")},
        found=(f"error: scripts/x.py begins with #!/usr/bin/pyhton3, which does not exist, {FAILS}",),
    ),
    "program of env missing": Case(
        "scripts/x.py",
        {"scripts/x.py": GATE_PY.replace("python3", "pyhton3")},
        found=(
            (
                "error: scripts/x.py begins with #!/usr/bin/env pyhton3, and the program pyhton3 is not in the PATH, "
                f"{FAILS}"
            ),
        ),
    ),
    "env with two words": Case(
        "scripts/x.py",
        {"scripts/x.py": GATE_PY.replace("python3", "python3 -u")},
        found=(
            (
                "error: scripts/x.py begins with #!/usr/bin/env python3 -u, where 'python3 -u' is taken for one program, "
                f"{FAILS}"
            ),
        ),
    ),
    "relative interpreter": Case(
        "scripts/x.py",
        {"scripts/x.py": GATE_PY.replace("/usr/bin/env ", "")},
        found=(f"error: scripts/x.py begins with #!python3, which is not an absolute path, {FAILS}",),
    ),
    "Python without a shebang": Case(
        "scripts/x.py",
        {"scripts/x.py": GATE_PY.partition("\n")[2]},
        found=(
            "error: scripts/x.py has no #! line, so it is read as a shell script, and the hook fails at every run",
        ),
    ),
    "Windows lines": Case(
        "scripts/x.sh",
        {"scripts/x.sh": GATE_SH.replace("\n", "\r\n")},
        found=(f"error: scripts/x.sh has Windows line endings (CRLF), {FAILS}",),
    ),
    "Windows lines in a script of sh": Case(
        "sh scripts/x.sh",
        {"-scripts/x.sh": "grep -q x y ||\r\n  exit 2\r\n"},
        found=(f"error: scripts/x.sh has Windows line endings (CRLF), {EITHER}",),
    ),
    "pytest": Case("pytest -q", found=(never("pytest -q"),)),
    "npm chain": Case("npm test && npm run lint", found=(never("npm test"),)),
    "check behind runners": Case(
        "uv run python -m pytest -x tests", found=(never("uv run python -m pytest -x tests"),)
    ),
    "check in a subfolder": Case(
        "cd web && npx eslint .", {"web/package.json": "{}"}, found=(never("npx eslint ."),)
    ),
    "check before a tool": Case(
        at("PreToolUse", "npm run lint", matcher="Bash"), found=(never("npm run lint"),)
    ),
    "check of a subagent": Case(at("SubagentStop", "cargo test"), found=(never("cargo test"),)),
    "check in bash -c": Case('bash -c "npm run lint && npm test"', found=(never("npm run lint"),)),
    "check in a script": Case(
        "scripts/x.sh",
        {"scripts/x.sh": "#!/bin/sh\nset -e\nnpm run lint\nnpm test\n"},
        found=("warning: scripts/x.sh: npm run lint does not end with exit code 2 when it fails, " + NEVER,),
    ),
    "check with a filter": Case(
        "npm test 2>&1 | tail -20",
        found=("warning: the exit code is that of tail, not of npm test: this hook can never block",),
    ),
    "exit 1": Case(
        "npm test >&2 || exit 1",
        found=(f"warning: ends with exit code 1 when npm test fails, {NEVER}",),
    ),
    "exit 2 without a reason": Case(
        "pytest -q || exit 2",
        found=(silent("pytest -q"),),
    ),
    "redirections in the wrong order": Case(
        "npm test 2>&1 >&2 || exit 2",
        found=(silent("npm test"),),
    ),
    "output thrown away": Case(
        "cargo test > /dev/null 2>&1 || exit 2",
        found=(silent("cargo test"),),
    ),
    "text before JSON": Case(
        """npm test 2>&1 || echo '{"decision": "block", "reason": "tests fail"}'""",
        found=(unread_json("npm test"),),
    ),
    "text before JSON in a script": Case(
        "scripts/x.sh",
        {"scripts/x.sh": """#!/bin/sh\necho checking\necho '{"decision": "block", "reason": "no"}'\n"""},
        found=(unread_json("echo checking", "scripts/x.sh: "),),
    ),
    "shell script with exit 1": Case(
        "scripts/quality-gate.sh",
        {"scripts/quality-gate.sh": GATE_SH.replace("exit 2", "exit 1")},
        found=(exits_with_1("scripts/quality-gate.sh"),),
    ),
    "Python script with exit 1": Case(
        "python3 scripts/validate_plan.py",
        {"-scripts/validate_plan.py": GATE_PY.replace("return 2", "return 1")},
        found=(exits_with_1("scripts/validate_plan.py"),),
    ),
    "Node script with exit 1": Case(
        "node scripts/check.js",
        {"-scripts/check.js": "if (process.env.X) process.exit(1);\nprocess.exit(0);\n"},
        found=(exits_with_1("scripts/check.js"),),
    ),
    "silent check": Case("grep -q zzz CHANGELOG.md", found=(never("grep -q zzz CHANGELOG.md"),)),
    "silent test": Case("test -s NOPE.md", found=(never("test -s NOPE.md"),)),
    "silent test with exit 1": Case(
        "test -s NOPE.md || exit 1",
        found=(f"warning: ends with exit code 1 when test -s NOPE.md fails, {NEVER}",),
    ),
    "silent test with exit 1 in a group": Case(
        "test -s NOPE.md || { echo no >&2; exit 1; }",
        found=(f"warning: ends with exit code 1, {NEVER}",),
    ),
    "silent test without a reason": Case(
        "test -s NOPE.md >&2 || exit 2",
        found=(
            (
                "warning: test -s NOPE.md prints nothing, so exit code 2 comes without a reason: "
                "this hook can never block"
            ),
        ),
    ),
    "reason on stdout": Case("echo 'no changelog'; exit 2", found=(ON_STDOUT,)),
    "reason on stdout in a group": Case("test -s X || { echo 'no'; exit 2; }", found=(ON_STDOUT,)),
    "reason on stdout after a condition": Case(
        "if ! git diff --quiet; then echo 'commit first'; exit 2; fi", found=(ON_STDOUT,)
    ),
    "reason on stdout in a script": Case(
        "scripts/x.sh",
        {"scripts/x.sh": "#!/bin/sh\n# a gate\nif [ ! -s X ]; then\n  echo no\n  exit 2\nfi\nexit 0\n"},
        found=(ON_STDOUT.replace("exits", "scripts/x.sh: exits"),),
    ),
    "exit 2 alone": Case(
        "exit 2", found=("warning: exits with 2 without a reason on stderr: this hook can never block",)
    ),
    "text before JSON on a condition": Case(
        "scripts/x.sh",
        {
            "scripts/x.sh": """#!/bin/sh\necho "Checking…"\nif [ ! -s X ]; then\n"""
            """  echo '{"decision": "block", "reason": "no"}'\nfi\n"""
        },
        found=(unread_json("echo Checking…", "scripts/x.sh: "),),
    ),
    "text before JSON in a branch": Case(
        """if [ ! -s X ]; then echo missing; echo '{"decision": "block", "reason": "no"}'; fi""",
        found=(unread_json("echo missing"),),
    ),
    "script with exit 1 and any name": Case(
        "scripts/changelog.sh",
        {"scripts/changelog.sh": GATE_SH.replace("exit 2", "exit 1")},
        found=(exits_with_1("scripts/changelog.sh"),),
    ),
    "blocks every time": Case("echo 'keep going' >&2; exit 2", found=(EVERY_TIME,)),
    "blocks every time with JSON": Case(f"echo '{BLOCK}'", found=(EVERY_TIME,)),
    "blocks every time with JSON of printf": Case(f"printf '%s\\n' '{BLOCK}'", found=(EVERY_TIME,)),
    "blocks every time with JSON and exit 1": Case(f"echo '{BLOCK}'; exit 1", found=(EVERY_TIME,)),
    "blocks every time with the output of a program": Case("date >&2; exit 2", found=(EVERY_TIME,)),
    "blocks every time after a check": Case("pytest -q >&2; exit 2", found=(EVERY_TIME,)),
    "block on stderr": Case(
        f"echo '{BLOCK}' >&2",
        found=(
            "warning: prints its block to stderr, and JSON is only read from stdout: this hook can never block",
        ),
    ),
    **{name: Case(text, found=(LOST,)) for name, text in LOST_BLOCKS.items()},
    "never ends": Case(
        "npm run dev", found=("warning: npm run dev never ends, so the hook times out at every run",)
    ),
    "milliseconds": Case(
        at("Stop", command("make", timeout=30000)), found=("warning: is 30000, which is read as seconds",)
    ),
    "milliseconds of the section": Case(
        {},
        settings={"turngate": {"stopBudget": 60000, "defaults": {"command": 5000, "Stop": {"http": 30000}}}},
        found=(
            "warning: is 60000, which is read as seconds",
            "warning: is 5000, which is read as seconds",
            "warning: is 30000, which is read as seconds",
        ),
    ),
    "timeout beyond every clock": Case(
        at("Stop", command("make", timeout=1e12)),
        found=("error: is 1000000000000.0, expected at most 1,000,000,000 seconds: the hook is left out",),
    ),
    "keys of a hook in its group": Case(
        at("Stop", "make", timeout=30, mode="observe", blocking=True),
        found=("warning: is a key of a hook, not of a group: ignored",) * 3,
    ),
    "matcher with a typing error": Case(
        at("PreToolUse", "make", macher="Bash"),
        found=("warning: is not a key that Turngate knows: ignored",),
    ),
    "timeout as text": Case(
        at("Stop", command("make", timeout="30")),
        found=('error: is "30", expected a number of seconds above 0: the hook is left out',),
    ),
    "event with a small letter": Case(
        at("stop", "make"), found=("warning: is not a known event, so its hooks never run",)
    ),
    "event with a typing error": Case(
        at("SubAgentStop", "make"), found=("warning: is not a known event, so its hooks never run",)
    ),
    "entry without its group": Case(
        {"Stop": [command("make")]}, found=("error: is a hook, expected a group with an inner `hooks` list",)
    ),
    "type missing": Case(
        {"Stop": [{"hooks": [{"command": "make"}]}]},
        found=(f"error: is missing, expected one of {LISTED_SETTINGS_KINDS}",),
    ),
    "arguments of numbers": Case(
        at("Stop", command("make", args=["-j", 4])),
        found=("error: is a list with 4 in it, expected a list of strings: the hook is left out",),
    ),
    "bash syntax": Case(
        "[[ -f PLAN.md ]] && exit 2 || exit 0", found=("warning: uses bash syntax, but /bin/sh runs it",)
    ),
    "matcher at Stop": Case(
        at("Stop", "make", matcher="Bash"),
        found=("warning: is 'Bash', which has no effect on Stop: the hooks run at every Stop",),
    ),
    "http without encryption": Case(
        at("Stop", {"type": "http", "url": "http://hooks.example.com/stop"}),
        found=(
            (
                "error: http://hooks.example.com/stop is not encrypted: use https, or allow it in `turngate.allowedUrls` "
                "of your user settings; so the hook fails at every run"
            ),
        ),
    ),
    "unknown plugin": Case(
        {},
        settings={"turngate": {"plugins": ["slak"]}},
        found=("error: enables the plugin 'slak', which is not installed, so `turngate run` does not start",),
    ),
    "tilde without a shell": Case(
        at("Stop", command("~/hooks/stop.sh", args=["--all"])),
        {"~/hooks/stop.sh": GATE_SH},
        found=(
            "error: ~/hooks/stop.sh does not exist: with `args` no shell is involved, which would expand ~",
        ),
    ),
}


PLUGIN: dict[str, Case] = {  # `files` are those of the plugin
    "script": Case(at("Stop", "${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh"), {"hooks/stop.sh": GATE_SH}),
    "quoted script": Case(
        at("Stop", 'bash "${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh" stop'), {"-hooks/stop.sh": GATE_SH}
    ),
    "script without a shell": Case(
        at("Stop", command("node", args=["${CLAUDE_PLUGIN_ROOT}/stop.js"])), {"-stop.js": "process.exit(2)\n"}
    ),
    "data folder": Case(
        at("Stop", 'sh "$CLAUDE_PLUGIN_ROOT"/stop.sh --state "${CLAUDE_PLUGIN_DATA}"'), {"-stop.sh": GATE_SH}
    ),
    "configuration": Case(
        at("Stop", "curl -d @- ${user_config.endpoint}"),
        found=(f"error: uses ${{user_config.endpoint}}, which Turngate does not replace, {FAILS}",),
    ),
    "script missing": Case(
        at("Stop", "${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh"), found=(gone("tools/plugin/hooks/stop.sh"),)
    ),
    "quoted script missing": Case(
        at("SubagentStop", 'python3 "${CLAUDE_PLUGIN_ROOT}/stop.py"'),
        found=(gone("tools/plugin/stop.py"),),
    ),
    "script without a shell missing": Case(
        at("Stop", command("node", args=["${CLAUDE_PLUGIN_ROOT}/stop.js"])),
        found=(gone("tools/plugin/stop.js"),),
    ),
    "script not executable": Case(
        at("Stop", '"$CLAUDE_PLUGIN_ROOT"/stop.sh'),
        {"-stop.sh": GATE_SH},
        found=(f"error: tools/plugin/stop.sh is not executable, {FAILS}",),
    ),
}


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every machine the same programs."""
    for name in PROGRAMS.split():
        script(tmp_path / "bin" / name, "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def findings(
    case: Case, project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[str]]:
    """Write the configuration and return the exit code of `check` and its errors and warnings."""
    for name, text in case.files.items():
        path = name.removeprefix("-")
        target = home / path[2:] if path.startswith("~/") else project / path
        script(target, text, 0o644 if name.startswith("-") else 0o755)
    file = project / case.file
    file.parent.mkdir(exist_ok=True)
    hooks = at("Stop", case.hooks) if isinstance(case.hooks, str) else case.hooks
    file.write_text(json.dumps({"hooks": hooks, **case.settings}))
    code = main(["check", "--json", "--project", str(project)])
    problems = json.loads(capsys.readouterr().out)["problems"]
    return code, [f"{p['severity']}: {p['message']}" for p in problems if p["severity"] != "note"]


@pytest.mark.parametrize("case", CORRECT.values(), ids=CORRECT)
def test_a_correct_configuration_has_no_findings(
    case: Case, project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert findings(case, project, home, capsys) == (0, [])


@pytest.mark.parametrize("case", DEFECT.values(), ids=DEFECT)
def test_a_defect_is_the_only_finding(
    case: Case, project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert findings(case, project, home, capsys) == (1, [*case.found])


@pytest.mark.parametrize("case", PLUGIN.values(), ids=PLUGIN)
def test_the_hooks_of_a_plugin_are_checked(
    case: Case, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = project / "tools" / "plugin"
    for name, text in case.files.items():
        script(plugin / name.removeprefix("-"), text, 0o644 if name.startswith("-") else 0o755)
    script(plugin / "hooks" / "hooks.json", json.dumps({"hooks": case.hooks}), 0o644)
    code = main(["check", "--json", "--project", str(project), "--plugin-dir", str(plugin)])
    problems = json.loads(capsys.readouterr().out)["problems"]
    found = [f"{p['severity']}: {p['message']}" for p in problems if p["severity"] != "note"]
    assert (code, found) == (int(bool(case.found)), [*case.found])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty, so it has no hooks"),
        (
            json.dumps({"hooks": at("Stop", "pytest -q || true")}),
            "`|| true` hides the result of pytest -q: this hook can never block",
        ),
    ],
)
def test_what_may_be_meant_is_a_note(
    text: str, message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script(project / ".turngate" / "settings.json", text, 0o644)
    code = main(["check", "--json", "--project", str(project)])
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert (code, [(p["severity"], p["message"]) for p in problems]) == (0, [("note", message)])


def test_the_corpus_is_large_and_balanced() -> None:
    assert (len(CORRECT) >= 50, len(DEFECT) >= 50) == (True, True)
