"""A session runs the hooks of its start; what is changed meanwhile does not run, and is not hidden."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.cli import turngate
from tests.trust.support import EVIL, RUNS, approve_all, ask, command, make, said, stop_settings, write
from turngate.agent.session import Session
from turngate.core.events.events import StopHookInput
from turngate.core.events.stream_events import TurnResult
from turngate.core.verdict.decisions import Block
from turngate.models.scripted import ScriptedModel
from turngate.project.files import LOCAL
from turngate.runners import WRITES_ITSELF
from turngate.shells.local import LocalShell
from turngate.stop_hooks import run_stop_hooks
from turngate.trust.review import review_project

CHECK = {"hooks/check.sh": RUNS}
HOOK = command("sh hooks/check.sh", id="check")


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"tool": name, "input": fields}


def run_turn(project: Path, *steps: Any, **options: Any) -> TurnResult:
    async def send() -> TurnResult:
        model = ScriptedModel({"main": [*steps, "done"]})
        async with Session(str(project), model, permission_mode="bypassPermissions", **options) as session:
            return await session.send("go")

    return asyncio.run(send())


@pytest.mark.req("S3-16")
def test_the_agent_cannot_change_the_settings_of_its_own_session(project: Path) -> None:
    """It replaces the approved hook in the settings: the session still runs the old one, the next one neither."""
    make(project, HOOK, CHECK)
    approve_all(project)
    settings = project / ".turngate/settings.json"
    evil = json.dumps(stop_settings(command("touch evil", id="check"), command("touch evil")))
    result = run_turn(
        project, tool("Read", file_path=str(settings)), tool("Write", file_path=str(settings), content=evil)
    )
    assert (settings.read_text(), said_by(result), (project / "ran").read_text()) == (evil, [], "ran\n")
    assert said_by(run_turn(project)) == [
        "its definition was changed after it was approved",
        "it is not approved",
    ]
    assert ((project / "evil").exists(), (project / "ran").read_text()) == (False, "ran\n")
    approve_all(project)
    assert (said_by(run_turn(project)), (project / "evil").exists()) == ([], True)


@pytest.mark.req("S3-16")
@pytest.mark.req("X-13")
def test_the_agent_cannot_change_the_script_of_a_hook(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    changed = run_turn(project, tool("Bash", command=f"echo '{EVIL.strip()}' > hooks/check.sh"))
    assert (changed.ended_by, blocks_of(changed)) == ("capped", [SCRIPT_CHANGED] * 4)
    assert said_by(run_turn(project)) == ["hooks/check.sh was changed after it was approved"]
    assert not (project / "evil").exists()
    approve_all(project)
    assert (said_by(run_turn(project)), (project / "evil").exists()) == ([], True)


SCRIPT_CHANGED = (
    'The gate "check" is NOT enforced: hooks/check.sh was changed in this session. Undo this change, '
    "or ask the user to approve it in another terminal with `turngate hooks approve --all`."
)


def blocks_of(result: TurnResult) -> list[str]:
    return [run.decision.reason for run in result.hook_runs if isinstance(run.decision, Block)]


def said_by(result: TurnResult) -> list[str | None]:
    return [run.said for run in result.unenforced]


def test_trust_accepts_what_is_there_at_the_start(project: Path) -> None:
    make(project, HOOK, CHECK)
    assert (said_by(run_turn(project, trust=True)), (project / "ran").read_text()) == ([], "ran\n")
    change = tool("Bash", command=f"echo '{EVIL.strip()}' > hooks/check.sh")
    assert blocks_of(run_turn(project, change, trust=True)) == [SCRIPT_CHANGED] * 4
    assert not (project / "evil").exists()


def test_the_answer_of_a_script_that_is_changed_while_it_runs_does_not_count(project: Path) -> None:
    """A file could be replaced between the comparison and the start of the command."""
    make(
        project,
        HOOK,
        {"hooks/check.sh": "sleep 0.2; echo 'exit 2' >> hooks/other; echo '# ' >> hooks/check.sh\n"},
    )
    approve_all(project)
    why = f"hooks/check.sh was changed while it ran, so its answer does not count ({WRITES_ITSELF})"
    assert said(ask(project)) == [why]


def test_trust_of_one_stop_is_a_parameter(project: Path) -> None:
    make(project, HOOK, CHECK)
    given = {"session_id": "s", "transcript_path": "", "cwd": str(project), "permission_mode": "default"}
    stop = StopHookInput(**given, hook_event_name="Stop", stop_hook_active=False)
    untrusted = asyncio.run(run_stop_hooks(LocalShell(), str(project), stop))
    assert (untrusted.should_stop, untrusted.warnings, (project / "ran").exists()) == (
        True,
        ['hook "check" was skipped and NOT enforced: it is not approved'],
        False,
    )
    trusted = asyncio.run(run_stop_hooks(LocalShell(), str(project), stop, trust=True))
    assert (trusted.warnings, (project / "ran").exists()) == ([], True)


# What is seen of it


def test_a_pending_hook_is_shown(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr/bin")  # the shorter path is shown, and from here that is the full one
    make(project, HOOK, CHECK)
    row = 'skipped                    0.00 s  "check"  (.turngate/settings.json): it is not approved'
    warning = 'hook "check" was skipped and NOT enforced: it is not approved'
    place = f"--project {project}"
    hint = f"read it with `turngate hooks diff {place}`, then approve it with `turngate hooks approve check {place}`"
    assert turngate("fire", "Stop", "--project", str(project)) == (
        0,
        f"Stop: allowed, 1 gate NOT enforced\n  {row}\n",
        f"! {warning}\n  → {hint}\n",
    )


@pytest.mark.req("C-25")
def test_a_pending_hook_is_not_enforced_and_strict_says_so(project: Path) -> None:
    make(project, HOOK, CHECK)
    assert turngate("fire", "Stop", "--project", str(project), "--strict")[0] == 13
    assert turngate("fire", "Stop", "--project", str(project), "--strict", "--trust")[0] == 0
    code, out, _ = turngate("fire", "Stop", "--project", str(project), "--json")
    shown = json.loads(out)
    assert (code, [(run["hook"], run["why"]) for run in shown["unenforced"]]) == (
        0,
        [("check", "it is not approved")],
    )


def test_a_rejected_hook_is_not_a_gate_that_was_not_enforced(project: Path) -> None:
    make(project, HOOK, CHECK)
    review = review_project(str(project), files=LOCAL)
    review.reject(review.hooks)
    verdict = ask(project)
    assert (said(verdict), [run.said for run in verdict.hook_outputs], (project / "ran").exists()) == (
        [],
        ["it was rejected"],
        False,
    )
    approve_all(project)
    assert (said(ask(project)), (project / "ran").exists()) == ([], True)


# Hooks of the user


def test_a_hook_of_the_user_is_approved_on_first_sight(project: Path, home: Path) -> None:
    write(home, {".turngate/check.sh": RUNS})
    write_settings(home, "turngate", stop_settings(command("sh ~/.turngate/check.sh")))
    assert (said(ask(project)), (project / "ran").exists()) == ([], True)
    write(home, {".turngate/check.sh": EVIL})
    path = home / ".turngate/check.sh"
    assert (said(ask(project)), (project / "evil").exists()) == (
        [f"{path} was changed after it was approved"],
        False,
    )
    review = review_project(str(project), files=LOCAL)
    review.approve(review.hooks)
    assert (said(ask(project)), (project / "evil").exists()) == ([], True)


def test_another_definition_of_a_users_hook_is_pending_and_a_further_hook_is_not(
    project: Path, home: Path
) -> None:
    write_settings(home, "turngate", stop_settings(command("touch ran")))
    assert said(ask(project)) == []
    write_settings(home, "turngate", stop_settings(command("touch evil")))
    assert said(ask(project)) == ["its definition was changed after it was approved"]
    write_settings(home, "turngate", stop_settings(command("touch new"), command("touch ran")))
    assert (said(ask(project)), (project / "new").exists(), (project / "evil").exists()) == ([], True, False)


def test_a_state_folder_that_cannot_be_written_does_not_stop_the_users_hooks(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, {"file": ""})
    monkeypatch.setenv("TURNGATE_STATE", str(home / "file" / "state"))
    write_settings(home, "turngate", stop_settings(command("touch ran")))
    assert (said(ask(project)), (project / "ran").exists()) == ([], True)


def test_settings_of_the_command_line_need_no_approval(project: Path) -> None:
    assert said(ask(project, extra=json.dumps(stop_settings(command("touch ran"))))) == []
    assert (project / "ran").exists()


# Review


def test_a_review_names_each_hook_and_what_is_gone(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    write_settings(project, "turngate", stop_settings(command("true"), command("true", id="check")))
    review = review_project(str(project), files=LOCAL)
    shown = [(hook.key, hook.status, hook.why) for hook in review.hooks]
    assert shown == [
        ("Stop:1", "new", "it is not approved"),
        ("check", "changed", "its definition was changed after it was approved"),
    ]
    write_settings(project, "turngate", {})
    (approval,) = review_project(str(project), files=LOCAL).vanished
    assert (approval.key, approval.content_of("hooks/check.sh")) == ("check", RUNS.encode())
    assert json.loads(approval.fingerprint.definition) == {
        "event": "Stop",
        "type": "command",
        "command": "sh hooks/check.sh",
        "id": "check",
    }


def test_only_what_was_reviewed_is_approved(project: Path) -> None:
    make(project, HOOK, CHECK)
    review = review_project(str(project), files=LOCAL)
    write(project, {"hooks/check.sh": EVIL})
    with pytest.raises(
        Exception, match=r"hooks/check\.sh was changed while check was reviewed; nothing was approved"
    ):
        review.approve(review.hooks)
    assert (said(ask(project)), (project / "evil").exists()) == (["it is not approved"], False)
