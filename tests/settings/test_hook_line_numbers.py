from pathlib import Path

import pytest

from tests.support.builders import rule, write_settings
from turngate.settings.hook_line_numbers import MAX_DEPTH, HookLines, object_lines
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
    finder = HookLines()
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
        ("", {}),
        ("[]", {}),
        ("{}", {(): 1}),
        ('\n\n{"a":\n [1, {}, [\n{}]]}', {(): 3, ("a", 1): 4, ("a", 2, 0): 5}),
        ('{"\\u0061": {}}', {(): 1, ("a",): 1}),
        ('{"a": {},\n"a": {}}', {(): 1, ("a",): 2}),
        ("}]{", {(): 1}),
        ('{"a": "\n{}', {(): 1, ("a",): 2}),
    ],
)
def test_the_scan_follows_the_json_and_survives_what_is_not(text: str, expected: object) -> None:
    assert object_lines(text) == expected


def test_deep_objects_are_not_kept() -> None:
    assert max(map(len, object_lines('{"a":' * 1000))) == MAX_DEPTH


def test_a_plugin_may_have_its_hooks_at_another_depth(project: Path) -> None:
    manifest = project / "plugin.json"
    manifest.write_text('{"name": "x",\n"hooks": [{\n"Stop": [{"hooks": [\n{"type": "command"}]}]}]}')
    assert HookLines().line_of(rule(index="[0].hooks[0]"), str(manifest)) == 4


def test_a_hook_in_a_front_matter_has_the_line_of_its_command(project: Path) -> None:
    file = project / "reviewer.md"
    file.write_text("---\nname: reviewer\nhooks:\n  Stop:\n    - hooks:\n      - command: check\n---\ncheck")
    assert HookLines().line_of(rule("check", index="[0].hooks[0]"), str(file)) == 6


def test_a_script_has_no_line_and_a_missing_file_neither(project: Path) -> None:
    finder = HookLines()
    missing = str(project / "gone.json")
    assert [finder.line_of(rule(), missing), finder.line_of(rule(index="[0].hooks[0]"), missing)] == [
        None,
        None,
    ]
