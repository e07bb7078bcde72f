"""Permission rules with a path: which files a call reaches, whatever leads to them."""

from pathlib import Path
from typing import Any

import pytest

from turngate.core.permissions.rule import read_rule, rule_matches
from turngate.project.files import LOCAL


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with links, beside a home folder."""
    project = tmp_path / "p"
    for folder in ("p/src/deep", "p/secrets", "p/docs", "home/.ssh", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("src/x.ts", "secrets/k", "docs/a.md", ".env"):
        (project / name).write_text("")
    (project / "ln").symlink_to("src")
    (project / "link.ts").symlink_to("src/x.ts")
    (project / "up").symlink_to(".")
    (project / "old").symlink_to(tmp_path / "outside")
    (project / "loop").symlink_to("loop")
    (tmp_path / "q").symlink_to(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return project


def matched(text: str, tool: str, project: Path, **tool_input: Any) -> bool:
    rule = read_rule(text)
    assert rule is not None
    return rule_matches(rule, tool, tool_input, str(project), LOCAL.locate)


@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit"])
@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("src/x.ts", True),
        ("./src//x.ts", True),
        ("docs/../src/x.ts", True),
        ("ln/x.ts", True),
        ("ln/new/y.ts", True),
        ("link.ts", True),
        ("up/up/src/x.ts", True),
        ("ln/../docs/a.md", False),
        ("docs/a.md", False),
        ("old/src/x.ts", False),
        ("loop/src/x.ts", False),
        ("srcs/x.ts", False),
        ("bad\0name", False),
    ],
)
def test_a_rule_for_edits_matches_every_way_to_change_a_file(
    tree: Path, tool: str, path: str, matches: bool
) -> None:
    found = {
        matched("Edit(src/**)", tool, project, file_path=given)
        for project in (tree, tree.parent / "q")
        for given in (path, f"{tree}/{path}")
    }
    assert found == {matches}


def test_a_rule_for_edits_covers_notebooks_and_no_tool_that_only_reads(tree: Path) -> None:
    assert matched("Edit(src/**)", "NotebookEdit", tree, notebook_path="ln/a.ipynb")
    assert not matched("Edit(src/**)", "Read", tree, file_path="src/x.ts")
    assert not matched("Edit", "Write", tree, file_path="src/x.ts")  # without a path it is about one tool


def test_a_rule_that_names_a_link_is_about_its_target_too(tree: Path) -> None:
    files = ("ln/x.ts", "src/x.ts", "docs/a.md")
    assert [matched("Edit(ln/**)", "Edit", tree, file_path=file) for file in files] == [True, True, False]
    assert matched(f"Read(/{tree.parent}/q/src/**)", "Read", tree, file_path="src/x.ts")


def test_a_rule_for_a_file_name_counts_behind_a_link(tree: Path) -> None:
    (tree / "notes").symlink_to(".env")
    assert matched("Read(.env)", "Read", tree, file_path="notes")
    assert not matched("Read(.env)", "Read", tree, file_path="docs/a.md")


@pytest.mark.parametrize(
    ("tool_input", "matches"),
    [
        ({}, True),
        ({"path": "."}, True),
        ({"path": "secrets"}, True),
        ({"path": "secrets/k"}, True),
        ({"path": "secrets/"}, True),
        ({"path": ".."}, True),
        ({"path": "up"}, True),
        ({"path": "docs"}, False),
        ({"path": "docs/a.md"}, False),
        ({"path": ".env"}, False),
        ({"path": "old"}, False),
        ({"glob": "secrets/*"}, True),
        ({"glob": "*.py"}, True),
    ],
)
@pytest.mark.parametrize("rule", ["Grep(secrets/**)", "Read(secrets/**)", "Read(./secrets/*)"])
def test_a_search_matches_if_it_could_reach_the_path(
    tree: Path, rule: str, tool_input: dict[str, Any], matches: bool
) -> None:
    assert matched(rule, "Grep", tree, pattern="KEY", **tool_input) is matches


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("**/*", True),
        ("secrets/*", True),
        ("up/secrets/*", True),
        ("s*/k", True),
        ("src/**/*.ts", False),
        ("docs/*", False),
    ],
)
def test_a_glob_reaches_what_is_below_its_first_folders(tree: Path, pattern: str, matches: bool) -> None:
    assert matched("Read(secrets/**)", "Glob", tree, pattern=pattern) is matches


@pytest.mark.parametrize(
    ("files", "matches"),
    [(None, True), ("*.py", False), ("**/.e*", True), ("*", True), (".env", True), ("*.{env,py}", True)],
)
def test_a_search_for_files_with_other_names_does_not_reach_a_file(
    tree: Path, files: str | None, matches: bool
) -> None:
    glob = {} if files is None else {"glob": files}
    found = [matched(rule, "Grep", tree, pattern="KEY", **glob) for rule in ("Read(.env)", "Read(./.env)")]
    assert found == [matches, matches]


@pytest.mark.parametrize("rule", ["Read(secrets)", "Read(secrets/)", "Read(./secrets)", "Read({secrets,x})"])
def test_a_search_reaches_what_is_below_a_folder(tree: Path, rule: str) -> None:
    inputs: list[dict[str, Any]] = [{}, {"glob": "*.py"}, {"path": "secrets"}, {"path": "secrets/k"}]
    assert [matched(rule, "Grep", tree, pattern="KEY", **each) for each in inputs] == [True] * 4
    assert not matched(rule, "Grep", tree, pattern="KEY", path="docs/a.md")


def test_the_home_folder_is_reached_from_above_and_not_from_the_project(tree: Path) -> None:
    folders = (None, tree.parent / "home", tree.parent / "home/.ssh", "/", tree.parent / "outside")
    found = [
        matched("Read(~/.ssh/**)", "Grep", tree, pattern="KEY", **({"path": str(path)} if path else {}))
        for path in folders
    ]
    assert found == [False, True, True, True, False]


def test_without_links_to_follow_a_search_of_a_folder_above_still_matches() -> None:
    rule = read_rule("Read(secrets/**)")
    assert rule is not None
    paths = ("/p", "/p/secrets/a", "/p/docs", "/")
    assert [rule_matches(rule, "Grep", {"path": path}, "/p") for path in paths] == [True, True, False, True]
