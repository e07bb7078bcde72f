"""The scripts that documents 000 and 003 name, run as their settings run them."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, write_settings
from tests.support.cli import start_turngate
from tests.support.paths import ROOT
from tests.support.scripted_run import as_json, scripted
from tests.support.sessions import configured_session, hang, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S

SCRIPTS = ROOT / "examples" / "hooks" / "scripts"
APPROVED = (0, {"decision": "approve"}, "")
SECRET = "hunter2"
# Each line is what one of the scripts looks for: code that does not compile, tasks, a table, an entry of the memory.
SECRETS = f"""\
KEY = {SECRET} !
- [ ] {SECRET}
| Chunk | Files | Tests |
|---|---|---|
| {SECRET} | {SECRET}.py | {SECRET}.py |
## Session {SECRET}
"""
PIPELINE = json.dumps(
    {
        "stages": [
            {"name": "plan", "agent": "planner", "output": "PLAN.md"},
            {"name": "code", "agent": "coder", "output": "slug.py"},
        ]
    }
)
PLAN = """\
# Plan

- [x] slugs
- [ ] pages
* [ ] links

```
- [ ] an example
```

| Chunk | Files | Tests |
|---|---|---|
| chunk-1 | `slug.py` | tests/test_slug.py |
| chunk-2 | page.py | tests/test_page.py |
| chunk-10 | ../outside.py | tests/test_slug.py |
"""
TEST = """\
import unittest
from {name} import {name}


class {title}Test(unittest.TestCase):
    def test_{name}_of_two_words(self):
        self.assertEqual({name}("A B"), "a-b")
"""
GOOD = "def {name}(text):\n    return text.lower().replace(' ', '-')\n"
PROMPT_1 = {"message": {"role": "user", "content": "Implement chunk-1 of the plan."}}
CALL = {"type": "tool_call", "tool_name": "bash", "script": "make test"}
OTHER_CALL = {"type": "tool_call", "tool_name": "read", "input": {}}


def refused(name: str) -> str:
    return f"{name!r} usually holds secrets, and hooks do not open such files"


def block(reason: str) -> tuple[int, dict[str, str], str]:
    return 0, {"decision": "block", "reason": reason}, ""


@dataclass
class Case:
    answer: tuple[int, Any, str]
    files: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    transcript: list[Any] = field(default_factory=list)
    arguments: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)


def chunk_files(**bodies: str) -> dict[str, str]:
    """A plan with the code and the tests of its chunks."""
    tests = {f"tests/test_{name}.py": TEST.format(name=name, title=name.title()) for name in bodies}
    return {"PLAN.md": PLAN, **{f"{name}.py": body for name, body in bodies.items()}, **tests}


CASES: dict[str, dict[str, Case]] = {
    "validate_subagent.py": {
        "allow": Case(
            APPROVED, {"a.py": ""}, {"last_assistant_message": "I wrote `a.py` and looked at `b.py`."}
        ),
        "block": Case(
            block(
                "You name files that do not exist in the project: b.py, ../x. Write them, or correct your answer."
            ),
            {"a.py": ""},
            {"last_assistant_message": "I created `a.py`. I wrote `b.py`, and updated `../x`."},
        ),
        "absolute names and names of files with secrets": Case(
            APPROVED,
            fields={"last_assistant_message": "I wrote `/dev/null/../../etc/.env` and updated `.env.local`."},
        ),
        "empty": Case(
            block("Your answer is empty. Report what you did, which files you changed and what is left."),
            fields={"last_assistant_message": " \n"},
        ),
        "answer in the transcript": Case(
            APPROVED,
            transcript=[{"message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}}],
        ),
    },
    "pipeline_controller.py": {
        "allow": Case(
            APPROVED, {".claude/pipeline.json": PIPELINE, "PLAN.md": "x"}, {"agent_type": "planner"}
        ),
        "another agent": Case(APPROVED, {".claude/pipeline.json": PIPELINE}, {"agent_type": "Explore"}),
        "an output with secrets": Case(
            (
                1,
                None,
                f'pipeline_controller.py: .claude/pipeline.json cannot be used: ValueError("{refused(".env")}")\n',
            ),
            {".claude/pipeline.json": PIPELINE.replace("PLAN.md", ".env")},
            {"agent_type": "planner"},
        ),
        "block": Case(
            block("Stage plan is not complete: write PLAN.md."),
            {".claude/pipeline.json": PIPELINE, "PLAN.md": ""},
            {"agent_type": "planner"},
        ),
    },
    "verify_pipeline_complete.py": {
        "allow": Case(APPROVED, {".claude/pipeline.json": '{"stages": []}'}),
        "block": Case(
            block(
                "These stages of the pipeline are not complete: plan (subagent planner), code (subagent coder)."
            ),
            {".claude/pipeline.json": PIPELINE},
        ),
    },
    "validate_plan_completion.py": {
        "allow": Case(APPROVED, {"PLAN.md": "- [x] a\n```\n- [ ] b\n```\n"}),
        "no plan": Case(APPROVED),
        "block": Case(
            block("2 tasks of the plan are not complete:\n- PLAN.md: pages\n- PLAN.md: links"),
            {"PLAN.md": PLAN},
        ),
        "a plan with secrets": Case(
            block(f"The plan cannot be used: {refused('PLAN.md')}."), links={"PLAN.md": ".env"}
        ),
        "a named plan with secrets": Case(
            block(f"The plan cannot be used: {refused('.env')}."), arguments=(".env",)
        ),
        "a named plan": Case(
            block("1 task of the plan is not complete:\n- docs/plans/a b/PLAN.md: c"),
            {"docs/plans/a b/PLAN.md": "- [ ] c\n", "PLAN.md": PLAN},
            arguments=("docs/plans/a b/PLAN.md",),
        ),
        "every stop": Case(
            block("1 task of the plan is not complete:\n- PLAN.md: a"),
            {"PLAN.md": "1. [ ] a\n"},
            {"stop_hook_active": True},
            arguments=("--every-stop",),
        ),
    },
    "validate_chunk.py": {
        "allow": Case(APPROVED, chunk_files(slug=GOOD.format(name="slug")), transcript=[PROMPT_1]),
        "another task": Case(APPROVED, {"PLAN.md": PLAN}, {"last_assistant_message": "chunk-100 is done"}),
        "block": Case(
            block("chunk-1 is not complete, these files are missing: slug.py, tests/test_slug.py"),
            {"PLAN.md": PLAN},
            transcript=[PROMPT_1],
        ),
        "tests that unittest does not find": Case(
            block(
                "chunk-1: its tests fail. Fix slug.py.\nno tests were run: write them as methods of unittest.TestCase"
            ),
            {
                **chunk_files(slug=GOOD.format(name="slug")),
                "tests/test_slug.py": "def test_slug():\n    assert 0\n",
            },
            transcript=[PROMPT_1],
        ),
        "a chunk with secrets": Case(
            block(
                "chunk-1: 'tests/test_slug.py' usually holds secrets, and hooks do not open such files. Correct the plan."
            ),
            chunk_files(slug=GOOD.format(name="slug")),
            transcript=[PROMPT_1],
            links={"tests/test_slug.py": "../.env"},
        ),
        "a chunk out of the project": Case(
            block("chunk-10: '../outside.py' is not a path in the project. Correct the plan."),
            {"PLAN.md": PLAN},
            {"last_assistant_message": "chunk-10 is done"},
        ),
    },
    "subagent-stop-hook.py": {
        "allow": Case(APPROVED, transcript=[OTHER_CALL]),
        "block": Case(block("Subagent should use tools to complete the task"), transcript=["no call"]),
    },
    "stop-check.sh": {
        "a transcript with secrets": Case(
            (2, None, "Please run tests before stopping\n"), fields={"transcript_path": ".env"}
        ),
        "allow": Case((0, None, ""), transcript=[CALL]),
        "block": Case((2, None, "Please run tests before stopping\n"), transcript=[OTHER_CALL]),
    },
    "update_memory.py": {
        "no plan": Case((0, None, "")),
        "allow": Case((0, None, ""), {"PLAN.md": PLAN}),
        "a memory with secrets": Case(
            (1, None, f"update_memory.py: the memory is not written: {refused('MEMORY.md')}\n"),
            {"PLAN.md": PLAN},
            links={"MEMORY.md": ".env"},
        ),
        "a plan with secrets": Case(
            (1, None, f"update_memory.py: The plan cannot be used: {refused('PLAN.md')}.\n"),
            links={"PLAN.md": ".env"},
        ),
    },
    "load_memory.py": {
        "no plan": Case((0, "No active plans\n", "")),
        "allow": Case(
            (0, "".join(f"{name}{number}\n" for name in "ab" for number in range(50)), ""),
            {
                f"docs/plans/{name}/MEMORY.md": "".join(f"{name}{number}\n" for number in range(size))
                for name, size in (("a", 50), ("b", 300))
            },
        ),
        "a memory with secrets": Case(
            (0, f"(The memory is left out: {refused('docs/plans/b/MEMORY.md')}.)\n", ""),
            {"docs/plans/b/other": ""},
            links={"docs/plans/b/MEMORY.md": "../../../.env"},
        ),
    },
}
NEVER_BLOCK = ("update_memory.py", "load_memory.py")
EVENTS = {"validate_subagent.py", "pipeline_controller.py", "validate_chunk.py", "subagent-stop-hook.py"}


def install(project: Path, files: dict[str, str], links: dict[str, str] | None = None) -> None:
    """Write these files and links, and a file with secrets."""
    (project / ".env").write_text(SECRETS)
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, target in (links or {}).items():
        (project / name).unlink(missing_ok=True)
        (project / name).symlink_to(target)


def payload(project: Path, name: str, transcript: list[Any] = [], **fields: Any) -> str:  # noqa: B006
    chat = project.parent / "chat.jsonl"
    chat.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in transcript))
    event = "SubagentStop" if name in EVENTS else "Stop"
    own = (
        {"agent_id": "a1", "agent_type": "coder", "agent_transcript_path": str(chat)}
        if name in EVENTS
        else {}
    )
    common = {"session_id": "s", "transcript_path": str(chat), "cwd": str(project), "hook_event_name": event}
    return json.dumps({**common, "stop_hook_active": False, **own, **fields})


def run(project: Path, name: str, stdin: str | bytes, *arguments: str) -> tuple[int, Any, str]:
    """Run a script; return its exit code, its answer and what it printed on stderr."""
    program = [str(SCRIPTS / name)] if name.endswith(".sh") else [sys.executable, str(SCRIPTS / name)]
    done = subprocess.run(
        [*program, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        cwd=project,
        env={**os.environ, "HOOK_STATE": str(project.parent / "hook-state"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    assert SECRET.encode() not in done.stdout + done.stderr
    is_json = done.stdout.startswith(b"{")
    answer = json.loads(done.stdout) if is_json else done.stdout.decode() or None
    return done.returncode, answer, done.stderr.decode()


def test_every_script_of_the_documents_is_there() -> None:
    assert {path.name for path in SCRIPTS.iterdir() if path.is_file()} == {
        *CASES,
        "hook_support.py",
        "safe_paths.py",
    }


@pytest.mark.req("S3-67")
@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(
            name,
            case,
            id=f"{name}: {case}",
            marks=[
                *([pytest.mark.req("S3-52")] if "plan_comp" in name else []),
                *([pytest.mark.req("S3-45")] if (name, case) == ("stop-check.sh", "block") else []),
            ],
        )
        for name, cases in CASES.items()
        for case in cases
    ],
)
def test_a_script_decides_what_its_document_says(project: Path, name: str, case: str) -> None:
    chosen = CASES[name][case]
    install(project, chosen.files, chosen.links)
    stdin = payload(project, name, chosen.transcript, **chosen.fields)
    assert run(project, name, stdin, *chosen.arguments) == chosen.answer


@pytest.mark.req("S3-67", "S3-46")
@pytest.mark.parametrize("name", [name for name in CASES if name not in NEVER_BLOCK])
def test_a_script_approves_when_the_agent_was_already_continued(project: Path, name: str) -> None:
    chosen = CASES[name]["block"]
    install(project, chosen.files)
    stdin = payload(project, name, chosen.transcript, **{**chosen.fields, "stop_hook_active": True})
    told = {"decision": "approve"}
    if not name.endswith(".sh"):
        told["systemMessage"] = f"not blocked a second time: {chosen.answer[1]['reason']}"
    assert run(project, name, stdin) == (0, None if name.endswith(".sh") else told, "")


@pytest.mark.req("S3-67")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "garbage",
    ["", "{", "[]", "null", '"x"', "{}", b"\xff\xfe\x00", "[" * 100_000],
    ids=lambda each: repr(each)[:12],
)
def test_garbage_never_blocks(project: Path, name: str, garbage: str | bytes) -> None:
    code, answer, _ = run(project, name, garbage)
    assert (code, answer) == (1, None)


@pytest.mark.req("S3-46")
def test_every_shipped_hook_that_can_block_reads_the_flag() -> None:
    """Those in Python read it where they read their input."""
    blocking = [
        path
        for path in SCRIPTS.iterdir()
        if path.is_file() and re.search(r"\bblock\(|exit 2", path.read_text())
    ]
    unguarded = [
        path.name for path in blocking if not re.search(r"read_input\(\)|stop_hook_active", path.read_text())
    ]
    assert (len(blocking) > 6, unguarded) == (True, [])


# Chunks


@pytest.mark.req("S3-53", "S3-57")
def test_the_feedback_about_a_chunk_names_the_failing_test_and_the_other_chunk_passes(project: Path) -> None:
    bad = "def page(text):\n    return text\n"
    install(project, chunk_files(slug=GOOD.format(name="slug"), page=bad))
    prompts = [
        {"message": {"role": "user", "content": f"Implement {name}."}} for name in ("chunk-1", "chunk-2")
    ]
    first, second = [
        run(project, "validate_chunk.py", payload(project, "validate_chunk.py", [prompt]))
        for prompt in prompts
    ]
    assert first == APPROVED
    reason = second[1]["reason"]
    assert reason.startswith("chunk-2: its tests fail. Fix page.py.\n")
    assert "FAIL: test_page_of_two_words" in reason
    assert "AssertionError: 'A B' != 'a-b'" in reason


@pytest.mark.req("S3-53")
def test_a_chunk_that_cannot_be_compiled_fails_before_its_tests(project: Path) -> None:
    install(project, chunk_files(slug="def slug(:\n"))
    answer = run(project, "validate_chunk.py", payload(project, "validate_chunk.py", [PROMPT_1]))
    assert answer[1]["reason"].startswith("chunk-1: lint fails.\n")


@pytest.mark.req("S3-53", "X-07")
def test_chunks_that_stop_at_the_same_time_and_two_sessions_do_not_disturb_each_other(project: Path) -> None:
    install(project, chunk_files(slug=GOOD.format(name="slug"), page=GOOD.format(name="page")))
    inputs = [
        payload(project, "validate_chunk.py", session_id=session, last_assistant_message=f"{chunk} is done")
        for session in ("one", "../two", "")
        for chunk in ("chunk-1", "chunk-2")
        for _ in range(2)
    ]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda stdin: run(project, "validate_chunk.py", stdin), inputs))
    assert answers == [APPROVED] * len(inputs)
    state = project.parent / "hook-state" / "example-hooks"
    found = sorted((len(each.parts) - len(state.parts), each.name) for each in state.rglob("chunk-*"))
    assert found == [(3, "chunk-chunk-1")] * 3 + [(3, "chunk-chunk-2")] * 3


# The pipeline (pattern 3)


@pytest.mark.req("S3-41", "S3-67")
def test_a_stage_is_complete_for_the_session_that_completed_it(project: Path) -> None:
    install(project, {".claude/pipeline.json": PIPELINE, "PLAN.md": "x", "slug.py": "x"})

    def verify(session: str) -> Any:
        return run(project, name, payload(project, name, session_id=session))[1]

    name = "verify_pipeline_complete.py"
    for agent in ("planner", "coder"):
        stdin = payload(project, "pipeline_controller.py", agent_type=agent, session_id="mine")
        assert run(project, "pipeline_controller.py", stdin) == APPROVED
    other = "These stages of the pipeline are not complete: plan (subagent planner), code (subagent coder)."
    assert (verify("mine"), verify("other")) == (
        {"decision": "approve"},
        {"decision": "block", "reason": other},
    )


@pytest.mark.req("S3-41", "S3-43")
def test_pattern_3_holds_a_session_until_all_stages_are_done(
    project: Path, home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of document 003, with the scripts where it has them: in ~/.claude/hooks."""
    monkeypatch.setenv("HOOK_STATE", str(project.parent / "hook-state"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    hooks = home / ".claude" / "hooks"
    hooks.mkdir(parents=True)
    for path in SCRIPTS.glob("*.py"):
        (hooks / path.name).write_text(path.read_text())
    controller, verifier = (
        [{"matcher": "", "hooks": [{"type": "command", "command": f"python3 ~/.claude/hooks/{name}.py"}]}]
        for name in ("pipeline_controller", "verify_pipeline_complete")
    )
    write_settings(project, "claude", {"hooks": {"SubagentStop": controller, "Stop": verifier}})
    install(project, {".claude/pipeline.json": PIPELINE})
    for name in ("planner", "coder"):
        write_agent = project / ".claude" / "agents" / f"{name}.md"
        write_agent.parent.mkdir(exist_ok=True)
        write_agent.write_text(f"---\nname: {name}\ndescription: x\n---\nWork.")

    def task(kind: str) -> dict[str, Any]:
        return {
            "tool": "Task",
            "input": {"prompt": f"Be the {kind}.", "subagent_type": kind, "description": kind},
        }

    write = {"tool": "Write", "input": {"file_path": "PLAN.md", "content": "a plan"}}
    code = {"tool": "Write", "input": {"file_path": "slug.py", "content": "pass"}}
    model = project.parent / "pipeline-script.json"
    model.write_text(
        json.dumps(
            {
                "main": [task("planner"), "done?", task("coder"), "done"],
                "sub": {"planner": ["done", write, "written"], "coder": [code, "written"]},
            }
        )
    )
    result = as_json(capfd, project, "go", "--allow", "Write", "--model", f"scripted:{model}")
    assert (result["outcome"], result["result"], result["continuations"]) == ("completed", "done", 1)
    assert [(each["label"], each["redirects"]) for each in result["subagents"]] == [
        ("planner", 1),
        ("coder", 0),
    ]
    blocks = [each["reason"] for each in result["hook_runs"] if each["outcome"] == "block"]
    assert blocks == [
        "Stage plan is not complete: write PLAN.md.",
        "These stages of the pipeline are not complete: code (subagent coder).",
    ]


# The memory (pattern 4)


@pytest.mark.req("S3-65", "S3-67", "S3-42")
def test_the_memory_has_one_entry_for_each_session_however_often_its_hook_runs(project: Path) -> None:
    plan = "- [x] a\n- [ ] b\n"
    install(
        project, {"docs/plans/login/PLAN.md": plan, "docs/plans/login/MEMORY.md": "# Login\n\nBe brief.\n"}
    )
    sent = [("one", "First."), ("one", "Second."), ("two", "## Session one\nThird."), ("one", "Fourth.")]
    for session, answer in sent:
        stdin = payload(project, "update_memory.py", session_id=session, last_assistant_message=answer)
        assert run(project, "update_memory.py", stdin) == (0, None, "")
    assert (project / "docs/plans/login/MEMORY.md").read_text() == (
        "# Login\n\nBe brief.\n\n"
        "## Session one\n\n- tasks: 1 open: b\n- last answer: Fourth.\n\n"
        "## Session two\n\n- tasks: 1 open: b\n- last answer: ## Session one Third.\n"
    )


@pytest.mark.req("S3-65")
@pytest.mark.parametrize("session", ["one", "two"], ids=["resumed", "a new session"])
def test_after_a_kill_the_next_session_begins_with_the_memory(project: Path, session: str) -> None:
    """The process is killed when it has stopped, while a hook of SessionEnd runs."""
    install(project, {"docs/plans/login/PLAN.md": "- [x] a\n- [ ] b\n"})
    commands = {
        "SessionStart": f"{sys.executable} {SCRIPTS / 'load_memory.py'}",
        "Stop": f"{sys.executable} {SCRIPTS / 'update_memory.py'}",
        "SessionEnd": f"[ -e pid ] || {{ {hang()}; }}",
    }
    hooks = {
        event: [{"hooks": [{"type": "command", "command": command, "timeout": HANG_TIMEOUT_S}]}]
        for event, command in commands.items()
    }
    write_settings(project, "turngate", {"hooks": hooks})
    model = scripted(project, "The form is there.")
    words = ("run", "--project", str(project), "--session", "one", "--model", model, "-p", "Go on.")
    with start_turngate(*words) as process:
        wait_for_file_sync(project / "pid")
        process.kill()
        process.communicate()
    os.kill(int((project / "pid").read_text()), signal.SIGKILL)
    agent = configured_session(project, "b is next.", dialect="turngate", session_id=session)
    agent.play("What is next?")
    memory = "# Memory\n\n## Session one\n\n- tasks: 1 open: b\n- last answer: The form is there."
    assert memory in agent.model.requests[0].system


@pytest.mark.req("S3-65", "X-07")
def test_the_memory_survives_sessions_that_stop_at_the_same_time(project: Path) -> None:
    install(project, {"PLAN.md": "- [x] a\n"})
    inputs = [
        payload(project, "update_memory.py", session_id=f"s{number}", last_assistant_message="x")
        for number in range(8)
    ]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert (
            list(pool.map(lambda stdin: run(project, "update_memory.py", stdin), inputs))
            == [(0, None, "")] * 8
        )
    found = re.findall(r"^## Session (\S+)$", (project / "MEMORY.md").read_text(), re.MULTILINE)
    assert sorted(found) == [f"s{number}" for number in range(8)]
    assert sorted(path.name for path in project.iterdir()) == [".env", "MEMORY.md", "PLAN.md"]


def test_a_link_in_the_plan_s_place_is_not_followed_out_of_the_project(project: Path) -> None:
    script(project.parent / "outside.md", "- [ ] secret\n")
    (project / "PLAN.md").symlink_to(project.parent / "outside.md")
    stdin = payload(project, "validate_plan_completion.py")
    refusal = block("The plan cannot be used: 'PLAN.md' is not a path in the project.")
    for arguments in ((), ("PLAN.md",), ("./PLAN.md",)):
        code, answer, err = run(project, "validate_plan_completion.py", stdin, *arguments)
        assert (code, str(answer).replace("./", ""), err) == (0, str(refusal[1]), "")


def test_a_plan_may_be_named_with_its_absolute_path(project: Path) -> None:
    install(project, {"PLAN.md": "- [ ] a\n"})
    path = str(project / "PLAN.md")
    answer = run(
        project, "validate_plan_completion.py", payload(project, "validate_plan_completion.py"), path
    )
    assert answer == block(f"1 task of the plan is not complete:\n- {path}: a")


# Files with secrets


def test_the_scripts_have_the_library_s_own_safe_path_and_is_sensitive() -> None:
    """They run where Turngate is not installed, so they have a copy: cp src/turngate/project/safe_paths.py there."""
    library = ROOT / "src" / "turngate" / "project" / "safe_paths.py"
    assert (SCRIPTS / "safe_paths.py").read_text() == library.read_text()


SECRET_FILES = ".env .ENV sub/.env.production keys/server.key id_ed25519 credentials.json .git/config .ssh/config".split()
LINKS = {"sub/link.py": "../.env", "folder": "sub", "out.py": "../.env"}
HOLD_SECRETS = (*SECRET_FILES, "./.env", ".//.env", "sub/link.py", "folder/.env.production")
LEAD_OUT = ("sub/../.env", "../.env", "~/.env", "/etc/.env", "out.py", "-rf")


@pytest.mark.req("S3-49")
@pytest.mark.parametrize("name", [*HOLD_SECRETS, *LEAD_OUT])
def test_a_plan_that_lists_a_file_with_secrets_is_refused_by_name(project: Path, name: str) -> None:
    """By the hook that reads the table, also if the name is that of a link."""
    rows = f"| chunk-1 | slug.py, `{name}` | tests/test_slug.py |\n| chunk-2 | page.py | {name}, tests/test_page.py |\n"
    plan = f"- [x] chunk-1\n- [x] chunk-2\n\n| Chunk | Files | Tests |\n|---|---|---|\n{rows}"
    code = {**chunk_files(slug=GOOD.format(name="slug")), "PLAN.md": plan, "-rf": SECRETS}
    install(project, {**{each: SECRETS for each in SECRET_FILES}, **code}, LINKS)
    (project.parent / ".env").write_text(SECRETS)
    second = {"message": {"role": "user", "content": "Implement chunk-2."}}
    answers = [
        run(project, "validate_chunk.py", payload(project, "validate_chunk.py", transcript))
        for transcript in ([PROMPT_1], [second])
    ]
    why = refused(name) if name in HOLD_SECRETS else f"{name!r} is not a path in the project"
    assert answers == [
        block(f"chunk-1: {why}. Correct the plan."),
        block(f"chunk-2: {why}. Correct the plan."),
    ]
