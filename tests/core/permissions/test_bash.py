"""Which commands are found in a shell command, for a permission rule."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.core.permissions.bash import command_forms, command_matches
from turngate.core.shell.parse import UNKNOWN

Composed = tuple[str, frozenset[str]]  # a shell command, and the simple commands in it

SIMPLE = ("git push", "git commit -m 'a; b'", "npm test", 'echo "a && b"', "ls -l x/y", "make all 2>&1")


def join(left: Composed, operator: str, right: Composed) -> Composed:
    return left[0] + operator + right[0], left[1] | right[1]


def inside(start: str, composed: Composed, end: str) -> Composed:
    return start + composed[0] + end, composed[1]


def compose(inner: st.SearchStrategy[Composed]) -> st.SearchStrategy[Composed]:
    operators = st.sampled_from(("; ", " && ", " || ", " | ", "|", "\n", " & ", " # a comment\n"))
    groups = st.sampled_from(
        (("( ", ")"), ("( ", "\n)"), ("{ ", "; }"), ("! ", ""), ("X=1; ", ""), ("f() { ", "\n}"))
    )
    return st.builds(join, inner, operators, inner) | st.builds(
        lambda group, composed: inside(group[0], composed, group[1]), groups, inner
    )


def condition(check: Composed, body: Composed) -> Composed:
    return inside("if ", join(check, "; then ", body), "; fi")


simple = st.sampled_from(SIMPLE).map(lambda text: (text, frozenset([text])))
lists = st.recursive(simple, compose, max_leaves=8)
conditions = st.builds(condition, lists, lists)


@given(composed=lists)
def test_every_simple_command_of_a_list_is_found(composed: Composed) -> None:
    text, commands = composed
    forms = command_forms(text)
    assert forms is not None
    assert {each for each in SIMPLE if each in forms} == commands


@given(composed=conditions | compose(conditions))
def test_a_list_with_a_condition_matches_every_command(composed: Composed) -> None:
    assert command_forms(composed[0]) is None
    assert all(command_matches(each, composed[0]) for each in SIMPLE)


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("B[1]=2 C[23]+=3 git push", ["git push"] * 3),
        ("B['x y']=2 git push", ["git push"] * 3),
        ("g\\\nit pu\\\nsh", ["git push"] * 3),
        (
            "/bin/q? \"a $X\"'*' ",
            ["/bin/q? \"a $X\"'*'", f"/bin/q{UNKNOWN} a {UNKNOWN}X*", f"q{UNKNOWN} a {UNKNOWN}X*"],
        ),
        ("> x", []),
        ("i\\\nf true; t\\\nhen git push; f\\\ni", None),
        ("echo $'a\\'b; git push #'", None),
        ("X=$(git push) ls", None),
        ("ls > $(git push)", None),
        ("ls ${X:-$(git push)}", None),
        ('ls "${X:-$(git push)}"', None),
        ("time if true; then git push; fi", None),
    ],
)
def test_what_is_read_of_a_command(text: str, forms: list[str] | None) -> None:
    assert command_forms(text) == forms


def test_without_a_condition_no_command_is_read() -> None:
    code = (
        "import sys, turngate.engine, turngate.settings.load\n"
        "print('turngate.core.permissions.bash' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
