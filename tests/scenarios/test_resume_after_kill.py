"""`kill -9` in the middle of a turn, and `turngate run --resume`, with a model that sees what it is sent.

The conversation is whole up to the last finished message, every tool call has a result, and no hook has got more
continuations by the kill than it had before.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import live_models as live
from tests.support import warm_cli as warm
from tests.support.builders import stop_hooks, write_settings
from tests.support.live_models import NEVER_REPLY, blocks, conversation, wait_until
from tests.support.servers.anthropic import AnthropicServer
from tests.support.servers.model import Json
from tests.support.sessions import hang, kill_leftovers, lines, records, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.state.paths import main_transcript_path

LOST = "the session ended before this tool did"

# It refuses always, each time for another reason, and keeps what it was told.
REFUSE_EACH = """tee -a seen > /dev/null
n=$(cat asked 2>/dev/null || echo 0); n=$((n+1)); echo $n > asked
echo "reason $n" >&2; exit 2"""


def told(number: int) -> tuple[str, str]:
    return "user", f"[Stop hook requested continuation]\nreason {number}"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AnthropicServer]]:
    """Start a server with these replies; processes that start later use it."""
    live.block_real_providers(monkeypatch)
    with ExitStack() as servers:
        yield lambda *replies: servers.enter_context(live.serve_model(monkeypatch, *replies))


@contextmanager
def running(project: Path, prompt: str, *more: str) -> Iterator[warm.Program]:
    try:
        with live.start_run(project, prompt, "--output-format", "json", *more) as program:
            yield program
    finally:
        kill_leftovers(project)


def killed(
    project: Path, server: AnthropicServer, requests: int, prompt: str = "build it", *words: str
) -> None:
    """A run that is killed while its request of this number hangs."""
    with running(project, prompt, *words) as process:
        wait_until(
            lambda: len(server.requests) >= requests or process.poll() is not None, "the model was not asked"
        )
        process.send_signal(signal.SIGKILL)
        assert process.wait(HANG_TIMEOUT_S) == -signal.SIGKILL


def resumed(project: Path, *words: str, prompt: str = "go on") -> tuple[int, Json]:
    """What the next process makes of it."""
    given = ("--output-format", "json", "--resume", *words)
    done = warm.run(live.run_arguments(project, prompt, *given), timeout=HANG_TIMEOUT_S)
    result = json.loads(done.stdout)
    assert (done.stderr, result["session_id"]) == ("", "x")
    return done.returncode, result


def flags(project: Path) -> list[tuple[bool, int]]:
    seen = [json.loads(line) for line in lines(project / "seen")]
    return [(each["stop_hook_active"], each["continuation_count"]) for each in seen]


@pytest.mark.req("S0-80")
def test_a_turn_that_was_continued_twice_has_one_continuation_left_after_a_kill(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE_EACH))
    server = model("one", "two", NEVER_REPLY, "four", "five", "never asked for")
    killed(project, server, requests=3)
    code, result = resumed(project, "--limit", "3")
    whole = [
        ("user", "build it"),
        ("assistant", "one"),
        told(1),
        ("assistant", "two"),
        told(2),
        ("user", "go on"),
    ]
    assert [conversation(body) for body in server.requests[3:]] == [
        whole,
        [*whole, ("assistant", "four"), told(3)],
    ]
    assert (code, result["outcome"], result["ended_by"], result["result"], result["continuations"]) == (
        10,
        "capped",
        "capped",
        "five",
        3,
    )
    # C-16: the user's new prompt is not a continuation, although the count goes on.
    assert flags(project) == [(False, 0), (True, 1), (False, 2), (True, 3)]


@pytest.mark.req("S0-80")
def test_a_kill_at_the_limit_leaves_no_continuation(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE_EACH))
    server = model("one", "two", NEVER_REPLY, "four", "never asked for")
    killed(project, server, 3, "build it", "--limit", "2")
    code, result = resumed(project, "--limit", "2")
    assert (code, result["ended_by"], result["result"], result["continuations"]) == (10, "capped", "four", 2)
    assert (len(server.requests), flags(project)) == (4, [(False, 0), (True, 1), (False, 2)])


@pytest.mark.req("S0-80")
def test_however_often_a_turn_is_killed_its_count_only_grows(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    """Each life of the process gets one answer out, is refused, and dies while the next request hangs."""
    write_settings(project, "turngate", stop_hooks(REFUSE_EACH))
    server = model("one", NEVER_REPLY, "two", NEVER_REPLY, "three", NEVER_REPLY, "four", "never asked for")
    for life in (1, 2, 3):
        killed(project, server, requests=2 * life, prompt=f"life {life}")
    code, result = resumed(project)
    assert (code, result["ended_by"], result["result"], result["continuations"]) == (10, "capped", "four", 3)
    assert (len(server.requests), flags(project)) == (7, [(False, 0), (False, 1), (False, 2), (False, 3)])
    assert conversation(server.requests[-1]) == [
        ("user", "life 1"),
        ("assistant", "one"),
        told(1),
        ("user", "life 2"),
        ("assistant", "two"),
        told(2),
        ("user", "life 3"),
        ("assistant", "three"),
        told(3),
        ("user", "go on"),
    ]


@pytest.mark.req("S0-80", "C-16")
def test_after_a_resumed_turn_has_ended_the_next_one_counts_from_zero(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    write_settings(
        project,
        "turngate",
        stop_hooks(f"[ -e enough ] && {{ tee -a seen >/dev/null; exit 0; }}; {REFUSE_EACH}"),
    )
    server = model("one", NEVER_REPLY, "done")
    killed(project, server, requests=2)
    (project / "enough").touch()
    first, second = resumed(project), resumed(project, prompt="and now?")
    assert [(code, result["outcome"], result["continuations"]) for code, result in (first, second)] == [
        (0, "completed", 1),
        (0, "completed", 0),
    ]
    assert flags(project) == [(False, 0), (False, 1), (False, 0)]


@pytest.mark.req("S0-80")
def test_half_an_answer_that_a_kill_cut_off_is_forgotten(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    server = model({"text": "half of what I say " * 100, "chunk_delay": 0.2}, "whole")
    with running(project, "build it", "--output-format", "stream-json") as process:
        assert json.loads(process.stdout.readline())["type"] == "text_delta"
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_TIMEOUT_S)
    code, result = resumed(project)
    assert (code, result["result"], conversation(server.requests[-1])) == (
        0,
        "whole",
        [("user", "build it"), ("user", "go on")],
    )


@pytest.mark.req("S0-80")
def test_a_tool_that_ran_at_the_kill_has_a_result_that_says_so(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    call = {"text": "I look.", "tool": "Bash", "input": {"command": hang()}}
    server = model(call, "It is gone.")
    with running(project, "build it") as process:
        wait_for_file_sync(project / "pid")
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_TIMEOUT_S)
    code, result = resumed(project)
    assert (code, result["result"], result["tool_calls"]) == (0, "It is gone.", 0)
    assert conversation(server.requests[-1]) == [
        ("user", "build it"),
        ("assistant", "I look."),
        ("call", "Bash"),
        ("result", LOST),
        ("user", "go on"),
    ]
    [result_block] = [
        block
        for m in server.requests[-1]["messages"]
        for block in blocks(m)
        if block["type"] == "tool_result"
    ]
    assert (result_block["tool_use_id"], result_block["is_error"]) == ("toolu_1", True)


@pytest.mark.req("S0-80")
def test_a_tool_in_the_middle_of_a_continuation_is_answered_and_the_count_is_kept(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE_EACH))
    call = {"text": "I look.", "tool": "Bash", "input": {"command": hang()}}
    server = model("one", call, "three", "four", "never asked for")
    with running(project, "build it") as process:
        wait_for_file_sync(project / "pid")
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_TIMEOUT_S)
    code, result = resumed(project, "--limit", "2")
    whole = [
        ("user", "build it"),
        ("assistant", "one"),
        told(1),
        ("assistant", "I look."),
        ("call", "Bash"),
        ("result", LOST),
        ("user", "go on"),
    ]
    assert [conversation(body) for body in server.requests[2:]] == [
        whole,
        [*whole, ("assistant", "three"), told(2)],
    ]
    assert (code, result["ended_by"], result["result"], result["continuations"]) == (10, "capped", "four", 2)


@pytest.mark.req("S0-80")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_wherever_it_is_killed_the_conversation_is_one_that_a_provider_takes(
    project: Path, model: Callable[..., AnthropicServer], number: int
) -> None:
    """Two tools and an answer, refused once, killed at each of the requests in turn."""
    write_settings(project, "turngate", stop_hooks(REFUSE_EACH))
    call = {"text": "I look.", "tool": "Bash", "input": {"command": "echo here"}}
    script: list[Any] = [call, "one", call, "two"]
    server = model(*script[: number - 1], NEVER_REPLY, "at last")
    killed(project, server, requests=number)
    resumed(project, "--no-hooks")
    said = [[("assistant", "I look."), ("call", "Bash"), ("result", "here")], [("assistant", "one"), told(1)]]
    whole = [block for part in [*said, said[0]][: number - 1] for block in part]
    assert conversation(server.requests[-1]) == [("user", "build it"), *whole, ("user", "go on")]


def test_the_transcript_of_a_killed_turn_is_one_chain_that_says_the_count(
    project: Path, model: Callable[..., AnthropicServer]
) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE_EACH))
    server = model("one", "two", NEVER_REPLY, "four")
    killed(project, server, requests=3)
    resumed(project, "--no-hooks")
    kept = records(main_transcript_path(os.environ["TURNGATE_STATE"], "x"))
    said = [record for record in kept if "message" in record]
    assert [record["parentUuid"] for record in said] == [None, *(record["uuid"] for record in said[:-1])]
    assert [(record["type"], record.get("continuation")) for record in said] == [
        ("user", None),
        ("assistant", None),
        ("user", 1),
        ("assistant", None),
        ("user", 2),
        ("user", 2),
        ("assistant", None),
    ]
    assert [record["ended_by"] for record in kept if record["type"] == "turn_end"] == ["allowed"]
