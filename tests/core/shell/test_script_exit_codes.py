import pytest

from turngate.core.shell.script_exit_codes import exit_codes


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("exit 1", {1}),
        ("grep x y || exit 1\nexit 0", {0, 1}),
        ("if a; then exit 2; fi", {2}),
        ("a && { b; exit 1; }", {1}),
        ("(exit 3)", {3}),
        ("# exit 2\nexit 1", {1}),
        ("a", set()),
        ('exit "$code"', None),
        ("exit $?", None),
        ("exit " + "9" * 5000, None),
        ("f() { return 2; }; f", None),
        ("exec python3 x.py", None),
        (". ./lib.sh\nexit 1", None),
        ("""echo '{"decision": "block"}'; exit 1""", None),
        ("""echo '{"continue": false}'; exit 1""", None),
        ("python3 - <<'E'\nimport sys\nsys.exit(2)\nE\nexit 1", None),
        ("trap 'exit 2' EXIT\nexit 1", None),
    ],
)
def test_the_exit_codes_of_a_shell_script(text: str, codes: set[int] | None) -> None:
    assert exit_codes(text, "shell") == codes


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("import sys\nsys.exit(1)", {1}),
        ("import sys\nsys.exit('text')", {1}),
        ("import sys\nsys.exit()", {0}),
        ("raise SystemExit(2)", {2}),
        ("def main():\n    return 1 if x else 0\nexit(main())", None),
        ("def main():\n    if x:\n        return 1\n    return 0\nexit(main())", {0, 1}),
        ("def main() -> None:\n    return\nexit(main())", {0}),
        ("import sys\nsys.exit(code)", None),
        ("import sys\nsys.exit(run(2))", None),
        ("print({'decision': 'block'})\nexit(1)", None),
        ("def (", None),
        # What the parser gives up on is not judged.
        ("-" * 120_000, None),
        ("not " * 30_000, None),
        ("lambda:" * 17_000, None),
        ("exit(" + "f" + "()" * 900 + ")", None),
        ("exit(0x" + "f" * 5000 + ")", None),
    ],
)
def test_the_exit_codes_of_a_python_script(text: str, codes: set[int] | None) -> None:
    assert exit_codes(text, "python") == codes


def test_a_python_script_that_is_nested_too_deeply_is_not_known() -> None:
    """Since Python 3.14 the parser reads it, and there is no exit in it."""
    assert exit_codes("f" + "()" * 50_000, "python") in (None, frozenset())


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("process.exit(1)", {1}),
        ("process.exit()", {0}),
        ("process.exitCode = 1;", {1}),
        ("process.exit(failed ? 2 : 0)", None),
        ("process.exit(code)", None),
        ("process.exit(" + "9" * 5000 + ")", None),
    ],
)
def test_the_exit_codes_of_a_node_script(text: str, codes: set[int] | None) -> None:
    assert exit_codes(text, "node") == codes
