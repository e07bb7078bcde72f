from pathlib import Path

import pytest

from tests.support.builders import script
from turngate.check.commands import MAX_SCRIPT_BYTES, env_program, read_script
from turngate.project.files import LOCAL


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
    found = read_script(str(script(tmp_path / name, text)), LOCAL)
    assert found is not None
    assert found.language == language


def test_only_small_text_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    (tmp_path / "large").write_bytes(b"#" * (MAX_SCRIPT_BYTES + 1))
    names = ("binary", "large", "missing", ".")
    assert [read_script(str(tmp_path / name), LOCAL) for name in names] == [None] * 4


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
