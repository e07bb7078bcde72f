"""`turngate install` for an editor: the entry of an agent behind `turngate acp`, and the file as it was before."""

import json
from pathlib import Path

import pytest

from tests.cli.commands.test_install import turngate  # without the warning about a temporary folder

ENTRY = {"args": ["acp", "--", "opencode", "acp"], "env": {}}
NAME = "opencode acp, checked by Turngate"
FILES = {"zed": ".config/zed/settings.json", "jetbrains": ".jetbrains/acp.json"}
BEFORE = (
    None,
    "",
    "// Zed settings\n",
    '{"theme":"One"}',
    '// mine\r\n{\r\n\t"theme": "One Dark", // dark\r\n\t"font": 16,\r\n}\r\n',
    '{\n  "agent_servers": {\n    // another one\n    "Mine": {"command": "mine", "args": ["acp"]}\n  }\n}\n',
)


def install(editor: str, *words: str) -> tuple[int, str, str]:
    return turngate("install", editor, "--yes", *words)


@pytest.mark.parametrize("editor", FILES)
@pytest.mark.parametrize("before", BEFORE)
def test_two_agents_are_added_and_removed_byte_for_byte(before: str | None, editor: str, home: Path) -> None:
    file = home / FILES[editor]
    if before is not None:
        file.parent.mkdir(parents=True)
        file.write_bytes(before.encode())
    code, out, err = install(editor, "--agent", "opencode acp")
    assert (code, err) == (0, "")
    assert f": {NAME}, in ~/{FILES[editor]}" in out
    assert install(editor, "--agent", "gemini --acp")[0] == 0
    text = file.read_text()
    assert (NAME in text, "gemini --acp, checked by Turngate" in text) == (True, True)
    again = install(editor, "--agent", "gemini --acp")[1]
    assert again.splitlines()[0] == f"already installed in ~/{FILES[editor]}"
    assert turngate("uninstall", editor, "--yes")[0] == 0
    assert (file.read_bytes().decode() if file.exists() else None) == before
    assert file.parent.exists() == (before is not None)
    assert turngate("uninstall", editor, "--yes")[1] == f"not installed in ~/{FILES[editor]}\n"


def test_what_was_added_since_stays(home: Path) -> None:
    install("zed", "--agent", "opencode acp")
    file = home / FILES["zed"]
    settings = json.loads(file.read_text())
    entry = settings["agent_servers"][NAME]
    assert {**ENTRY, "type": "custom", "command": entry["command"]} == entry
    assert Path(entry["command"]).is_absolute()
    settings["agent_servers"]["mine"] = {"command": "mine"}
    file.write_text(json.dumps(settings))
    turngate("uninstall", "zed", "--yes")
    assert json.loads(file.read_text()) == {"agent_servers": {"mine": {"command": "mine"}}}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["zed"], "which agent? For example: `turngate install zed --agent 'opencode acp'`"),
        (
            ["zed", "--agent", "a", "--project"],
            "Zed has no settings of a project; leave out --project",
        ),
        (
            ["zed", "--agent", "it's"],
            "which agent? For example: `turngate install zed --agent 'opencode acp'`",
        ),
        (["claude", "--agent", "a"], "--agent is for an editor: zed, jetbrains"),
    ],
)
def test_a_wrong_use_is_named(words: list[str], error: str) -> None:
    assert install(*words) == (64, "", f"turngate: {error}\n")


@pytest.mark.parametrize("text", ["{", "[]", '{"agent_servers": []}'])
def test_settings_that_cannot_hold_it_stay_as_they_are(text: str, home: Path) -> None:
    file = home / FILES["zed"]
    file.parent.mkdir(parents=True)
    file.write_text(text)
    code, _, err = install("zed", "--agent", "opencode acp")
    assert (code, file.read_text()) == (64, text)
    assert err.endswith("; nothing was changed\n")
