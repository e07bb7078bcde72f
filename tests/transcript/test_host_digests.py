"""What a judge sees of the transcripts of other hosts: those that the real programs have written, and large ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.measures import cpu_limit
from tests.transcript.test_digest import kilobytes_for_digest
from turngate.transcript.digest import MAX_DIGEST_BYTES, conversation, digest, has_unknown_format, last_answer

TESTS = Path(__file__).parents[1]
RECORDED = TESTS / "data" / "transcripts"
RECORDED_BY_HOSTS = TESTS / "hosts" / "recorded"
SUBAGENT = "03aa2eeb-6b21-4335-9d26-f2a781b2c9af"


def recorded(name: str) -> str:
    return str(RECORDED / f"{name}.jsonl")


# In a transcript of Gemini CLI the reason of a stop hook cannot be distinguished from a prompt.
ASKED = {"gemini": "  do the work\n\n  REASON-stop-1\n\n  REASON-stop-2"}


@pytest.mark.parametrize("name", ["qwen", "gemini", "copilot"])
def test_the_digest_of_another_host_is_as_that_of_claude_code(name: str) -> None:
    assert digest(recorded(name)) == (
        f"## What was asked\n{ASKED.get(name, '  do the work')}\n\n"
        "## Commands and changes, the latest first\n$ echo hi\n  ended well: hi\n\n"
        "## The last answer\n  third answer"
    )
    assert last_answer(recorded(name)) == "third answer"


def test_the_digest_of_codex_has_no_change_that_failed() -> None:
    assert digest(recorded("codex")) == (
        "## What was asked\n  Do the work.\n\n"
        "## Commands and changes, the latest first\n"
        "$ echo '5 passed'\n  ended well: 5 passed\n"
        "$ sh -c 'echo 3 failed; exit 3'\n  FAILED: 3 failed\n"
        "$ printf 'done\\n' >> work.txt\n  ended well\n\n"
        "## The last answer\n  Now I am done."
    )
    assert last_answer(recorded("codex")) == "Now I am done."


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("qwen", ""),
        ("gemini", "User: REASON-stop-{}\n\n"),
        ("copilot", "Note: REASON-stop-{}\n\n"),
    ],
)
def test_the_conversation_of_another_host_is_whole_and_has_nothing_twice(name: str, notes: str) -> None:
    told = conversation(recorded(name), 100_000)
    head, _, rest = told.partition("Call of Bash: ")
    call, _, rest = rest.partition("\n\n")
    assert (head, json.loads(call)["command"]) == ("User: do the work\n\nAgent: working\n\n", "echo hi")
    assert rest == (
        "Result: hi\n\nAgent: first answer\n\n"
        f"{notes.format(1)}Agent: second answer\n\n{notes.format(2)}Agent: third answer"
    )


@pytest.mark.parametrize(
    "path", sorted(RECORDED_BY_HOSTS.glob("*/transcript.*")), ids=lambda p: p.parent.name
)
def test_what_make_hosts_has_recorded_has_a_request_a_command_and_an_answer(path: Path) -> None:
    told = digest(str(path))
    assert told.startswith("## What was asked\n  Do the work.\n")
    assert "\n$ printf 'done\\n' >> work.txt\n  ended well" in told
    assert told.endswith("## The last answer\n  Now I am done.")
    assert not has_unknown_format(str(path))


@pytest.mark.parametrize("name", ["qwen", "copilot"])
def test_a_digest_shows_the_work_of_subagents_of_other_hosts(name: str) -> None:
    told = digest(str(RECORDED_BY_HOSTS / name / "transcript.jsonl"))
    assert "\nA subagent (general-purpose): count\n  ended well: Four files.\n" in told


def test_a_subagent_and_its_parent_have_a_digest_of_their_own() -> None:
    path = recorded("copilot-subagent")
    assert digest(path) == (
        "## What was asked\n  do the work\n\n"
        "## Commands and changes, the latest first\nA subagent (general-purpose): x\n  ended well: sub second\n\n"
        "## The last answer\n  main done"
    )
    assert digest(path, SUBAGENT) == "## What was asked\n  SUBTASK go\n\n## The last answer\n  sub second"
    assert (last_answer(path, SUBAGENT), last_answer(path)) == ("sub second", "main done")
    assert conversation(path, 10_000, SUBAGENT) == (
        "User: SUBTASK go\n\nAgent: sub first\n\nAgent: sub second"
    )
    assert digest(recorded("qwen-subagent"), "general-purpose-call_2") == (
        "## What was asked\n  SUBTASK go\n\n## The last answer\n  sub second"
    )


# Records that the recorded transcripts do not have

Records = list[dict[str, Any]]


def prompt(host: str, text: str) -> Records:
    parts = [{"text": text}]
    records: dict[str, Records] = {
        "codex": [{"type": "event_msg", "payload": {"type": "user_message", "message": text}}],
        "qwen": [{"type": "user", "message": {"role": "user", "parts": parts}}],
        "gemini": [{"id": text, "type": "user", "content": parts}],
        "copilot": [{"type": "user.message", "data": {"content": text, "delivery": "idle"}}],
    }
    return records[host]


def edit(host: str, file: str, identity: str = "e") -> Records:
    args = {"file_path": file}
    patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n*** End Patch"
    payload = {"type": "custom_tool_call", "call_id": identity, "name": "apply_patch", "input": patch}
    call = {"id": identity, "name": "edit", "args": args}
    start = {"toolCallId": identity, "toolName": "edit", "arguments": {"path": file}}
    changed = {**call, "name": "replace", "status": "success", "result": []}
    records: dict[str, Records] = {
        "codex": [{"type": "response_item", "payload": payload}],
        "qwen": [{"type": "assistant", "message": {"role": "model", "parts": [{"functionCall": call}]}}],
        "gemini": [{"id": file, "type": "gemini", "content": "", "toolCalls": [changed]}],
        "copilot": [{"type": "tool.execution_start", "data": start}],
    }
    return records[host]


def run(host: str, command: str, output: str, code: int = 0) -> Records:
    args = {"command": command}
    call = {"id": "r", "name": "run_shell_command", "args": args}
    response = {
        "functionResponse": {"id": "r", "response": {"output": f"Output: {output}\nExit Code: {code}"}}
    }
    display = {"resultDisplay": {"exitCode": code}}
    ended = {"exitCode": code}
    codex_output = f"Process exited with code {code}\nOutput:\n{output}"
    done = {"toolCallId": "r", "success": True, "shellExecution": ended, "result": {"content": output}}
    status = "success" if code == 0 else "error"
    records: dict[str, Records] = {
        "codex": [
            {
                "type": "response_item",
                "payload": {
                    "type": "function_call",
                    "name": "exec_command",
                    "arguments": json.dumps({"cmd": command}),
                    "call_id": "r",
                },
            },
            {
                "type": "response_item",
                "payload": {"type": "function_call_output", "call_id": "r", "output": codex_output},
            },
        ],
        "qwen": [
            {"type": "assistant", "message": {"role": "model", "parts": [{"functionCall": call}]}},
            {
                "type": "tool_result",
                "message": {"role": "user", "parts": [response]},
                "toolCallResult": display,
            },
        ],
        "gemini": [
            {
                "id": f"{command} {code}",
                "type": "gemini",
                "content": "",
                "toolCalls": [{**call, "status": status, "result": [response]}],
            }
        ],
        "copilot": [
            {
                "type": "tool.execution_start",
                "data": {"toolCallId": "r", "toolName": "bash", "arguments": args},
            },
            {"type": "tool.execution_complete", "data": done},
        ],
    }
    return records[host]


def answer(host: str, text: str) -> Records:
    content = [{"type": "output_text", "text": text}]
    payload = {"type": "message", "role": "assistant", "content": content}
    records: dict[str, Records] = {
        "codex": [{"type": "response_item", "payload": payload}],
        "qwen": [{"type": "assistant", "message": {"role": "model", "parts": [{"text": text}]}}],
        "gemini": [{"id": "a", "type": "gemini", "content": text}],
        "copilot": [{"type": "assistant.message", "data": {"content": text}}],
    }
    return records[host]


START: dict[str, Any] = {
    "codex": {"type": "session_meta", "payload": {"id": "s"}},
    "qwen": {"type": "system"},
    "gemini": {"sessionId": "s", "projectHash": "h"},
    "copilot": {"type": "session.start", "data": {}},
}


def write(path: Path, host: str, *parts: Records) -> str:
    records = [START[host], *(record for part in parts for record in part)]
    with path.open("w") as file:
        for record in records:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
    return str(path)


HOSTS = pytest.mark.parametrize("host", sorted(START))


@HOSTS
def test_requests_changes_and_commands_of_other_hosts_are_in_their_order(host: str, tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        host,
        prompt(host, "Fix it"),
        run(host, "make test", "1 failed", 2),
        edit(host, "a.py"),
        run(host, "make lint", "clean"),
        prompt(host, "And the docs?"),
        answer(host, "Done."),
    )
    assert digest(path) == (
        "## What was asked\n  Fix it\n\n  And the docs?\n\n"
        "## What was changed\n- a.py: edited\n\n"
        "## Commands and changes, the latest first\n$ make lint\n  ended well: clean\n- changed: a.py\n"
        "$ make test\n  FAILED: 1 failed\n\n"
        "## The last answer\n  Done."
    )


@HOSTS
def test_a_long_transcript_of_another_host_shows_its_middle_in_bounded_time(
    host: str, tmp_path: Path
) -> None:
    noise = run(host, "make", "a line of output\n" * 5000 + "ok") * 60
    path = write(
        tmp_path / "t.jsonl",
        host,
        prompt(host, "Port it"),
        *[noise] * 2,
        prompt(host, "and its tests"),
        edit(host, "middle.py"),
        *[noise] * 2,
        answer(host, "Ported."),
    )
    with cpu_limit(60):  # against what never ends
        told = digest(path)
    assert told.startswith("[… of 1")
    assert told.partition("\n\n")[2].startswith(
        "## What was asked\n  Port it\n\n  and its tests\n\n## What was changed\n- middle.py: edited\n\n"
        "## Commands and changes, the latest first\n$ make\n  ended well: ok"
    )
    assert told.endswith("## The last answer\n  Ported.")
    assert len(told.encode()) <= MAX_DIGEST_BYTES
    assert kilobytes_for_digest(path) < 60_000


def test_a_patch_of_codex_that_failed_has_changed_none_of_its_files(tmp_path: Path) -> None:
    (call,) = edit("codex", "a.py\n@@\n*** Add File: b.py\n+x")
    output = {"type": "custom_tool_call_output", "call_id": "e", "output": "Exit code: 1\nOutput:\nno"}
    result = {"type": "response_item", "payload": output}
    made = write(tmp_path / "made.jsonl", "codex", prompt("codex", "Go"), [call])
    failed = write(tmp_path / "failed.jsonl", "codex", prompt("codex", "Go"), [call, result])
    asked = "## What was asked\n  Go"
    assert digest(made) == f"{asked}\n\n## What was changed\n- b.py: edited\n- a.py: edited"
    assert digest(failed) == asked


def test_a_message_of_gemini_that_is_written_again_counts_once(tmp_path: Path) -> None:
    (first,) = run("gemini", "make test", "3 passed")
    waits = {**first, "toolCalls": [{**first["toolCalls"][0], "result": []}]}
    (second,) = edit("gemini", "a.py")
    both = {**first, "toolCalls": [*first["toolCalls"], *second["toolCalls"]]}
    path = write(tmp_path / "t.jsonl", "gemini", prompt("gemini", "Go"), [waits, first, both, both])
    assert digest(path) == (
        "## What was asked\n  Go\n\n## What was changed\n- a.py: edited\n\n"
        "## Commands and changes, the latest first\n- changed: a.py\n$ make test\n  ended well: 3 passed"
    )


@HOSTS
def test_a_record_of_another_host_that_is_nested_too_deeply_is_counted(host: str, tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        host,
        prompt(host, "Go"),
        run(host, "make", "ok"),
        run(host, "NESTED", "NESTED"),
        answer(host, "Done."),
    )
    for depth in (
        450,
        900,
        950,
        980,
        990,
        2000,
        100_000,
    ):  # how deep is too deep depends on the version of Python
        nested = tmp_path / "nested.jsonl"
        text = Path(path).read_text()
        for plain in ('"NESTED"', '"Output: NESTED\\nExit Code: 0"'):
            text = text.replace(plain, "[" * depth + "]" * depth)
        nested.write_text(text)
        assert "$ make\n  ended well: ok\n" in digest(str(nested))
        assert conversation(str(nested), 100_000).endswith("Agent: Done.")
    assert digest(str(nested)).startswith("[… records that are too large to be read: ") is (host != "codex")


def test_an_id_that_is_nested_deeply_does_not_end_the_reading(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        "gemini",
        prompt("gemini", "Go"),
        edit("gemini", "a.py", "NESTED"),
        answer("gemini", "Done."),
    )
    text = Path(path).read_text()
    for depth in range(900, 1000):  # there is one that can be parsed, but not be written as text
        Path(path).write_text(text.replace('"NESTED"', "[" * depth + "]" * depth))
        assert digest(path).endswith("## What was asked\n  Go\n\n## The last answer\n  Done.") or (
            "- a.py: edited" in digest(path)
        )


def test_a_patch_of_many_blanks_takes_little_time(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl", "codex", edit("codex", " " * 1_000_000 + "a.py"), answer("codex", "Done.")
    )
    with cpu_limit(60):
        assert digest(path).endswith("Done.")


def test_messages_of_hosts_that_write_as_claude_code_are_read_by_their_role(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Done."}]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"type": "message", "message": each}) + "\n" for each in messages))
    assert digest(str(path)) == "## What was asked\n  Go\n\n## The last answer\n  Done."
    assert conversation(str(path), 1000) == "User: Go\n\nAgent: Done."


@pytest.mark.parametrize(
    ("text", "is_unknown"),
    [
        ("", False),
        ('{"role":"user","content":"go"}\n', True),
        ("user: go\n" * 1000, True),
        ('{"type":"user","message":{"role":"user","content":"go"}}\n', False),
    ],
)
def test_a_format_that_is_not_known_is_noticed(text: str, is_unknown: bool, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    assert has_unknown_format(str(tmp_path / "t.jsonl")) is is_unknown
    assert has_unknown_format(str(tmp_path / "none")) is False
