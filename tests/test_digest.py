"""What a judge may see of a conversation, however long it is."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.make import actor
from turngate.digest import DIGEST_MOST, HEAD, TAIL, conversation, digest, last_answer

Record = dict[str, Any]


def said(text: str, **fields: Any) -> Record:
    return {"type": "user", **fields, "message": {"role": "user", "content": text}}


def answered(*blocks: Any) -> Record:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"type": "assistant", "message": {"role": "assistant", "content": content}}


def call(identity: str, name: str, **given: Any) -> Record:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def result(identity: str, content: Any, *, is_error: bool = False) -> Record:
    block = {"type": "tool_result", "tool_use_id": identity, "content": content, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def write(path: Path, *records: Record) -> str:
    with path.open("w") as file:
        file.writelines(lines(records))
    return str(path)


def lines(records: Iterable[Record]) -> Iterable[str]:
    return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)


def test_a_digest_says_what_was_asked_changed_run_and_answered(tmp_path: Path) -> None:
    path = write(
        tmp_path / "chat.jsonl",
        said("Fix the parser"),
        answered(
            "I look", call("1", "Read", file_path="/p/a.py"), call("2", "Edit", file_path="/p/a.py"),
            call("3", "Edit", file_path="/p/a.py"), call("4", "Write", file_path="/p/b.py"),
        ),
        result("2", "ok"),
        answered(call("5", "Bash", command="make\n  test")),
        result("5", "collected 3\n2 failed, 1 passed\n", is_error=True),
        answered("They fail."),
        said("[Stop hook requested continuation]\nmake them pass", isMeta=True, origin="stop_hook"),
        answered(call("6", "Bash", command="make test"), call("7", "Bash", command="sleep 9")),
        result("6", [{"type": "text", "text": "3 passed"}]),
        said("And the docs?"),
        answered("All done."),
    )  # fmt: skip
    assert digest(path) == (
        "## What was asked\n"
        "Fix the parser\n"
        "\n"
        "And the docs?\n"
        "\n"
        "## What was changed\n"
        "- /p/b.py: written\n"
        "- /p/a.py: edited 2 times\n"
        "\n"
        "## Commands, the latest first\n"
        "$ sleep 9\n"
        "  no result\n"
        "$ make test\n"
        "  ended well: 3 passed\n"
        "$ make test\n"
        "  FAILED: 2 failed, 1 passed\n"
        "\n"
        "## The last answer\n"
        "All done."
    )
    assert last_answer(path) == "All done."


def test_a_digest_reads_what_our_own_sessions_write(project: Path) -> None:
    change = {"tool": "Write", "input": {"file_path": str(project / "a.txt"), "content": "x"}}
    check = {"tool": "Bash", "input": {"command": "cat a.txt; exit 3"}}
    played = actor(project, change, check, "I have written it.", permission_mode="bypassPermissions")
    path = played.play("write a file").transcript_path
    assert digest(path) == (
        "## What was asked\n"
        "write a file\n"
        "\n"
        "## What was changed\n"
        f"- {project}/a.txt: written\n"
        "\n"
        "## Commands, the latest first\n"
        "$ cat a.txt; exit 3\n"
        "  FAILED, exit code 3: x\n"
        "\n"
        "## The last answer\n"
        "I have written it."
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n\n",
        "no json\n[1]\n{}\n",
        '{"type":"user"}\n{"type":"user","message":{"content":7}}\n{"type":"ass',
    ],
    ids=["empty", "blank", "other", "half"],
)
def test_a_transcript_that_says_nothing_has_an_empty_digest(content: str, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text(content)
    path = str(tmp_path / "chat.jsonl")
    assert (digest(path), last_answer(path), conversation(path, 1000)) == ("", "", "")


def test_a_transcript_that_can_not_be_read_has_an_empty_digest(tmp_path: Path) -> None:
    assert [digest(str(path)) for path in (tmp_path / "none", tmp_path)] == ["", ""]


def test_every_part_of_a_digest_is_bounded_and_keeps_what_is_latest(tmp_path: Path) -> None:
    records = [
        record
        for n in range(300)
        for record in (
            said(f"request {n} " + "é" * 3000),
            answered(
                call(f"b{n}", "Bash", command=f"run {n} " + "x" * 5000),
                call(f"e{n}", "Edit", file_path=f"/p/{n}" + "y" * 300),
            ),
            result(f"b{n}", "z" * 5000, is_error=n % 2 == 1),
        )
    ]
    found = digest(write(tmp_path / "chat.jsonl", *records, answered("€" * 100_000)))
    asked, changed, ran, answer = found.split("\n\n## ")
    assert len(found.encode()) <= DIGEST_MOST
    assert ("request 0 " in asked, "more" in asked, "request 299 " in asked) == (True, True, True)
    assert (changed.splitlines()[1][:9], ran.splitlines()[1][:9], answer[-3:]) == (
        "- /p/299y",
        "$ run 299",
        "€ …",
    )


def test_a_long_conversation_loses_its_middle_and_never_its_end(tmp_path: Path) -> None:
    path = write(
        tmp_path / "chat.jsonl", said("first"), *(answered(f"step {n}") for n in range(1000)), said("last")
    )
    whole, cut, short = (conversation(path, most) for most in (100_000, 6_000, 300))
    assert (whole.count("step"), whole[:11], whole[-10:]) == (1000, "User: first", "User: last")
    assert [
        (len(text.encode()) < most + 100, text[:11], text[-10:])
        for text, most in ((cut, 6_000), (short, 300))
    ] == [
        (True, "User: first", "User: last"),
        (True, "User: first", "User: last"),
    ]
    assert "bytes in the middle are left out" in short


SIZE = 200_000_000


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Iterable[str]:
    """200 MB as a long session writes them: answers, commands and their output, and a change in the very middle."""
    path = tmp_path_factory.mktemp("huge") / "chat.jsonl"
    output = "a line of output that a program prints\n" * 2000
    step = "".join(lines([answered("next", call("s", "Bash", command="make")), result("s", output + "ok")]))
    with path.open("w") as file:
        file.writelines(lines([said("Port the library")]))
        while file.tell() < SIZE // 2:
            file.write(step)
        file.writelines(lines([said("and its tests"), answered(call("m", "Edit", file_path="/p/middle.py"))]))
        while file.tell() < SIZE:
            file.write(step)
        file.writelines(lines([answered("It is ported.")]))
    yield str(path)
    path.unlink()


def test_the_digest_of_200_megabytes_is_bounded_in_time_and_size_and_has_what_stands_in_the_middle(
    huge: str,
) -> None:
    best = 9.0
    for _ in range(3):
        started = time.monotonic()
        found = digest(huge)
        best = min(best, time.monotonic() - started)
    left_out = Path(huge).stat().st_size - HEAD - TAIL
    head, *parts = found.split("\n\n")
    assert abs(int("".join(filter(str.isdigit, head))) - left_out) < 400_000
    assert parts == [
        "## What was asked\nPort the library",
        "and its tests",
        "## What was changed\n- /p/middle.py: edited",
        "## Commands, the latest first\n$ make\n  ended well: ok",
        "## The last answer\nIt is ported.",
    ]
    assert len(found.encode()) <= DIGEST_MOST
    assert best < 1.0


def test_the_digest_of_200_megabytes_takes_little_memory(huge: str) -> None:
    code = (
        "import resource, sys\nfrom turngate.digest import digest\n"
        "size = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = size(); digest(sys.argv[1]); print(size() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, huge], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40_000  # kilobytes


def test_a_conversation_of_nothing_but_requests_is_counted_and_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    with path.open("w") as file:
        file.writelines(lines(said(f"request {number} " + "x" * 2000) for number in range(20_000)))
    told = digest(str(path))
    assert len(told.encode()) <= DIGEST_MOST
    assert told.count("request 0 ") == 1
    assert "request 19999 " in told
    assert "more …" in told
