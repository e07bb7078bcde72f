"""No line of a file with secrets reaches a model through the shipped hooks, whichever name leads to it.

The command runs as a process, its models are played on loopback, and everything that they were sent is searched.
"""

import json
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import turngate
from tests.support.live_models import MODEL, block_real_providers
from tests.support.machines import Machine
from tests.support.paths import ROOT
from tests.support.servers.anthropic import AnthropicServer, serve_script
from tests.support.servers.model import Json
from tests.support.sessions import configured_session_on
from turngate.errors import UsageError

pytestmark = pytest.mark.req("S3-49")

WORKFLOW = ROOT / "examples" / "feature-workflow"
PLAN = "docs/plans/text/PLAN.md"
SECRET = "hunter2"
# Each line is what one of the hooks looks for: tasks, an entry of the memory.
SECRETS = f"""\
KEY = {SECRET}
- [ ] {SECRET}
## Session {SECRET}
"""
JUDGE = {"type": "prompt", "id": "judge", "prompt": "Is it done?", "transcript": "full"}


def agent_of(body: Json) -> str:
    if "tools" not in body:
        return "judge"
    return "main"


@pytest.fixture
def workflow(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workflow in a project that has secrets, with a judge who sees whole transcripts."""
    runpy.run_path(str(WORKFLOW / "install.py"))["install"](project)
    path = project / ".turngate" / "settings.json"
    settings = json.loads(path.read_text())
    settings["hooks"]["SubagentStop"].append({"hooks": [JUDGE]})
    settings["hooks"]["Stop"].insert(0, {"hooks": [JUDGE]})
    settings["turngate"]["limit"] = 1
    path.write_text(json.dumps(settings))
    (project / ".env").write_text(SECRETS)
    monkeypatch.setenv("HOOK_STATE", str(project.parent / "hook-state"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    block_real_providers(monkeypatch)
    return project


@pytest.fixture
def models(workflow: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicServer]:
    """The models; at the end, neither they nor the state of the sessions and hooks have a secret."""
    with serve_script({"main": ["done"], "judge": ['{"ok": true, "reason": "yes"}']}, agent_of) as models:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", models.url)
        yield models
    assert SECRET not in json.dumps(models.requests)
    stored = [*state.rglob("*"), *(workflow.parent / "hook-state").rglob("*")]
    assert [path for path in stored if path.is_file() and SECRET.encode() in path.read_bytes()] == []


def play(models: AnthropicServer, project: Path, prompt: str, **script: list[Any]) -> tuple[int, Json]:
    """Run one turn with these answers; return the exit code and the result, in which there is no secret either."""
    models._script.update({agent: [*map(as_reply, replies)] for agent, replies in script.items()})
    models.agents.clear()
    options = ("--model", MODEL, "--allow", "Write", "--trust", "--output-format", "json")
    code, out, err = turngate("run", "-p", prompt, "--project", str(project), "--session", "s", *options)
    assert (SECRET in out, SECRET in err) == (False, False)
    return code, json.loads(out)


def as_reply(reply: Any) -> Json:
    return {"text": reply} if isinstance(reply, str) else dict(reply)


def reasons(result: Json, hook: str) -> set[str]:
    runs = [each for each in result["hook_runs"] if each["hook"]["id"] == hook]
    return {each["reason"] for each in runs if each["outcome"] == "block"}


BECAUSE = "usually holds secrets, and hooks do not open such files"


def test_a_link_in_the_place_of_the_plan_or_of_the_memory_is_not_followed(
    models: AnthropicServer, workflow: Path
) -> None:
    folder = (workflow / PLAN).parent
    folder.mkdir(parents=True)
    (folder / "PLAN.md").write_text("# Text\n\n- [x] slugs\n")
    (folder / "MEMORY.md").symlink_to("../../../.env")
    code, result = play(models, workflow, "/implement text", main=["done"])
    memory = "docs/plans/text/MEMORY.md"
    assert f"(The memory is left out: '{memory}' {BECAUSE}.)" in json.dumps(models.requests[0]["system"])
    failed = [each["reason"] for each in result["hook_runs"] if each["hook"]["id"] == "update-memory"]
    assert (code, failed) == (
        0,
        [f"exit code 1: update_memory.py: the memory is not written: '{memory}' {BECAUSE}"],
    )
    (folder / "PLAN.md").unlink()
    (folder / "PLAN.md").symlink_to("../../../.env")
    code, result = play(models, workflow, "/implement text", main=["done"])
    refused = "docs/plans/*/PLAN.md names no file of the project"
    reported = [each["reason"] for each in result["hook_runs"] if each["hook"]["id"] == "plan-is-done"]
    assert (code, reported[-1]) == (0, refused)


def test_a_link_of_a_repository_does_not_make_the_secrets_of_the_user_a_prompt(
    project: Path, machine: Machine
) -> None:
    """As guide of the project, as slash command and as agent type."""
    (project / ".env").write_text(SECRETS)
    for name in ("AGENTS.md", ".turngate/commands/x.md", ".turngate/agents/a.md"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).symlink_to(os.path.relpath(project / ".env", (project / name).parent))
    start = {"tool": "Task", "input": {"prompt": "Go.", "subagent_type": "a"}}
    scene = configured_session_on(machine, project, start, "done", dialect="turngate")
    agent = project / ".turngate" / "agents" / "a.md"
    refusal = f"{agent} is a link to a file that usually holds secrets; this agent type is not loaded"
    assert scene.play("go").notices == (refusal,)
    assert "unknown agent type 'a', expected one of general-purpose, Explore" in str(scene.model.requests)
    assert SECRET not in str(scene.model.requests)
    with pytest.raises(UsageError, match=r"x\.md: is a link to a file that usually holds secrets"):
        scene.session.commands.find("x")
