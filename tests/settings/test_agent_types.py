"""Agent types: built in, or described in a file with a front matter."""

import os
from pathlib import Path

import pytest

from tests.support.builders import rule, write_settings
from tests.support.sessions import saved_inputs
from tests.support.subagents import parent, task
from turngate.models.scripted import ScriptedModel
from turngate.project.files import LOCAL
from turngate.settings.agent_types import (
    BUILT_IN,
    MAX_FILE_CHARS,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    AgentType,
    describe_types,
    load_agent_types,
)

BUILT_IN_TYPES = {agent_type.name: agent_type for agent_type in BUILT_IN}


def wrote(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def found(project: Path) -> tuple[dict[str, AgentType], list[str]]:
    """The agent types that files describe, and the problems."""
    agent_types, problems = load_agent_types(str(project), files=LOCAL)
    return {
        name: agent_type for name, agent_type in agent_types.items() if agent_type not in BUILT_IN
    }, problems


def test_two_agent_types_are_built_in_and_one_of_them_is_read_only(project: Path) -> None:
    agent_types, problems = load_agent_types(str(project), files=LOCAL)
    assert (agent_types, problems) == (BUILT_IN_TYPES, [])
    assert [(agent_type.name, agent_type.tools) for agent_type in agent_types.values()] == [
        ("general-purpose", None),
        ("Explore", ("Read", "Glob", "Grep")),
    ]


@pytest.mark.parametrize(
    ("head", "description", "tools", "model"),
    [
        ("name: k", "", None, None),
        ("name: 'k'\ndescription: \"a: b\"", "a: b", None, None),
        ("name: k\ntools: Read, Bash", "", ("Read", "Bash"), None),
        ("name: k\ntools: [Read, 'Bash']", "", ("Read", "Bash"), None),
        ("name: k\ntools:\n  - Read\n  - Bash", "", ("Read", "Bash"), None),
        ("name: k\ntools:\n- Read\n- 'Bash'", "", ("Read", "Bash"), None),
        ("name: k\ntools: '*'", "", None, None),
        ("name: k\ntools:", "", None, None),
        ("name: k\ntools: []", "", (), None),
        ("name: k\nmodel: openai:gpt", "", None, "openai:gpt"),
        ("name: k\nmodel: inherit", "", None, None),
        ("name: k\ndescription: one\n  two\ndescription: three\n  four", "three four", None, None),
        ("# a word\nname: k\ndescription: >\n  one\n  two\n\ncolor: red", "one two", None, None),
    ],
)
def test_the_forms_of_a_front_matter(
    project: Path, head: str, description: str, tools: tuple[str, ...] | None, model: str | None
) -> None:
    file = wrote(project / ".turngate/agents/file.md", f"---\n{head}\n---\n\nDo this.\n---\nAnd that.\n")
    agent_type = AgentType("k", description, "Do this.\n---\nAnd that.", tools, model, file)
    assert found(project) == ({"k": agent_type}, [])


def test_an_unknown_tool_or_model_is_reported(project: Path) -> None:
    one = wrote(project / ".turngate/agents/one.md", "---\nname: one\ntools: Raed, Read, Agent\n---\nWork.")
    two = wrote(project / ".turngate/agents/two.md", "---\nname: two\nmodel: sonnet\n---\nWork.")
    assert found(project)[1] == [
        f"{one} names unknown tools: Raed; this agent type works without them",
        f"{two} names the model 'sonnet', expected PROVIDER:NAME; the parent's model is used",
    ]


def test_only_the_first_unknown_tools_are_named(project: Path) -> None:
    tools = "".join(f"- {name}\n" for name in ("a", "a", "b", "c", "d" * 200, "e", "f", "g"))
    file = wrote(project / ".turngate/agents/file.md", f"---\nname: k\ntools:\n{tools}---\nWork.")
    shown = f"a, b, c, {'d' * 99}…, e and 2 more"
    assert found(project)[1] == [f"{file} names unknown tools: {shown}; this agent type works without them"]


def test_only_so_many_files_are_read(project: Path) -> None:
    for number in range(MAX_FILES + 3):
        file = wrote(project / f".turngate/agents/a{number:03}.md", f"---\nname: k{number}\n---\nWork.")
    agent_types, problems = found(project)
    first = file.replace("a502", "a500")
    said = f"{first} is not read, nor are 2 more: at most 500 files with 4 MiB are"
    assert (len(agent_types), problems) == (MAX_FILES, [said])


def test_only_so_many_bytes_are_read(project: Path) -> None:
    for number in range(50):
        wrote(project / f".turngate/agents/a{number}.md", f"---\nname: k{number}\n---\n" + "x" * 99_900)
    agent_types, problems = found(project)
    assert (len(agent_types), len(problems)) == (MAX_TOTAL_BYTES // 99_900, 1)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(project: Path) -> None:
    path = project / ".turngate/agents/file.md"
    path.parent.mkdir(parents=True)
    path.write_bytes("\ufeff---\r\nname: k\r\ntools: Read\r\n---\r\nWork.\r\n".encode())
    assert found(project) == ({"k": AgentType("k", "", "Work.", ("Read",), None, str(path))}, [])


def test_without_a_name_it_has_its_files(project: Path) -> None:
    file = wrote(project / ".claude/agents/checker.md", "---\ndescription: checks\n---\nCheck.")
    assert found(project) == ({"checker": AgentType("checker", "checks", "Check.", file=file)}, [])


def test_what_is_nearer_to_the_project_wins(project: Path, home: Path) -> None:
    places = [
        project / "extra/agents/one/AGENT.md",
        home / ".claude/agents/one.md",
        home / ".turngate/agents/one.md",
        project / ".claude/agents/one.md",
        project / ".turngate/agents/one.md",
    ]
    instructions = []
    for number, place in enumerate(places):
        wrote(place, f"---\nname: one\n---\nplace {number}")
        agent_types, problems = load_agent_types(str(project), ["extra"], files=LOCAL)
        instructions.append((agent_types["one"].instructions, problems))
    assert instructions == [(f"place {number}", []) for number in range(5)]


@pytest.mark.req("S3-61")
@pytest.mark.parametrize("folder", ["extra", ".claude", ".turngate"])
def test_an_agent_type_is_a_file_or_a_folder_with_agent_md(project: Path, folder: str) -> None:
    wrote(project / folder / "agents/one.md", "---\ndescription: x\n---\nOne.")
    wrote(project / folder / "agents/two/AGENT.md", "---\ndescription: x\n---\nTwo.")
    wrote(project / folder / "agents/two/notes.md", "---\ndescription: x\n---\nNotes.")
    agent_types, problems = load_agent_types(str(project), ["extra"], files=LOCAL)
    found = {name: each.instructions for name, each in agent_types.items() if each.file}
    assert (found, problems) == ({"one": "One.", "two": "Two."}, [])


def test_an_agent_type_of_a_plugin_has_the_name_of_its_folder(project: Path) -> None:
    file = wrote(project / "extra/agents/helper/AGENT.md", "---\ndescription: helps\n---\nHelp.")
    agent_types, problems = load_agent_types(str(project), ["extra"], files=LOCAL)
    assert (agent_types["helper"], problems) == (AgentType("helper", "helps", "Help.", file=file), [])


def test_a_built_in_agent_type_may_be_replaced(project: Path) -> None:
    file = wrote(project / ".turngate/agents/Explore.md", "---\nname: Explore\ntools: Read\n---\nLook.")
    assert found(project) == ({"Explore": AgentType("Explore", "", "Look.", ("Read",), None, file)}, [])


def test_broken_files_are_reported_and_the_others_are_read(project: Path) -> None:
    agents = project / ".turngate/agents"
    plain = wrote(agents / "a.md", "no head")
    unended = wrote(agents / "b.md", "---\nname: x\nno end")
    long = wrote(agents / "c.md", "x" * (MAX_FILE_CHARS + 1))
    os.mkfifo(agents / "d.md")
    (agents / "e.md").mkdir()
    (agents / "f.md").symlink_to(agents / "nowhere")
    binary = agents / "g.md"
    binary.write_bytes(b"---\nname: g\n---\n\xff\xfe")
    agent_types, problems = found(project)
    assert agent_types == {
        "a": AgentType("a", "", "no head", file=plain),
        "b": AgentType("b", "", "---\nname: x\nno end", file=unended),
        "g": AgentType("g", "", "\ufffd\ufffd", file=str(binary)),
    }
    assert problems == [
        f"{plain} has no front matter; the agent type is named after the file",
        f"{unended} has no front matter; the agent type is named after the file",
        f"{long} is longer than {MAX_FILE_CHARS} characters; this agent type is not loaded",
        *(f"{agents / name}.md is not a regular file; this agent type is not loaded" for name in "def"),
    ]


def test_the_problems_are_reported_when_the_session_opens(project: Path) -> None:
    file = wrote(project / ".turngate/agents/a.md", "no head")
    scene = parent(project)
    scene.play()
    assert scene.notices == [f"{file} has no front matter; the agent type is named after the file"]


# What a child gets of it


def test_a_subagent_has_the_instructions_and_the_tools_of_its_type(project: Path) -> None:
    wrote(project / ".turngate/agents/k.md", "---\nname: k\ntools: Read, Agent, Nothing\n---\nBe brief.")
    scene = parent(project, main=[task(subagent_type="k"), "home"])
    scene.play()
    _, child, _ = scene.model.requests
    assert [tool.name for tool in child.tools] == ["Read", "Task"]
    assert child.system.count("Be brief.") == 1
    assert (scene.stops[0].agent_type, scene.ended[0].agent_type) == ("k", "k")


@pytest.mark.parametrize(
    ("head", "missing", "problem"),
    [
        ("disallowedTools: Bash, Write", {"Bash", "BashOutput", "KillShell", "Write"}, ""),
        ("disallowedTools: [Agent]", {"Task"}, ""),
        ("disallowedTools:\n  - write\n  - 'Ed*'", {"Write", "Edit"}, ""),
        ("disallowedTools: Write(/etc/*)", {"Write"}, ""),
        ("disallowedTools: Wirte, Edit", {"Edit"}, "Wirte"),
        ("disallowedTools: mcp__github", set(), "mcp__github"),
        ("disallowedTools:", set(), ""),
    ],
)
def test_a_subagent_has_not_the_tools_that_its_type_disallows(
    project: Path, head: str, missing: set[str], problem: str
) -> None:
    file = wrote(project / ".claude/agents/k.md", f"---\nname: k\n{head}\n---\nWork.")
    scene = parent(project, main=[task(subagent_type="k"), "home"])
    scene.play()
    main, child, _ = ({tool.name for tool in request.tools} for request in scene.model.requests)
    assert main - child == {"AskUser", *missing}
    expected = f"{file} disallows unknown tools: {problem}; this has no effect"
    assert scene.notices == ([expected] if problem else [])


def test_a_tool_that_is_listed_and_disallowed_is_not_there_and_neither_is_any_with_an_asterisk(
    project: Path,
) -> None:
    wrote(
        project / ".claude/agents/k.md",
        "---\nname: k\ntools: Read, Bash, Glob\ndisallowedTools: Bash\n---\nWork.",
    )
    wrote(project / ".claude/agents/none.md", "---\nname: none\ndisallowedTools: '*'\n---\nWork.")
    scene = parent(project, main=[task(subagent_type="k"), task(subagent_type="none"), "home"])
    scene.play()
    _, few, _, none, _ = ([tool.name for tool in request.tools] for request in scene.model.requests)
    assert (few, none) == (["Read", "Glob"], [])


def test_explore_cannot_change_anything_and_no_subagent_asks_the_user(project: Path) -> None:
    scene = parent(project, main=[task(subagent_type="Explore"), task(), "home"])
    scene.play()
    tools = [[tool.name for tool in request.tools] for request in scene.model.requests]
    main, explore, main_again, general, _ = tools
    assert explore == ["Read", "Glob", "Grep"]
    assert general == [name for name in main if name != "AskUser"]
    assert main == main_again


def test_a_tool_that_the_agent_type_does_not_have_is_rejected(project: Path) -> None:
    write = {"tool": "Write", "input": {"file_path": "x", "content": "x"}}
    scene = parent(project, write, "done", main=[task(subagent_type="Explore"), "home"], allow=["Write"])
    scene.play()
    assert scene.heard("sub")[-1] == "tool: unknown tool 'Write', expected one of Read, Glob, Grep"
    assert not (project / "x").exists()


def test_an_agent_type_may_have_its_own_model(project: Path) -> None:
    wrote(project / ".turngate/agents/k.md", "---\nname: k\nmodel: x:other\n---\nWork.")
    other = ScriptedModel({"sub": ["from the other"]}, "x:other")
    asked: list[str] = []

    def models(name: str) -> ScriptedModel:
        asked.append(name)
        return other

    scene = parent(project, "never", main=[task(subagent_type="k"), "home"], models=models)
    scene.play()
    assert (asked, scene.heard("main")[-1]) == (["x:other"], "tool: from the other")
    assert [stop.model for stop in scene.stops] == ["x/other"]


def test_without_a_way_to_other_models_a_subagent_has_its_parents(project: Path) -> None:
    wrote(project / ".turngate/agents/k.md", "---\nname: k\nmodel: x:other\n---\nWork.")
    scene = parent(project, main=[task(subagent_type="k"), "home"])
    scene.play()
    assert [stop.model for stop in scene.stops] == ["scripted/script"]


def test_the_model_gets_the_list_of_agent_types(project: Path) -> None:
    wrote(project / ".turngate/agents/k.md", "---\nname: k\ndescription: counts\n---\nWork.")
    scene = parent(project)
    scene.play()
    [about] = [tool.description for tool in scene.model.requests[0].tools if tool.name == "Task"]
    assert about.endswith(
        "The agent types are:\n" + describe_types(load_agent_types(str(project), files=LOCAL)[0])
    )
    assert about.endswith("\n- k: counts")


@pytest.mark.req("X-15")
def test_a_hook_may_match_one_agent_type_from_a_file(project: Path) -> None:
    wrote(project / ".claude/agents/k.md", "---\nname: k\n---\nWork.")
    main = [task(subagent_type="k"), task(), "home"]
    scene = parent(project, main=main, rules=[rule("cat >> seen", "SubagentStop", matcher="k")])
    scene.play()
    assert saved_inputs(project, "agent_type") == ["k"]


def test_plugin_folders_stand_in_the_settings(project: Path) -> None:
    wrote(project / "extra/agents/helper/AGENT.md", "---\ndescription: helps\n---\nHelp.")
    write_settings(project, "turngate", {"turngate": {"pluginDirs": ["extra"]}})
    scene = parent(project, main=[task(subagent_type="helper"), "home"], files=True)
    scene.play()
    assert [run.agent_type for run in scene.registered] == ["helper"]
