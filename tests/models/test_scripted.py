import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from turngate.core.conversation.messages import ModelRequest, Reply, Text, ToolUse, Usage, UserMessage
from turngate.errors import ModelError, UsageError
from turngate.models.scripted import ScriptedModel

HELLO = ModelRequest(messages=(UserMessage("hello"),))
SIZE = len(repr(HELLO.messages)) // 4


def ask(model: ScriptedModel, times: int = 1, request: ModelRequest = HELLO) -> list[Reply]:
    async def asking() -> list[Reply]:
        return [await model.ask(request, lambda _: None) for _ in range(times)]

    return asyncio.run(asking())


def only(said: Any) -> Reply:
    [reply] = ask(ScriptedModel({"main": [said]}))
    return reply


def reply(*blocks: Text | ToolUse, number: int = 1, **fields: Any) -> Reply:
    written = sum(len(block.text) for block in blocks if isinstance(block, Text))
    usage = Usage(input_tokens=SIZE, output_tokens=written // 4 + 1)
    return Reply(blocks, **{"usage": usage, "model": "scripted:script", "id": f"msg-{number}", **fields})


@pytest.mark.parametrize("said", ["plain final text", {"text": "plain final text"}])
def test_a_text_is_a_final_answer(said: Any) -> None:
    assert only(said) == reply(Text("plain final text"))


def test_several_texts_are_several_blocks() -> None:
    assert only({"texts": ["a", "b"]}) == reply(Text("a"), Text("b"))


def test_a_tool_is_asked_for_after_the_text() -> None:
    assert only({"text": "looking", "tool": "Bash", "input": {"command": "pytest -q"}}) == reply(
        Text("looking"),
        ToolUse("tool-1", "Bash", {"command": "pytest -q"}),
        number=2,
        stop_reason="tool_use",
    )


def test_a_tool_without_input_gets_none() -> None:
    assert only({"tool": "Read"}) == reply(ToolUse("tool-1", "Read", {}), number=2, stop_reason="tool_use")


def test_several_tools_are_asked_for_in_order() -> None:
    tools = [{"name": "Read", "input": {"file_path": "a"}}, {"name": "Bash", "input": {}}]
    assert only({"tools": tools}) == reply(
        ToolUse("tool-1", "Read", {"file_path": "a"}),
        ToolUse("tool-2", "Bash", {}),
        number=3,
        stop_reason="tool_use",
    )


def test_an_answer_may_be_empty() -> None:
    assert only({"stop_reason": "end_turn"}) == reply()


@pytest.mark.parametrize("why", ["max_tokens", "refusal"])
def test_a_script_says_why_the_model_ended(why: str) -> None:
    assert only({"text": "x", "stop_reason": why}) == reply(Text("x"), stop_reason=why)


@pytest.mark.parametrize(
    ("said", "kind", "told", "transient"),
    [
        ({"error": "overloaded"}, "overloaded", "overloaded", True),
        ({"error": 529, "message": "busy"}, "overloaded", "busy", True),
        ({"error": "network"}, "network", "network", True),
        ({"error": "auth", "message": "who?"}, "auth", "who?", False),
        ({"error": 402}, "quota", "402", False),
        ({"error": "refusal"}, "refusal", "refusal", False),
        ({"error": "whatever"}, "invalid", "whatever", False),
    ],
)
def test_an_error_is_raised_with_its_kind(said: Any, kind: str, told: str, transient: bool) -> None:
    with pytest.raises(ModelError) as caught:
        only(said)
    assert (caught.value.kind, str(caught.value), caught.value.is_transient) == (kind, told, transient)


def test_a_delay_comes_before_the_first_word() -> None:
    async def scene() -> float:
        begun = time.monotonic()
        told: list[float] = []
        await ScriptedModel({"main": [{"text": "x", "delay": 0.2}]}).ask(
            HELLO, lambda _: told.append(time.monotonic() - begun)
        )
        return told[0]

    assert asyncio.run(scene()) >= 0.2


def test_a_delay_can_be_cancelled() -> None:
    async def scene() -> bool:
        model = ScriptedModel({"main": [{"text": "late", "delay": 60}]})
        task = asyncio.create_task(model.ask(HELLO, lambda _: None))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(scene())


def test_replies_go_out_in_order_and_the_last_one_again_and_again() -> None:
    found = ask(ScriptedModel({"main": ["first {n}", {"text": "twice {n}", "repeat": 2}, "on {n}"]}), 6)
    assert [said.text for said in found] == ["first 1", "twice 2", "twice 3", "on 4", "on 5", "on 6"]


def test_the_number_stands_in_every_text_of_a_reply() -> None:
    assert only({"texts": ["{n} and {n}", "{n}"]}).texts == ("1 and 1", "1")


def test_each_agent_has_replies_and_numbers_of_its_own() -> None:
    model = ScriptedModel({"main": ["main {n}"], "sub": ["sub {n}"], "judge": ['{"ok": true}']})
    asked = [ModelRequest(messages=(), agent=agent) for agent in ("main", "sub", "judge", "main", "sub")]
    texts = [found.text for request in asked for found in ask(model, request=request)]
    assert (texts, model.requests) == (["main 1", "sub 1", '{"ok": true}', "main 2", "sub 2"], asked)


def test_an_agent_that_the_script_forgot_is_an_error() -> None:
    with pytest.raises(ModelError) as caught:
        ask(ScriptedModel({"main": ["x"]}), request=ModelRequest(messages=(), agent="sub"))
    assert (caught.value.kind, str(caught.value)) == ("invalid", "the script has no answer for 'sub'")


@pytest.mark.parametrize("said", ["", "short", "a text of some length, told in pieces", "long " * 5000])
def test_the_pieces_are_the_text(said: str) -> None:
    async def scene() -> list[str]:
        pieces: list[str] = []
        await ScriptedModel({"main": [said]}).ask(HELLO, pieces.append)
        return pieces

    pieces = asyncio.run(scene())
    assert ("".join(pieces), len(pieces) <= 51) == (said, True)


def test_a_file_is_a_script_with_a_name(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"main": ["hello"], "context": 1000}')
    model = ScriptedModel.from_file(str(path))
    assert (model.name, model.context, ask(model)) == (
        f"scripted:{path}",
        1000,
        [reply(Text("hello"), model=f"scripted:{path}")],
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the script {path} is not JSON at line 1, column 1: expecting value"),
        (
            '{"main": "',
            "the script {path} is not JSON at line 1, column 10: this string has no closing quote",
        ),
        ('{"Main": ["a"]}', "unknown key 'Main' in the script; did you mean 'main'?"),
        ('{"answers": ["a"]}', "unknown key 'answers' in the script; expected main, sub, judge or context"),
        ('["a"]', 'the script {path} must be an object like {{"main": ["an answer"]}}'),
        ('{"main": "a"}', "the script's 'main' must be a list of replies"),
        ('{"sub": [1]}', "a reply in the script's 'sub' is neither a text nor an object: 1"),
    ],
)
def test_a_bad_script_is_explained(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        ScriptedModel.from_file(str(path))
    assert str(caught.value) == told.format(path=path)


def test_a_script_that_is_not_there_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        ScriptedModel.from_file(f"{tmp_path}/none.json")
    assert str(caught.value) == f"the script {tmp_path}/none.json cannot be read: No such file or directory"


def test_a_script_that_is_not_a_regular_file_is_reported_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError) as raised:
        ScriptedModel.from_file(str(tmp_path / "pipe"))
    assert str(raised.value) == f"the script {tmp_path}/pipe cannot be read: it is not a regular file"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            {"judge": [{"ok": False, "reason": "r"}]},
            "reply 1 of the script's 'judge': 'ok' is not a field of a reply; an answer in JSON is a text, so put it into quotes",
        ),
        ({"main": ["a", {"tol": "Bash"}]}, "reply 2 of the script's 'main': 'tol' is not a field of a reply"),
        (["a"], 'a script is an object like {"main": ["an answer"]}, not [\'a\']'),
    ],
)
def test_a_reply_that_says_nothing_known_is_a_mistake(script: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        ScriptedModel(script)
    assert str(raised.value) == said


def test_subagents_that_work_at_the_same_time_have_their_own_replies() -> None:
    model = ScriptedModel({"sub": {"chunk-1": ["one {n}"], "chunk-2": ["two {n}"]}})

    async def ask(prompt: str) -> str:
        request = ModelRequest(messages=(UserMessage(prompt), UserMessage("chunk-1")), agent="sub")
        return (await model.ask(request, lambda _: None)).text

    async def answers() -> list[str]:
        return [await ask(f"Do {name}.") for name in ("chunk-2", "chunk-1", "chunk-2")]

    assert asyncio.run(answers()) == ["two 1", "one 1", "two 2"]
    with pytest.raises(ModelError, match="the script has no answer for 'sub'"):
        asyncio.run(ask("something else"))
