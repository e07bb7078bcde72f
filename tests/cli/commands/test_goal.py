"""`turngate goal` and the stops of its session, as processes: a goal holds, is met once, and is gone when a person says so."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.recordings import recorded
from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.git_projects import make_repository
from tests.support.terminal import Terminal
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from tests.support.transcripts import IN_THE_FUTURE, LONG_AGO, TranscriptBuilder, talk
from tests.support.warm_cli import Program
from turngate.gates.run_gate import INSIST
from turngate.gates.session_goal import NEXT_S, NOT_MET
from turngate.hosts.all_hosts import AGENT_MARKERS

ONE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
PROOF = "echo x >> asked; test -e done"  # counts how often it runs
REASON = f"{NOT_MET}the file done exists\n`{PROOF}`: exit code 1"
BLOCK = {"decision": "block", "reason": REASON}
AGAIN = {
    "decision": "block",
    "reason": f"{REASON}\n\nThis is the same result as at the last stop: nothing that this gate checks has changed since.",
}
MET = {"systemMessage": "the goal is met, and cleared: the file done exists"}


def goal(project: Path, *words: str) -> tuple[int, str, str]:
    return turngate("goal", *words, "--project", str(project))


def set_goal(project: Path, *words: str, proof: str = PROOF) -> None:
    code, _, err = goal(project, "the file done exists", "--proof", proof, *words)
    assert (code, err) == (0, "")


def fields(project: Path, session: str = ONE, turn: str = "1", **more: Any) -> dict[str, Any]:
    """Return the input of a stop in Codex, which has no limit of its own."""
    own = {"cwd": str(project), "transcript_path": None, "session_id": session, "turn_id": turn}
    return {**recorded("codex", "Stop"), **own, **more}


def stop(project: Path, session: str = ONE, turn: str = "1", **more: Any) -> Any:
    """Let an agent stop; return the answer, or None if it may and nobody is told anything."""
    code, out, err = turngate("hook", stdin=json.dumps(fields(project, session, turn, **more)))
    assert (code, err) == (0, "")
    return json.loads(out) if out else None


def start(project: Path, session: str, source: str = "startup") -> None:
    own = {"cwd": str(project), "session_id": session, "source": source}
    assert turngate("hook", stdin=json.dumps({**recorded("codex", "SessionStart"), **own})) == (0, "", "")


def asked(project: Path) -> int:
    """Return how often the proof has run."""
    path = project / "asked"
    return len(path.read_text().splitlines()) if path.exists() else 0


def goals(project: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(goal(project, "--json")[1])["goals"]
    return found


def goal_files(state: Path) -> list[Path]:
    return sorted((state / "gates" / "goals").glob("*"))


def wait_for(path: Path) -> None:
    end = time.monotonic() + HANG_TIMEOUT_S
    while not path.exists():
        assert time.monotonic() < end, f"{path} was not made"
        time.sleep(POLL_INTERVAL_S)


@contextmanager
def stopping(project: Path) -> Iterator[Program]:
    """Start a stop whose proof has begun and waits for the file `go`."""
    process = Program(("hook",), stdin=json.dumps(fields(project)), start_new_session=True)
    try:
        wait_for(project / "begun")
        yield process
    finally:
        process.kill()
        process.communicate()


WAITS = "touch begun; until [ -e proceed ]; do sleep 0.05; done; test -e done"


def answer_of(process: Program) -> Any:
    out, _ = process.communicate()
    return json.loads(out) if out else None


# Set, blocked, met


def test_a_goal_blocks_until_it_is_met_and_is_not_asked_again(project: Path, state: Path) -> None:
    set_goal(project)
    assert [stop(project), stop(project)] == [BLOCK, AGAIN]
    (project / "done").touch()
    assert [stop(project), stop(project), stop(project, turn="2")] == [MET, None, None]
    assert (asked(project), goal_files(state)) == (3, [])


def test_a_goal_that_was_met_does_not_return_when_its_condition_fails_again(project: Path) -> None:
    (project / "done").touch()
    set_goal(project)
    start(project, ONE)
    assert stop(project) == MET
    (project / "done").unlink()
    start(project, ONE, "resume")
    assert [stop(project), stop(project, turn="2"), asked(project)] == [None, None, 1]


def test_a_goal_that_is_met_while_another_gate_blocks_stays_until_the_turn_ends(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("test -e linted || { echo lint >&2; exit 2; }"))
    (project / "done").touch()
    set_goal(project)
    assert stop(project) == {"decision": "block", "reason": "lint"}
    (project / "done").unlink()
    (project / "linted").touch()
    assert stop(project) == BLOCK
    (project / "done").touch()
    assert stop(project) == MET


def test_at_the_limit_the_user_reads_that_the_goal_is_not_met_and_it_is_not_asked_in_that_turn(
    project: Path,
) -> None:
    set_goal(project)
    answers = [stop(project, stop_hook_active=n > 0) for n in range(5)]
    told = f'Turn ended after 3 continuations (the limit). Still blocked by: "goal".\nthe last reason: {NOT_MET}the file done exists\n'
    assert answers[:3] == [BLOCK, AGAIN, AGAIN]
    assert [each["systemMessage"][: len(told)] for each in answers[3:]] == [told, told]
    assert asked(project) == 4
    assert stop(project, turn="2")["decision"] == "block"


@pytest.mark.parametrize(
    ("proof", "why"),
    [("no-such-program", "exit code 127: "), ("echo no tests ran; exit 5", "it checked nothing")],
)
def test_a_proof_that_cannot_run_or_checks_nothing_is_not_enforced_and_meets_nothing(
    project: Path, proof: str, why: str
) -> None:
    set_goal(project, proof=proof)
    told = stop(project)["systemMessage"]
    assert told.startswith(f'hook "goal" failed and was NOT enforced: {why}')
    assert [each["status"] for each in goals(project)] == ["active"]


def test_a_stop_that_was_answered_from_the_cache_asks_a_new_goal(project: Path, state: Path) -> None:
    make_repository(project, {})
    hook = {"type": "gate", "id": "ok", "command": "true", "options": {"always": True}}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [hook]}]}})
    time.sleep(2.1)  # a file that was changed just now is read again
    assert [stop(project) for _ in range(3)] == [None] * 3
    assert '"kind":"cached"' in (state / "sessions" / ONE / "journal.jsonl").read_text()
    set_goal(project, "--for", ONE)
    assert stop(project) == BLOCK


@pytest.mark.parametrize("value", [{"disableAllHooks": True}, {"turngate": {"mode": "observe"}}])
def test_settings_that_the_agent_can_write_do_not_switch_a_goal_off(project: Path, value: Any) -> None:
    write_settings(project, "turngate", value)
    set_goal(project)
    assert stop(project) == BLOCK


def test_an_agent_that_asks_the_user_is_blocked_once_and_may_insist(project: Path) -> None:
    set_goal(project)
    question = {"last_assistant_message": "Which of the two formats do you need?"}
    assert stop(project, **question) == {"decision": "block", "reason": f"{REASON}\n{INSIST}"}
    told = 'hook "goal" waits and was NOT enforced: the agent asks the user'
    assert stop(project, **question) == {"systemMessage": told}
    assert stop(project, turn="2")["decision"] == "block"


# Sessions


def test_a_goal_holds_for_one_session_alone(project: Path) -> None:
    set_goal(project)
    start(project, ONE)
    start(project, OTHER)
    assert [stop(project, OTHER), stop(project, ONE), stop(project, OTHER)] == [None, BLOCK, None]


def test_a_session_that_ends_with_its_goal_leaves_nothing_for_the_next_one(project: Path) -> None:
    set_goal(project)
    assert stop(project) == BLOCK
    start(project, OTHER)
    assert [stop(project, OTHER, turn="2"), asked(project)] == [None, 1]


def test_a_session_that_is_resumed_still_has_its_goal(project: Path) -> None:
    set_goal(project)
    assert stop(project) == BLOCK
    start(project, ONE, "resume")
    assert stop(project, turn="2")["decision"] == "block"


def test_a_goal_that_no_session_has_taken_over_ends_after_a_day(project: Path, state: Path) -> None:
    set_goal(project)
    [path] = goal_files(state)
    os.utime(path, (0, time.time() - NEXT_S - 60))
    start(project, ONE)
    assert [stop(project), goal_files(state)] == [None, []]


def test_of_several_sessions_that_stop_at_once_one_takes_the_goal_over(project: Path) -> None:
    set_goal(project)
    sessions = [f"{n}{ONE[1:]}" for n in range(6)]
    programs = [
        Program(("hook",), stdin=json.dumps(fields(project, each, turn_id=each))) for each in sessions
    ]
    answers = [answer_of(each) for each in programs]
    assert [each for each in answers if each] == [BLOCK]


def test_a_goal_is_for_the_session_that_is_named_or_for_the_next_one(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    stop(project, ONE)
    stop(project, OTHER)
    code, out, _ = goal(project, "the file done exists", "--proof", PROOF, "--for", "1111")
    assert (code, out.startswith(f"goal set for session {ONE}\n")) == (0, True)
    assert goal(project, "another goal", "--proof", "true", "--for", "2222")[0] == 0
    assert goal(project, "a third goal", "--proof", "true")[0] == 0
    assert {each["goal"]: each["session"] for each in goals(project)} == {
        "the file done exists": ONE,
        "another goal": OTHER,
        "a third goal": None,
    }
    code, _, err = goal(project, "clear")
    assert (code, err.startswith("turngate: 3 sessions have a goal; name one with --for\n")) == (64, True)
    assert goal(project, "clear", "--for", "2222") == (0, "cleared: another goal\n", "")
    assert goal(project, "another goal", "--proof", "true", "--for", "333") == (
        64,
        "",
        "turngate: there is no session 333; `turngate sessions` lists them\n",
    )


def test_without_settings_a_goal_from_a_subfolder_is_for_the_whole_repository(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(project, {})
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    assert turngate("goal", "the file done exists", "--proof", PROOF)[0] == 0
    assert stop(project) == BLOCK


# Pause, resume, clear


def test_a_goal_is_paused_resumed_and_cleared_during_a_turn(project: Path) -> None:
    set_goal(project)
    assert stop(project) == BLOCK
    assert goal(project, "pause") == (0, "paused: the file done exists\n", "")
    assert [stop(project), asked(project)] == [None, 1]
    assert goal(project, "resume") == (0, "active: the file done exists\n", "")
    assert stop(project) == BLOCK | {"reason": AGAIN["reason"]}
    assert goal(project, "clear") == (0, "cleared: the file done exists\n", "")
    assert [stop(project), stop(project, turn="2"), asked(project)] == [None, None, 2]
    assert goal(project, "clear") == (0, "no goal is set\n", "")


@pytest.mark.parametrize("action", ["clear", "pause"])
def test_a_goal_that_a_person_gives_up_while_it_is_checked_does_not_block(project: Path, action: str) -> None:
    set_goal(project, proof=WAITS)
    with stopping(project) as process:
        assert goal(project, action)[0] == 0
        (project / "proceed").touch()
        told = 'gate "goal": the goal was cleared or paused while it was checked'
        assert answer_of(process) == {"systemMessage": told}
    assert stop(project) is None


def test_a_new_goal_replaces_the_condition_of_the_old_one(project: Path) -> None:
    set_goal(project)
    assert stop(project) == BLOCK
    assert goal(project, "the file other exists", "--proof", "test -e other", "--for", ONE)[0] == 0
    told = f"{NOT_MET}the file other exists\n`test -e other`: exit code 1"
    assert stop(project) == {"decision": "block", "reason": told}
    (project / "other").touch()
    assert [stop(project)["systemMessage"], stop(project), asked(project)] == [
        "the goal is met, and cleared: the file other exists",
        None,
        1,
    ]


def test_a_goal_that_is_replaced_while_it_is_checked_is_not_cleared_by_the_old_one(project: Path) -> None:
    set_goal(project, proof=WAITS)
    with stopping(project) as process:
        assert goal(project, "another goal", "--proof", "false", "--for", ONE)[0] == 0
        (project / "done").touch()
        (project / "proceed").touch()
        process.communicate()
    assert [each["goal"] for each in goals(project)] == ["another goal"]


def test_of_goals_that_are_set_at_once_one_stays(project: Path, state: Path) -> None:
    words = [
        ("goal", f"goal number {n}", "--proof", "true", "--for", ONE, "--project", str(project))
        for n in range(6)
    ]
    programs = [Program(each) for each in words]
    assert [each.communicate()[1] for each in programs] == [""] * 6
    assert (len(goals(project)), len(goal_files(state))) == (1, 1)


def test_a_stop_that_is_killed_leaves_the_goal_as_it_was(project: Path) -> None:
    set_goal(project, proof=WAITS)
    with stopping(project) as process:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert [each["status"] for each in goals(project)] == ["active"]
    (project / "proceed").touch()
    assert stop(project)["decision"] == "block"
    (project / "done").touch()
    assert stop(project) == MET


PROOFS = {
    "sh scripts/proof.sh": ("scripts/proof.sh", "test -e done\n", "exit 0\n"),
    "make proof": ("Makefile", "proof:\n\ttest -e done\n", "proof:\n\ttrue\n"),
    "pytest -q": ("pytest.ini", "[pytest]\n", "[pytest]\naddopts = --collect-only\n"),
}


@pytest.mark.parametrize("proof", PROOFS)
def test_a_proof_that_is_changed_blocks_once_with_the_difference_and_the_user_is_told(
    project: Path, proof: str
) -> None:
    name, text, edited = PROOFS[proof]
    make_repository(project, {name: text, "test_done.py": "def test_done():\n    open('done')\n"})
    set_goal(project, proof=proof)
    (project / name).write_text(edited)
    block = stop(project)
    assert (block["decision"], block["reason"].split("\n")[0]) == (
        "block",
        f"The check `{proof}` itself was changed in this session:",
    )
    answer = stop(project)
    assert name in (answer["systemMessage"] if proof != "pytest -q" else block["reason"])


# The user's stand-down in the conversation


def transcript(project: Path, builder: TranscriptBuilder) -> dict[str, str]:
    return {"transcript_path": builder.write(project.parent / "transcript.jsonl")}


def queued(text: str) -> bytes:
    """Return what Claude Code writes when the user types while the agent works."""
    attached = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
    return json.dumps({"type": "attachment", "timestamp": IN_THE_FUTURE, "attachment": attached}).encode()


@pytest.mark.parametrize(
    "builder",
    [
        talk().user("Forget the goal, just commit.", timestamp=IN_THE_FUTURE),
        talk().user("forget the goal", timestamp=IN_THE_FUTURE).user("Thanks!", timestamp=IN_THE_FUTURE),
        talk()
        .user("Go on.", timestamp=IN_THE_FUTURE)
        .raw(queued("Please drop the goal for now"))
        .says("Ok."),
        talk().user("<bash-input>turngate goal clear</bash-input>", timestamp=IN_THE_FUTURE),
    ],
)
def test_a_goal_that_the_user_drops_in_the_conversation_is_cleared(
    project: Path, state: Path, builder: TranscriptBuilder
) -> None:
    set_goal(project)
    told = stop(project, **transcript(project, builder))["systemMessage"]
    assert told.startswith('gate "goal": the goal is cleared, because you wrote "')
    assert [stop(project), asked(project), goal_files(state)] == [None, 0, []]


@pytest.mark.parametrize(
    "builder",
    [
        talk().user("Don't forget the goal.", timestamp=IN_THE_FUTURE),
        talk().user("Forget the goal.", timestamp=LONG_AGO),
        talk().user("Go on.", timestamp=IN_THE_FUTURE).says("Forget the goal."),
        talk()
        .user("Go on.", timestamp=IN_THE_FUTURE)
        .calls("Bash", {"command": "turngate goal clear"}, "Forget the goal.", timestamp=IN_THE_FUTURE),
        talk().user("Forget the goal.", timestamp=IN_THE_FUTURE, isMeta=True),
        talk().user("<bash-stdout># notes\nforget the goal\n</bash-stdout>", timestamp=IN_THE_FUTURE),
        talk().user("<note>\nforget the goal\n</note>", timestamp=IN_THE_FUTURE),
    ],
)
def test_what_the_agent_writes_or_the_user_wrote_before_does_not_clear_a_goal(
    project: Path, builder: TranscriptBuilder
) -> None:
    set_goal(project)
    assert stop(project, **transcript(project, builder))["decision"] == "block"


# Who may set it, and what


@pytest.mark.parametrize("marker", AGENT_MARKERS)
def test_an_agent_cannot_set_pause_resume_or_clear_a_goal(
    project: Path, monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    set_goal(project)
    before = goals(project)
    monkeypatch.setenv(marker, "1")
    why = f"a person sets and clears goals, in a terminal of their own, and this was started by a hook or an agent ({marker} is set)"
    for words in (("pause",), ("resume",), ("clear",), ("a new goal", "--proof", "true")):
        assert goal(project, *words) == (64, "", f"turngate: {why}\n")
    assert goals(project) == before


def test_a_goal_without_a_proof_needs_a_judge(project: Path, home: Path, state: Path) -> None:
    code, out, err = goal(project, "the README explains every option")
    assert (code, out, goal_files(state)) == (64, "", [])
    assert err.startswith("turngate: a goal needs --proof CMD, or a model that judges it, ")
    judge = home / "judge.json"
    replies = ['{"ok": false, "reason": "two options are missing"}', '{"ok": true}']
    judge.write_text(json.dumps({"judge": replies}))
    write_settings(home, "turngate", {"turngate": {"judge": f"scripted:{judge}"}})
    assert goal(project, "the README explains every option")[0] == 0
    assert stop(project, **transcript(project, talk().says("Done."))) == {
        "decision": "block",
        "reason": f"{NOT_MET}the README explains every option\ntwo options are missing",
    }
    judge.write_text(json.dumps({"judge": replies[1:]}))
    assert stop(project, **transcript(project, talk()), last_assistant_message="Really done.") == {
        "systemMessage": "the goal is met, and cleared: the README explains every option"
    }


def test_a_judge_that_only_the_project_names_judges_no_goal(project: Path) -> None:
    write_settings(project, "turngate", {"turngate": {"judge": "scripted:/tmp/yes.json"}})
    code, _, err = goal(project, "the README explains every option")
    assert (code, err.startswith("turngate: a goal needs --proof CMD")) == (64, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("x" * 4001, "--proof", "true"), "the goal has 4,001 characters, expected 1 to 4,000"),
        (("y" * 100_000, "--proof", "true"), "the goal has 100,000 characters, expected 1 to 4,000"),
        ((" \x1b[2J", "--proof", "true"), "the goal has 5 characters, expected 1 to 4,000"),
        (("a goal", "--proof", ""), "--proof has 0 characters, expected 1 to 4,000"),
        (("claer",), "a goal of one word needs --proof; did you mean `turngate goal clear`?"),
        (("clear", "--proof", "true"), '--proof belongs to a new goal: turngate goal "…" --proof CMD'),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(
    project: Path, state: Path, words: tuple[str, ...], why: str
) -> None:
    assert goal(project, *words) == (64, "", f"turngate: {why}\n")
    assert goal_files(state) == []


def test_controls_are_removed_and_secrets_are_hidden(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cr3t-v4lue")
    text = "deploy\x1b[31m with s3cr3t-v4lue\nand \u202estop\x07"
    assert goal(project, text, "--proof", "echo s3cr3t-v4lue; false")[0] == 0
    answer = stop(project)
    shown = [goal(project)[1], goal(project, "--json")[1], turngate("hooks", "--project", str(project))[1]]
    shown += [turngate("status", "--project", str(project))[1], json.dumps(answer)]
    assert answer["reason"].startswith(f"{NOT_MET}deploy with … and stop\n`echo …; false`: exit code 1")
    assert [text for text in shown if "s3cr3t" in text or "\x1b" in text or "\u202e" in text] == []
    [path] = goal_files(state)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"text": 1}', b"[" * 100_000, b'{"text": "' + b"x" * 1_000_000 + b'"}']
)
def test_a_goal_whose_file_is_damaged_is_reported_and_can_be_cleared(
    project: Path, state: Path, data: bytes
) -> None:
    set_goal(project, "--for", ONE)
    [path] = goal_files(state)
    path.write_bytes(data)
    why = "the file of the goal cannot be read; set it again with `turngate goal`"
    assert stop(project) == {"systemMessage": f'hook "goal" failed and was NOT enforced: {why}'}
    assert goal(project, "clear")[0] == 0
    assert [stop(project), goal_files(state)] == [None, []]


# What is shown


def test_what_is_set_is_shown_with_its_blocks_and_the_last_reason(project: Path) -> None:
    assert goal(project) == (0, "no goal is set\n", "")
    set_goal(project)
    stop(project)
    stop(project)
    [found] = goals(project)
    since = found.pop("since")
    assert (abs(since - time.time()) < HANG_TIMEOUT_S, found) == (
        True,
        {
            "project": str(project),
            "session": ONE,
            "status": "active",
            "goal": "the file done exists",
            "proof": PROOF,
            "runs": 2,
            "blocked": 2,
            "last_result": "block",
            "last_reason": AGAIN["reason"].removeprefix(f"{NOT_MET}the file done exists\n"),
        },
    )
    day = time.strftime("%Y-%m-%d")
    line = f"session {ONE}, blocked 2 times"
    for words in (
        ("goal",),
        ("goal", "status"),
        ("goal", "--for", ONE[:4]),
        ("hooks",),
        ("hooks", "list"),
        ("status",),
    ):
        code, out, _ = turngate(*words, "--project", str(project))
        assert (code, f"active since {day}" in out, line in out, "the file done exists" in out) == (
            0,
            True,
            True,
            True,
        )
    for words in (("hooks", "--json"), ("status", "--json")):
        assert json.loads(turngate(*words, "--project", str(project))[1])["goals"] == goals(project)


# In the built-in agent


def run(project: Path, *replies: Any, words: tuple[str, ...] = ()) -> dict[str, Any]:
    script = project.parent / "script.json"
    script.write_text(json.dumps({"main": replies}))
    _, out, _ = turngate(
        *("run", "-p", "go", "--project", str(project), "--model", f"scripted:{script}"),
        *("--permission-mode", "bypassPermissions", "--output-format", "json", *words),
    )
    result: dict[str, Any] = json.loads(out)
    return result


def test_a_goal_holds_in_the_built_in_agent_and_survives_a_resume(project: Path) -> None:
    set_goal(project, "--for", "next")
    first = run(project, "Done {n}.")
    assert (first["ended_by"], first["continuations"], asked(project)) == ("capped", 3, 4)
    bash = {"text": "I make it.", "tool": "Bash", "input": {"command": "touch done"}}
    words = ("--resume", "--session", first["session_id"])
    second = run(project, "Done.", bash, "Now done.", words=words)
    assert (second["ended_by"], second["continuations"]) == ("allowed", 1)
    assert "the goal is met, and cleared: the file done exists" in second["notices"]
    (project / "done").unlink()
    assert run(project, "Done.", words=words)["continuations"] == 0


def test_a_goal_is_set_shown_and_dropped_in_a_conversation(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    yes, no = '{"ok": true}', '{"ok": false, "reason": "it is too short"}'
    script.write_text(json.dumps({"main": ["Done {n}."] * 9, "judge": [no, yes]}))
    with Terminal("run", "--session", "short", "--model", f"scripted:{script}", cwd=project) as terminal:
        terminal.expect("/help shows the commands and keys")
        for said, shown in [
            ("/goal", "no goal is set"),
            ("/goal don't be short", "goal set for session"),
            ("/goal status", "a model judges it"),
            ("write", "Done 1."),
            ("", "it is too short"),
            ("", "the goal is met, and cleared: don't be short"),
            ('/goal "a file" --proof "test -e done"', "proof: test -e done"),
            ("/goal pause", "paused: a file"),
            ("/goal resume", "active: a file"),
            ("forget the goal", 'the goal is cleared, because you wrote "forget the goal": a file'),
            ('/goal "a file" --proof "test -e done"', "goal set for session"),
            ("/clear", "conversation cleared"),
            ("/goal", "no goal is set"),
            ("/goal --nonsense", "! unrecognized arguments: --nonsense"),
        ]:
            if said:
                terminal.say(said)
            terminal.expect(shown)
