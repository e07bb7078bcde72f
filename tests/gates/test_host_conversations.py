"""What gates read of the conversations of other hosts: transcripts that the real programs have written."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.gates.cases.evidence import ADVICE
from tests.support.gates import answer_of_process, blocked, claude_input
from turngate.core.events.events import StopEvent, Subagent
from turngate.gates.conversation import (
    ToolCall,
    UsedTokens,
    find_prompt,
    has_open_question,
    last_answer,
    measure_activity,
    read_calls,
    read_calls_of,
    read_usage,
)
from turngate.gates.session_changes import first_time

RECORDED = Path(__file__).parents[1] / "data" / "transcripts"
SUBAGENT = "03aa2eeb-6b21-4335-9d26-f2a781b2c9af"


def stop(name: str, agent: str | None = None) -> StopEvent:
    path = str(RECORDED / f"{name}.jsonl")
    subagent = None if agent is None else Subagent(id=agent, transcript_path=path)
    return StopEvent(session_id="s", transcript_path=path, subagent=subagent)


def summary(event: StopEvent) -> list[tuple[str, Any, str | None, bool]]:
    texts = ((call, call.text("command") or call.text("file_path")) for call in read_calls(event))
    return [(call.name, text, call.result, call.is_error) for call, text in texts]


def test_the_calls_of_codex_are_read() -> None:
    assert summary(stop("codex")) == [
        ("Bash", "printf 'done\\n' >> work.txt", "", False),
        ("Edit", "work.txt", "unsupported call: apply_patch", True),
        ("Edit", "work.txt", _CODEX_FAILURE, True),
        ("Bash", "sh -c 'echo 3 failed; exit 3'", "3 failed\n", True),
        ("Bash", "echo '5 passed'", "5 passed\n", False),
        ("TodoWrite", "", "unsupported call: update_plan", True),
    ]


_CODEX_FAILURE = (
    "apply_patch verification failed: Failed to find expected lines in /home/user/project/work.txt:\ndone2"
)


@pytest.mark.parametrize("name", ["qwen", "gemini"])
def test_the_calls_of_qwen_and_gemini_are_read(name: str) -> None:
    assert summary(stop(name)) == [("Bash", "echo hi", "hi", False)]


def test_the_calls_of_copilot_are_read() -> None:
    assert summary(stop("copilot")) == [("Bash", "echo hi", "hi", False)]


@pytest.mark.parametrize(
    ("name", "line", "answer", "tokens"),
    [
        ("codex", 4, "Now I am done.", UsedTokens(120, 8)),
        ("qwen", 0, "third answer", UsedTokens(60, 4)),
        ("gemini", None, "third answer", UsedTokens(60, 4)),
        ("copilot", 3, "third answer", UsedTokens(60, 4)),
    ],
)
def test_prompts_answers_and_tokens_of_other_hosts(
    name: str, line: int | None, answer: str, tokens: UsedTokens
) -> None:
    """A reason of a stop hook is not a prompt; in a transcript of Gemini it cannot be distinguished."""
    event = stop(name)
    prompt = find_prompt(event)
    lines = (RECORDED / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    offset = None if line is None else sum(map(len, lines[:line]))
    assert (prompt and prompt.offset, last_answer(event), read_usage(event)) == (offset, answer, tokens)
    assert line is None or b"o the work" in lines[line]
    assert first_time(event.stopping_transcript) is not None
    assert not has_open_question(event)


def test_the_conversation_of_a_subagent_is_its_own() -> None:
    main, sub = stop("copilot-subagent"), stop("copilot-subagent", SUBAGENT)
    assert (last_answer(main), last_answer(sub)) == ("main done", "sub second")
    assert [call.name for call in read_calls(main)] == ["Task"]
    assert read_calls(sub) == ()
    assert last_answer(stop("qwen-subagent", "general-purpose-call_2")) == "sub second"


@pytest.mark.parametrize("name", ["codex", "qwen", "gemini", "copilot"])
def test_activity_of_other_hosts_changes_with_a_tool_call(name: str, tmp_path: Path) -> None:
    event = StopEvent(session_id="s", transcript_path=str(tmp_path / "t.jsonl"))
    lines = (RECORDED / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    call = next(line for line in lines if any(mark in line for mark in _CALLS))

    def activity(*added: bytes) -> str | None:
        (tmp_path / "t.jsonl").write_bytes(b"".join([*lines, *added]))
        return measure_activity(event)

    before = activity()
    assert before is not None
    assert activity(lines[-1]) == before
    assert activity(call) != before


_CALLS = (b'"type":"function_call"', b'"functionCall"', b'"toolCalls"', b'"tool.execution_start"')


# Records that the recorded transcripts do not have


def calls_in(records: list[dict[str, Any]], first: str, tmp_path: Path) -> tuple[ToolCall, ...]:
    """Return the calls of records that follow the first line of a recorded transcript."""
    begin = (RECORDED / f"{first}.jsonl").read_text().splitlines()[0]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{line}\n" for line in [begin, *map(json.dumps, records)]))
    return read_calls(StopEvent(session_id="s", transcript_path=str(path)))


def codex(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-16T12:00:00Z", "type": "response_item", "payload": payload}


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b c.py\n+x\n*** End Patch"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {"type": "function_call", "name": "shell", "arguments": '{"command":["bash","-lc","make"]}'},
            "make",
        ),
        ({"type": "function_call", "name": "shell_command", "arguments": '{"command":"make"}'}, "make"),
        ({"type": "local_shell_call", "action": {"type": "exec", "command": ["make", "-k"]}}, "make -k"),
    ],
)
def test_every_tool_for_commands_of_codex_is_bash(payload: Any, expected: str, tmp_path: Path) -> None:
    records = [codex(**payload, call_id="c"), codex(type="function_call_output", call_id="c", output=OUTPUT)]
    wanted = ToolCall(name="Bash", input={"command": expected}, id="c", result="no rule", is_error=True)
    assert calls_in(records, "codex", tmp_path) == (wanted,)


OUTPUT = json.dumps({"output": "no rule", "metadata": {"exit_code": 2, "duration_seconds": 0.1}})


def test_a_patch_of_codex_edits_each_of_its_files(tmp_path: Path) -> None:
    records = [codex(type="custom_tool_call", name="apply_patch", input=PATCH, call_id="c")]
    assert [call.edited_file for call in calls_in(records, "codex", tmp_path)] == ["a.py", "b c.py"]


def test_a_patch_of_codex_that_failed_edits_none_of_its_files(tmp_path: Path) -> None:
    output = "Exit code: 1\nOutput:\nno"
    records = [
        codex(type="custom_tool_call", name="apply_patch", input=PATCH, call_id="c"),
        codex(type="custom_tool_call_output", call_id="c", output=output),
    ]
    assert [call.edited_file for call in calls_in(records, "codex", tmp_path)] == [None, None]


def test_a_process_of_codex_that_still_runs_has_no_result(tmp_path: Path) -> None:
    output = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n5 passed"
    records = [
        codex(type="function_call", name="exec_command", arguments='{"cmd":"pytest"}', call_id="c"),
        codex(type="function_call_output", call_id="c", output=output),
    ]
    assert [call.result for call in calls_in(records, "codex", tmp_path)] == [None]


def test_the_plan_of_codex_is_a_list_of_todos(tmp_path: Path) -> None:
    plan = json.dumps({"plan": [{"step": "one", "status": "pending"}]})
    records = [
        codex(type="function_call", name="update_plan", arguments=plan, call_id="c"),
        codex(type="function_call_output", call_id="c", output="Plan updated"),
    ]
    (call,) = calls_in(records, "codex", tmp_path)
    assert (call.name, call.input, call.is_error) == (
        "TodoWrite",
        {"todos": [{"content": "one", "status": "pending"}]},
        False,
    )


@pytest.mark.parametrize(
    ("report", "is_error"),
    [
        ("Output: Exit Code: 0\nError: (none)\nExit Code: 1\nSignal: (none)", True),
        ("Output: x\nError: (none)\nExit Code: (none)\nSignal: 9", True),
        ("Output: x\nError: (none)\nExit Code: 0\nSignal: (none)", False),
    ],
)
def test_a_command_of_qwen_failed_with_its_exit_code(report: str, is_error: bool, tmp_path: Path) -> None:
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "make"}}
    response = {"id": "c", "name": "run_shell_command", "response": {"output": report}}
    records = [
        {"type": "assistant", "message": {"role": "model", "parts": [{"functionCall": call}]}},
        {"type": "tool_result", "message": {"role": "user", "parts": [{"functionResponse": response}]}},
    ]
    assert [call.is_error for call in calls_in(records, "qwen", tmp_path)] == [is_error]


@pytest.mark.parametrize(("status", "is_error"), [("success", False), ("error", True), ("cancelled", True)])
def test_a_call_of_gemini_failed_with_its_status(status: str, is_error: bool, tmp_path: Path) -> None:
    result = [{"functionResponse": {"id": "c", "response": {"output": "ok"}}}]
    call = {"id": "c", "name": "replace", "args": {"file_path": "a.py"}, "result": result, "status": status}
    record = {"id": "m", "type": "gemini", "content": "", "toolCalls": [call]}
    (found,) = calls_in([record], "gemini", tmp_path)
    assert (found.name, found.edited_file) == ("Edit", None if is_error else "a.py")


def test_a_call_of_copilot_failed_with_its_exit_code(tmp_path: Path) -> None:
    start = {"toolCallId": "c", "toolName": "bash", "arguments": {"command": "make"}}
    end = {"toolCallId": "c", "success": True, "shellExecution": {"exitCode": 2}, "result": {"content": "x"}}
    edit = {"toolCallId": "d", "toolName": "edit", "arguments": {"path": "/p/a.py"}}
    records = [
        {"type": "tool.execution_start", "data": start},
        {"type": "tool.execution_complete", "data": end},
        {"type": "tool.execution_start", "data": edit},
    ]
    found = calls_in(records, "copilot", tmp_path)
    assert [(call.name, call.is_error, call.edited_file) for call in found] == [
        ("Bash", True, None),
        ("Edit", False, "/p/a.py"),
    ]


def test_calls_of_a_tool_are_found_by_our_name_of_it() -> None:
    assert [call.text("command") for call in read_calls_of(stop("qwen"), ("Bash",))] == ["echo hi"]


def test_a_record_of_any_form_is_read(tmp_path: Path) -> None:
    odd: list[Any] = [None, 7, "x", [], {}, [None], {"a": [1]}]
    for name in ("codex", "qwen", "gemini", "copilot"):
        source = RECORDED / f"{name}.jsonl"
        path = tmp_path / f"{name}.jsonl"
        shutil.copy(source, path)
        with path.open("a") as file:
            for line in source.read_text().splitlines()[1:]:
                file.writelines(f"{json.dumps(damaged)}\n" for damaged in _damage(json.loads(line), odd))
        event = StopEvent(session_id="s", transcript_path=str(path))
        assert len(read_calls(event)) >= 1
        assert isinstance(last_answer(event), str)
        read_usage(event)
        find_prompt(event)
        has_open_question(event)


def _damage(value: Any, odd: list[Any]) -> list[Any]:
    """Return copies of a value in each of which one part is replaced."""
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [{**value, key: each} for key, part in value.items() for each in _damage(part, odd)]
    elif isinstance(value, list):
        inner = [
            [*value[:at], each, *value[at + 1 :]]
            for at, part in enumerate(value)
            for each in _damage(part, odd)
        ]
    return inner + odd


# A gate


def test_the_gate_evidence_finds_the_tests_that_codex_has_run(tmp_path: Path) -> None:
    begin = (RECORDED / "codex.jsonl").read_text().splitlines()[0]
    call = codex(type="function_call", name="exec_command", arguments='{"cmd":"pytest -q"}', call_id="c")
    fields = claude_input(tmp_path / "project", last_assistant_message="All tests pass.")
    (tmp_path / "project").mkdir()
    patch = codex(type="function_call", name="exec_command", arguments='{"cmd":"echo 1 > a.py"}', call_id="a")
    written = codex(type="function_call_output", call_id="a", output="Process exited with code 0\nOutput:\n")
    for code, answer in ((0, {}), (1, blocked(NOT_BACKED, "evidence"))):
        output = f"Chunk ID: 1\nProcess exited with code {code}\nOutput:\n3 passed"
        records = [patch, written, call, codex(type="function_call_output", call_id="c", output=output)]
        lines = [begin, *map(json.dumps, records)]
        Path(fields["transcript_path"]).write_text("".join(f"{line}\n" for line in lines))
        assert answer_of_process(("evidence",), fields) == (0, answer, "")


NOT_BACKED = f"`pytest -q` did not succeed, and has not been run successfully since.\n{ADVICE}"
