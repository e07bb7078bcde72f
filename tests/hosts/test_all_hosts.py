"""The answers of each host, to the byte; and the data of all hosts."""

import pytest

from tests.hosts.recordings import FOLDER
from turngate.hosts.all_hosts import HOSTS, PORTABLE
from turngate.hosts.host import HostAnswer, HostOutput
from turngate.transcript.format_detection import CALLS

CAPPED = "Turn ended after 3 continuations (the limit). Still blocked by: tests."
FAILED = '! hook "tests" failed and was NOT enforced: exit code 1'
MISSING = '! hook "tests" failed and was NOT enforced: no-such-program: not found'

# A text, and how it appears in JSON.
TEXTS = {
    "plain": ("2 failed", "2 failed"),
    "not ASCII": ("prüfe 日本 😀", "pr\\u00fcfe \\u65e5\\u672c \\ud83d\\ude00"),
    "several lines": ('a\n\n"b"\tc\\\r\n', 'a\\n\\n\\"b\\"\\tc\\\\\\r\\n'),
    "controls": ("\x00\x1b[31m\u2028", "\\u0000\\u001b[31m\\u2028"),
    "a megabyte": ("x" * 1_000_000, "x" * 1_000_000),
}

# Case: the answer. `%s` is the text.
CASES: dict[str, HostAnswer] = {
    "allow": HostAnswer(decision="allow"),
    "block": HostAnswer(decision="block", reason="%s"),
    "block, and a gate failed": HostAnswer(decision="block", reason="%s", notices=(FAILED,)),
    "halt": HostAnswer(decision="halt", reason="%s"),
    "halt, and a gate failed": HostAnswer(decision="halt", reason="%s", notices=(FAILED,)),
    "capped": HostAnswer(decision="allow", notices=(CAPPED, "the last reason: %s")),
    "a hook failed": HostAnswer(decision="allow", notices=(FAILED,)),
    "a gate could not run": HostAnswer(decision="allow", notices=(MISSING,)),
}

JSON_FAILED, JSON_MISSING = FAILED.replace('"', '\\"'), MISSING.replace('"', '\\"')
CLAUDE = {
    "allow": "",
    "block": '{"decision":"block","reason":"%s"}',
    "block, and a gate failed": '{"decision":"block","reason":"%s","systemMessage":"' + JSON_FAILED + '"}',
    "halt": '{"continue":false,"stopReason":"%s"}',
    "halt, and a gate failed": '{"continue":false,"stopReason":"%s","systemMessage":"' + JSON_FAILED + '"}',
    "capped": '{"systemMessage":"' + CAPPED + '\\nthe last reason: %s"}',
    "a hook failed": '{"systemMessage":"' + JSON_FAILED + '"}',
    "a gate could not run": '{"systemMessage":"' + JSON_MISSING + '"}',
}
HALT_AS_NOTICE = {
    **CLAUDE,
    "halt": '{"systemMessage":"halted by a hook: %s"}',
    "halt, and a gate failed": '{"systemMessage":"halted by a hook: %s\\n' + JSON_FAILED + '"}',
}
BLOCK_ALONE = {
    **dict.fromkeys(CASES, ""),
    "block": '{"decision":"block","reason":"%s"}',
    "block, and a gate failed": '{"decision":"block","reason":"%s"}',
}
BLOCK_OF_VSCODE = '"hookSpecificOutput":{"hookEventName":"Stop","decision":"block","reason":"%s"}'
STDOUT: dict[str, dict[str, str]] = {
    "claude": CLAUDE,
    "codex": CLAUDE,
    "droid": CLAUDE,
    "gemini": {
        **CLAUDE,
        "block, and a gate failed": '{"decision":"block","reason":"%s","systemMessage":"%s\\n'
        + JSON_FAILED
        + '"}',
        "halt, and a gate failed": '{"continue":false,"stopReason":"%s","systemMessage":"%s\\n'
        + JSON_FAILED
        + '"}',
    },
    "qwen": HALT_AS_NOTICE,
    "opencode": HALT_AS_NOTICE,
    "kimi": dict.fromkeys(CASES, ""),
    "kiro": BLOCK_ALONE,
    "vscode": {
        **CLAUDE,
        "block": '{"decision":"block","reason":"%s",' + BLOCK_OF_VSCODE + "}",
        "block, and a gate failed": '{"decision":"block","reason":"%s",'
        + BLOCK_OF_VSCODE
        + ',"systemMessage":"'
        + JSON_FAILED
        + '"}',
    },
    "copilot": {
        "allow": "",
        "block": '{"decision":"block","reason":"%s"}',
        "block, and a gate failed": '{"decision":"block","reason":"%s"}',
        "halt": '{"type":"progress","message":"halted by a hook: %s"}',
        "halt, and a gate failed": '{"type":"progress","message":"halted by a hook: %s"}\n'
        '{"type":"progress","message":"' + JSON_FAILED + '"}',
        "capped": '{"type":"progress","message":"' + CAPPED + '"}\n'
        '{"type":"progress","message":"the last reason: %s"}',
        "a hook failed": '{"type":"progress","message":"' + JSON_FAILED + '"}',
        "a gate could not run": '{"type":"progress","message":"' + JSON_MISSING + '"}',
    },
    "cursor": {
        **dict.fromkeys(CASES, ""),
        "block": '{"followup_message":"%s"}',
        "block, and a gate failed": '{"followup_message":"%s"}',
    },
    "portable": BLOCK_ALONE,
}
NOTICES = {
    **dict.fromkeys(CASES, ""),
    "block, and a gate failed": FAILED,
    "halt": "halted by a hook: %s",
    "halt, and a gate failed": f"halted by a hook: %s\n{FAILED}",
    "capped": f"{CAPPED}\nthe last reason: %s",
    "a hook failed": FAILED,
    "a gate could not run": MISSING,
}
STDERR = {
    "portable": NOTICES,
    "kiro": NOTICES,
    # Its agent reads stderr.
    "kimi": {**NOTICES, "block": "%s", "block, and a gate failed": "%s"},
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [*HOSTS, "portable"])
def test_the_answer_to_a_host_is_exact(name: str, case: str, text: str) -> None:
    plain, as_json = TEXTS[text]
    given = CASES[case]
    answer = HostAnswer(
        decision=given.decision,
        reason=given.reason.replace("%s", plain),
        notices=tuple(notice.replace("%s", plain) for notice in given.notices),
    )
    expected = HostOutput(
        stdout=STDOUT[name][case].replace("%s", as_json),
        stderr=STDERR.get(name, {}).get(case, "").replace("%s", plain),
        code=2 if name == "kimi" and given.decision == "block" else 0,
    )
    assert {**HOSTS, "portable": PORTABLE}[name].write_answer(answer) == expected


def test_the_name_of_a_host_is_its_key() -> None:
    assert {key: host.name for key, host in HOSTS.items()} == {key: key for key in HOSTS}


def test_four_hosts_were_not_run() -> None:
    not_run = [name for name, host in HOSTS.items() if host.version is None]
    assert not_run == ["cursor", "droid", "kiro", "vscode"]


def test_every_host_that_was_run_has_recordings() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {name for name in HOSTS if HOSTS[name].version}


@pytest.mark.parametrize("name", HOSTS)
def test_the_entry_of_a_host_has_the_command_and_a_timeout_in_its_unit(name: str) -> None:
    host = HOSTS[name]
    entry = host.entry("turngate hook")
    hook = entry["hooks"][0] if "hooks" in entry else entry
    factor = {"s": 1, "ms": 1000}[host.timeout_unit]
    if name != "opencode":  # its plugin has none
        assert hook[host.timeout_key] == host.installed_timeout_s * factor
    assert "turngate hook" in {**hook, **hook.get("action", {})}.values()


@pytest.mark.parametrize("name", [name for name in HOSTS if (FOLDER / name / "transcript.jsonl").exists()])
def test_a_tool_call_is_found_in_a_recorded_transcript(name: str) -> None:
    text = (FOLDER / name / "transcript.jsonl").read_bytes()
    lines = [line for line in text.splitlines() if any(mark in line for mark in CALLS[name])]
    assert 0 < len(lines) < len(text.splitlines())
    assert any(b"work.txt" in line for line in lines)
