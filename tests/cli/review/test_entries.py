from pathlib import Path

import pytest

from tests.support.builders import rule, write_settings
from turngate.cli.review.entries import HookLines
from turngate.project.files import LOCAL
from turngate.trust.load import load_settings

PRETTY = """\
{
  "env": {"A": "}{"},
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {"type": "command", "command": "echo '{ [ , : \\" }'"},

          {
            "type": "command",
            "command": "second"
          }
        ]
      },
      {"matcher": "x", "hooks": [{"type": "command", "command": "third"}]}
    ],
    "SubagentStop": [{"hooks": [{"type": "command", "command": "fourth"}]}]
  }
}
"""


def lines(folder: Path, name: str) -> list[tuple[str, int | None]]:
    finder = HookLines(LOCAL)
    rules = load_settings(str(folder)).rules
    return [(rule.event + (rule.index or ""), finder.line_of(rule, str(folder / name))) for rule in rules]


def test_each_hook_has_the_line_on_which_its_object_begins(project: Path) -> None:
    write_settings(project, "turngate", PRETTY)
    assert lines(project, ".turngate/settings.json") == [
        ("Stop[0].hooks[0]", 7),
        ("Stop[0].hooks[1]", 9),
        ("Stop[1].hooks[0]", 15),
        ("SubagentStop[0].hooks[0]", 17),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ('{"Stop": [{"hooks": [{}]}]}', 1),
        ('\n{"\\u0053top": [{"hooks":\n[{}]}]}', 3),
        ('{"Stop": [{"hooks": [', None),
        ('{"a":' * 100_000, None),
    ],
)
def test_what_is_not_json_has_no_lines(project: Path, text: str, expected: int | None) -> None:
    file = project / "settings.json"
    file.write_text(text)
    assert HookLines(LOCAL).line_of(rule(index="[0].hooks[0]"), str(file)) == expected


def test_a_plugin_may_have_its_hooks_at_another_depth(project: Path) -> None:
    manifest = project / "plugin.json"
    manifest.write_text('{"name": "x",\n"hooks": [{\n"Stop": [{"hooks": [\n{"type": "command"}]}]}]}')
    assert HookLines(LOCAL).line_of(rule(index="[0].hooks[0]"), str(manifest)) == 4


def test_a_hook_in_a_front_matter_has_the_line_of_its_command(project: Path) -> None:
    file = project / "reviewer.md"
    file.write_text("---\nname: reviewer\nhooks:\n  Stop:\n    - hooks:\n      - command: check\n---\ncheck")
    assert HookLines(LOCAL).line_of(rule("check", index="[0].hooks[0]"), str(file)) == 6


def test_a_script_has_no_line_and_a_missing_file_neither(project: Path) -> None:
    finder = HookLines(LOCAL)
    missing = str(project / "gone.json")
    assert [finder.line_of(rule(), missing), finder.line_of(rule(index="[0].hooks[0]"), missing)] == [
        None,
        None,
    ]
