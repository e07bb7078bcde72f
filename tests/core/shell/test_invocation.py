import pytest

from turngate.core.shell.invocation import Invocation, read_invocation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("make test", Invocation(0)),
        ("bash x.sh a", Invocation(0, 1, language="shell")),
        ("/bin/sh -eu x.sh", Invocation(0, 2, language="shell")),
        ("bash -o pipefail x.sh", Invocation(0, 3, language="shell")),
        ("bash -s x", Invocation(0)),
        ("sh -c inner", Invocation(0, shell_command="inner")),
        ("bash -lc inner", Invocation(0, shell_command="inner")),
        ("bash -c -e inner", Invocation(0, shell_command="inner")),
        ("python3 x.py", Invocation(0, 1, language="python")),
        ("python3.12 -u -X dev x.py", Invocation(0, 4, language="python")),
        ("python -m pytest x.py", Invocation(0)),
        ("python3 -c code", Invocation(0)),
        ("python3 -", Invocation(0)),
        ("python3", Invocation(0)),
        ("node --import tsx x.ts", Invocation(0, 3, language="node")),
        ("node -e code", Invocation(0)),
        ("ruby x.rb", Invocation(0, 1, language="other")),
        ("perl -ne code", Invocation(0)),
        ("uv run x.py", Invocation(0, 2, language="python")),
        ("uv run --with rich --script tool", Invocation(0, 5, language="python")),
        ("uv run python x.py", Invocation(0, 3, language="python")),
        ("uv run pytest x.py", Invocation(0)),
        ("uv run --project other x.py", Invocation(0)),
        ("uv sync", Invocation(0)),
        ("npx -y tsx x.ts", Invocation(0, 3, language="node")),
        ("npx prettier x.ts", Invocation(0)),
        ("bun x.ts", Invocation(0, 1, language="node")),
        ("bun run build", Invocation(0)),
        ("deno run -A x.mjs", Invocation(0, 3, language="node")),
        ("deno test x.ts", Invocation(0)),
        ("env A=b C=d bash x.sh", Invocation(3, 4, language="shell")),
        ("env -u A make", Invocation(3)),
        ("timeout 30 bash x.sh", Invocation(2, 3, language="shell")),
        ("timeout -k 5 30 make", Invocation(4)),
        ("nice -n 5 nohup exec make", Invocation(5)),
        ("env -S make", None),
        ("command -v make", None),
        ("timeout", None),
        ("? make", None),
        ("bash ?", Invocation(0)),
    ],
)
def test_the_program_and_its_script_are_found(text: str, expected: Invocation | None) -> None:
    assert read_invocation([None if word == "?" else word for word in text.split()]) == expected
