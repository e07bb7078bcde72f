import pytest

from turngate.check.command_steps import check_tool, never_ends


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("pytest -q", "pytest"),
        ("/usr/bin/pytest", "pytest"),
        (".venv/bin/ruff check .", "ruff"),
        ("python3 -m pytest", "pytest"),
        ("uv run pytest", "pytest"),
        ("uv run python -m mypy .", "mypy"),
        ("npx --no-install eslint .", "eslint"),
        ("pnpm exec vitest run", "vitest"),
        ("bundle exec rspec", "rspec"),
        ("npm test", "npm"),
        ("npm t", "npm"),
        ("npm --prefix web test", None),  # the option's value is taken for the subcommand: better silent
        ("npm run test:unit", "npm"),
        ("npm run lint", "npm"),
        ("pnpm lint", "pnpm"),
        ("yarn test", "yarn"),
        ("bun test", "bun"),
        ("npm run typecheck", None),  # tsc ends with 2
        ("npm run deploy", None),
        ("npm ci", None),
        ("npm install", None),
        ("yarn add lint", None),
        ("cargo test --all", "cargo"),
        ("cargo run", None),
        ("go test ./...", "go"),
        ("go vet ./...", None),
        ("./gradlew check", "gradlew"),
        ("make test", None),
        ("tsc --noEmit", None),
        ("env CI=1 timeout 60 pytest", "pytest"),
        ("git status", None),
        ("uv sync", None),
        ("python3 pytest.py", None),
        ("pytest ?", None),
        ("", None),
    ],
)
def test_checks_that_fail_with_another_code_than_2_are_known(command: str, tool: str | None) -> None:
    assert check_tool([None if word == "?" else word for word in command.split()]) == tool


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("tail -f x", True),
        ("tail -n 5 x", False),
        ("sleep infinity", True),
        ("sleep 5", False),
        ("npm run dev", True),
        ("npm start", True),
        ("yarn watch", True),
        ("npm run test:watch", True),
        ("npm test -- --watch", True),
        ("npm test", False),
        ("vitest --watch", True),
        ("npx vitest run", False),
        ("git worktree add --watch", False),
        ("", False),
    ],
)
def test_servers_and_watchers_never_end(command: str, expected: bool) -> None:
    assert never_ends(command.split()) is expected
