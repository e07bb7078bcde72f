"""What is read of a shell command, and where the reading ends."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.core.shell.parse import (
    MAX_COMMANDS,
    CommandList,
    Expansion,
    Word,
    expand,
    read_commands,
    substituted_commands,
)

HOME = "/home/me"
VARIABLES = {"A": "one", "EMPTY": "", "RUN": None, "HOME": HOME}


def words(commands: CommandList) -> list[tuple[str, list[str]]]:
    """Return each operator and the words after it as they are written."""
    return [
        (c.operator, ["".join(part.text for part in word.parts) for word in c.words])
        for c in commands.commands
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("make test", [("", ["make", "test"])]),
        (
            "a && b || c | d; e & f",
            [(op, [name]) for op, name in zip(("", "&&", "||", "|", ";", "&"), "abcdef", strict=True)],
        ),
        ("'a b' \"c d\" e\\ f", [("", ["a b", "c d", "e f"])]),
        ("a'b'\"c\"d", [("", ["abcd"])]),
        ("a # not b\nb", [("", ["a"]), (";", ["b"])]),
        ("echo a#b", [("", ["echo", "a#b"])]),
        ("\n\n# first\na;\n\nb\n", [("", ["a"]), (";", ["b"])]),
        ("a \\\n  b", [("", ["a", "b"])]),
        ("a\\\nb c\\\n d", [("", ["ab", "c", "d"])]),
        ("a >&2 2>/dev/null <in 2>&1 b", [("", ["a", "b"])]),
        ("X=1 Y='2 3' a Z=4", [("", ["a", "Z=4"])]),
        ("X+=1 Y[1]=2 Y['b c']+=3 a", [("", ["a"])]),
        ("a <> b", [("", ["a"])]),
        ("a ! { b }", [("", ["a", "!", "{", "b", "}"])]),
        ('a "$(date +%s)" $(pwd)', [("", ["a", "$(date +%s)", "$(pwd)"])]),
        ('a "$(b "c d")" $(e \'f\') `g h` "`i`"', [("", ["a", '$(b "c d")', "$(e 'f')", "`g h`", "`i`"])]),
        ("a file2>x", [("", ["a", "file2"])]),
        ("a 2>x", [("", ["a"])]),
    ],
)
def test_simple_commands_are_read(text: str, expected: list[tuple[str, list[str]]]) -> None:
    commands = read_commands(text)
    assert (words(commands), commands.is_complete) == (expected, True)


@pytest.mark.parametrize(
    ("text", "read", "end"),
    [
        ("if true; then a; fi", 0, ""),
        ("a; for x in y; do b; done", 1, ";"),
        ("a || { b; exit 2; }", 1, "||"),
        ("(a && b) || c", 0, ""),
        ("a && (b)", 1, "&&"),
        ("! a", 0, ""),
        ("[[ -f x ]] && a", 0, ""),
        ("cat <<EOF\nx\nEOF", 0, ""),
        ("a <<< b", 0, ""),
        ("a; b `c", 1, ";"),
        ("a; b `c 'd'`", 1, ";"),
        ("a; x=$((1 + 2))", 1, ";"),
        ('a; b "$(c "$(d)")"', 1, ";"),
        ("a &> log", 0, ""),
        ("a; f() { b; }", 1, ";"),
        ("a; 'b", 1, ";"),
        ("a; case x in y) b;; esac", 1, ";"),
        ("a >", 0, ""),
        ("a; b $'c\\'d'", 1, ";"),
        ("i\\\nf true; then a; fi", 0, ""),
        ("a |& b", 0, ""),
        ("a; && b", 1, ";"),
    ],
)
def test_what_only_a_shell_can_read_ends_the_reading(text: str, read: int, end: str) -> None:
    commands = read_commands(text)
    assert (len(commands.commands), commands.end, commands.is_complete) == (read, end, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a && b) || c", ["a", "b", "c"]),
        ("a || { b c; ! d; }", ["a", "b c", "d"]),
        ("f() { a; }; f", ["f", "a", "f"]),
        ("X=1 a &> log |& >x b 2>&1 # c", ["a &> log", "b 2>&1"]),
        ("X=1; a", ["", "a"]),
    ],
)
def test_with_groups_the_commands_in_them_are_read(text: str, expected: list[str]) -> None:
    commands = read_commands(text, with_groups=True)
    written = [text[slice(*command.span)] for command in commands.commands]
    assert (written, commands.is_complete) == (expected, True)


@pytest.mark.parametrize("text", ["if a; then b; fi", "(for x in y; do a; done)", "{ a `b; }", "(a >)"])
def test_with_groups_a_keyword_still_ends_the_reading(text: str) -> None:
    assert not read_commands(text, with_groups=True).is_complete


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", []),
        ('X=$(a b) $(c) "d $(e "f") `g`" >`h i`', ["a b", "c", 'e "f"', "g", "h i"]),
        ("a '$(b)' \\$c \"\\$(b) $(c)\"", ["c"]),
        ("a ${b:-(c)}", []),
    ],
)
def test_the_commands_in_substitutions_are_found(text: str, expected: list[str]) -> None:
    (command,) = read_commands(text).commands
    assert list(substituted_commands(command)) == expected


def one(text: str) -> Word:
    return read_commands(text).commands[0].words[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", Expansion("a")),
        ("~", Expansion(HOME)),
        ("~/x", Expansion(f"{HOME}/x")),
        ("'~/x'", Expansion("~/x")),
        ("a~/x", Expansion("a~/x")),
        ("~other/x", None),
        ("$A/x", Expansion("one/x")),
        ("${A}x", Expansion("onex")),
        ('"$A b"', Expansion("one b")),
        ("'$A'", Expansion("$A")),
        ("\\$A", Expansion("$A")),
        ('"\\"$A\\""', Expansion('"one"')),
        ('"\\$A"', None),
        ("${B:-two}", Expansion("two")),
        ("${A:-two}", Expansion("one")),
        ("${EMPTY:-two}", Expansion("two")),
        ("${B-}", Expansion("")),
        ("${B:-d e}f", None),
        ("$B/x", Expansion("/x", ("B",))),
        ("$RUN/x", None),
        ("${B:-$A}", None),
        ("${A%/*}", None),
        ("$1", None),
        ("$(pwd)", None),
        ("*.sh", None),
        ("'*.sh'", Expansion("*.sh")),
        ("{a,b}", None),
        ("${user_config.url}", None),
    ],
)
def test_a_word_is_expanded_as_the_shell_does(text: str, expected: Expansion | None) -> None:
    assert expand(one(text), VARIABLES, HOME) == expected


SIMPLE = st.text(alphabet="ab12 '\"\\$~A{}/=-;&|<>\n#()*", max_size=20)


@given(text=SIMPLE)
def test_no_text_is_too_strange(text: str) -> None:
    for command in read_commands(text).commands:
        for word in command.words:
            expand(word, VARIABLES, HOME)


@pytest.mark.parametrize(
    "text",
    [
        "'a b' c",
        '"$A"x ~/y',
        "a\\ b",
        "${B:-d}f",
        '"a\\"b" \'c"d\'',
        "$A$A ${A}",
        "x~ '~' \"~\"",
        "a#b",
        '"\\a"',
        '"a\\\nb" c\\\nd',
    ],
)
def test_a_real_shell_agrees(tmp_path: Path, text: str) -> None:
    env = {"A": "one", "HOME": HOME, "PATH": "/usr/bin:/bin"}
    script = f"printf '%s\\n' {text}"
    done = subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, text=True, check=True)
    (command,) = read_commands(script).commands
    expansions = [expand(word, env, HOME) for word in command.words[2:]]
    assert [expansion.text for expansion in expansions if expansion] == done.stdout.splitlines()


@pytest.mark.parametrize("part", ["a;", "a && ", "a | ", "a\n"])
def test_only_so_many_commands_are_read(part: str) -> None:
    found = read_commands(part * (MAX_COMMANDS + 1) + "a")
    assert (len(found.commands), found.is_complete) == (MAX_COMMANDS, False)
    assert read_commands(part * (MAX_COMMANDS - 1) + "a").is_complete
