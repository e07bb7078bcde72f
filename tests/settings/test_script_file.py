from pathlib import Path

import pytest

from tests.support.builders import script
from turngate.settings.script_file import MAX_SCRIPT_BYTES, env_program, exit_codes, quote_path, read_script


def read(folder: Path, name: str, text: str, language: str | None = None) -> frozenset[int] | None:
    found = read_script(str(script(folder / name, text)))
    assert found is not None
    return exit_codes(found, language or found.language)


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
def test_the_exit_codes_of_a_shell_script(tmp_path: Path, text: str, codes: set[int] | None) -> None:
    assert read(tmp_path, "x.sh", text) == codes


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
        ("f" + "()" * 50_000, None),
        ("exit(" + "f" + "()" * 900 + ")", None),
        ("exit(0x" + "f" * 5000 + ")", None),
    ],
)
def test_the_exit_codes_of_a_python_script(tmp_path: Path, text: str, codes: set[int] | None) -> None:
    assert read(tmp_path, "x.py", text) == codes


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
def test_the_exit_codes_of_a_node_script(tmp_path: Path, text: str, codes: set[int] | None) -> None:
    assert read(tmp_path, "x.mjs", text) == codes


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("x", "#!/bin/sh\n", "shell"),
        ("x.py", "#!/bin/bash\n", "shell"),
        ("x", "#!/usr/bin/env python3.12\n", "python"),
        ("x", "#!/usr/bin/env -S uv run --script\n", "python"),
        ("x", "#! /usr/bin/env node\n", "node"),
        ("x.sh", "", "shell"),
        ("x.ts", "", "node"),
        ("x", "", None),
        ("x.sh", "#!/usr/bin/awk -f\n", None),
    ],
)
def test_the_language_is_that_of_the_first_line_or_of_the_name(
    tmp_path: Path, name: str, text: str, language: str | None
) -> None:
    found = read_script(str(script(tmp_path / name, text)))
    assert found is not None
    assert found.language == language


def test_only_small_text_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    (tmp_path / "large").write_bytes(b"#" * (MAX_SCRIPT_BYTES + 1))
    names = ("binary", "large", "missing", ".")
    assert [read_script(str(tmp_path / name)) for name in names] == [None] * 4


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        ("python3", "python3"),
        ("python3 -u", "python3 -u"),
        ("-S python3 -u", "python3"),
        ("-S A=b uv run", "uv"),
        ("-vS python3", "python3"),
        ("-S 'open", None),
        ("", None),
    ],
)
def test_the_program_that_env_starts(arguments: str, program: str | None) -> None:
    assert env_program(arguments) == program


@pytest.mark.parametrize(
    ("path", "quoted"), [("a/b.sh", "a/b.sh"), ("a b.sh", "'a b.sh'"), ("~/a b.sh", "~/'a b.sh'")]
)
def test_a_path_in_a_hint_can_be_copied(path: str, quoted: str) -> None:
    assert quote_path(path) == quoted
