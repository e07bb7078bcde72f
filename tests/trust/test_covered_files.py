"""Which files of a folder count, what is read of them, and within which limits."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.trust.support import RUNS, approve_all, ask, command, make, said, write
from turngate.errors import UsageError
from turngate.project.files import LocalFiles
from turngate.trust import covered_files
from turngate.trust.covered_files import ALL, MENTIONED, CoveredFiles, compare_files


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read from now on."""
    found: list[str] = []
    real_read = LocalFiles.read

    def read(files: LocalFiles, path: str, max_bytes: int) -> bytes:
        found.append(os.path.basename(path))
        return real_read(files, path, max_bytes)

    monkeypatch.setattr(LocalFiles, "read", read)
    return found


def names(project: Path, covered: Mapping[str, str | None]) -> list[str]:
    found = CoveredFiles(LocalFiles(), str(project)).ids(covered)
    return [name for name in found if not name.endswith("/")]


def test_a_folder_counts_with_all_that_can_be_run_or_read_by_a_hook(project: Path) -> None:
    write(project, {"hooks/x.log": "", "hooks/logs/run.sh": "", "hooks/lib/a.py": ""})
    for name in ("hooks/rules.txt", "hooks/prompt.md", "hooks/config.json", "hooks/common", "hooks/.env"):
        (project / name).write_text("")
    for name in (
        "hooks/y.log",
        "hooks/logs/out.txt",
        "hooks/state.json",
        "hooks/README.md",
        "hooks/.cache/x",
    ):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("")
    (project / "hooks/z.log").write_text("#!/bin/sh\n")
    write(
        project, {"hooks/__pycache__/a.pyc": "", "hooks/.git/config": "", "hooks/node_modules/a/index.js": ""}
    )
    assert names(project, {"hooks/": ALL}) == [
        "hooks/.env",
        "hooks/common",
        "hooks/config.json",
        "hooks/lib/a.py",
        "hooks/logs/run.sh",
        "hooks/node_modules",
        "hooks/prompt.md",
        "hooks/rules.txt",
        "hooks/x.log",
        "hooks/z.log",
    ]


def test_data_does_not_make_a_folder_too_large_and_is_not_opened(project: Path, reads: list[str]) -> None:
    write(project, {".turngate/check.sh": ""})
    (project / ".turngate/archive").mkdir()
    for number in range(covered_files.MAX_FILES + 1):
        (project / f".turngate/archive/{number}.jsonl").touch()
    assert (names(project, {".turngate/": ALL}), reads) == ([".turngate/check.sh"], ["check.sh"])


def test_files_that_do_not_count_do_not_make_a_folder_too_large(project: Path) -> None:
    write(project, {"tools/check.sh": "", "tools/x/target/y": "", "tools/data/y": ""})
    for number in range(covered_files.MAX_FILES + 1):
        (project / f"tools/x/target/{number}.o").touch()
        (project / f"tools/data/{number}.csv").touch()
    assert names(project, {"tools/": MENTIONED, "tools/check.sh": None}) == ["tools/check.sh"]


def test_the_names_of_what_was_installed_count_and_not_its_content(project: Path) -> None:
    write(project, {"hooks/node_modules/a/index.js": ""})
    recorded = CoveredFiles(LocalFiles(), str(project)).ids({"hooks/": ALL})
    write(project, {"hooks/node_modules/a/index.js": "more"})
    assert compare_files(recorded, CoveredFiles(LocalFiles(), str(project))) is None
    write(project, {"hooks/node_modules/b/index.js": ""})
    why = "hooks/node_modules was changed"
    assert compare_files(recorded, CoveredFiles(LocalFiles(), str(project))) == why


@pytest.mark.parametrize(
    ("script", "text", "found"),
    [
        ("check.sh", "source ./lib.sh\n", ["lib.sh"]),
        ("check.sh", "npm run build; npm run deploy\n", []),
        ("check.sh", "# not lib.sh\n  // nor helper\ntrue\n", []),
        ("check.sh", "sh lib.sh\n", ["lib.sh"]),
        ("check.sh", "#!/bin/sh\necho usage: build deploy\n", []),
        ("check.sh", "for x in checks.d; do . $x; done\n", ["checks.d/1"]),
        ("check.sh", 'for x in "$dir"/*; do . "$x"; done\n', ["all"]),
        ("check.py", "import helper\n", ["helper.py", "selectors.py", "json/__init__.py", "other.js"]),
        ("check.py", "import subprocess\n", ["selectors.py", "json/__init__.py"]),
        ("check.py", "import importlib\n", ["all"]),
        ("check.js", 'require("./other")\n', ["other.js"]),
        ("check.js", "require(name)\n", ["all"]),
    ],
)
def test_in_other_folders_files_count_whose_names_occur_in_those_that_count(
    project: Path, script: str, text: str, found: list[str]
) -> None:
    files = {"lib.sh": "", "deploy.sh": "", "checks.d/1": "", "helper.py": "run('other.js')", "other.js": ""}
    files |= {"selectors.py": "", "json/__init__.py": "", "build.sh": ""}
    write(project / "scripts", {**files, script: text})
    expected = [*files] if found == ["all"] else found
    result = names(project, {"scripts/": MENTIONED, f"scripts/{script}": None})
    assert sorted(result) == sorted(f"scripts/{name}" for name in (script, *expected))


# Links


def link_to_itself(project: Path) -> None:
    (project / "hooks/loop").symlink_to(".")


def link_to_the_project(project: Path) -> None:
    (project / "hooks/root").symlink_to("..")


def link_to_nothing(project: Path) -> None:
    (project / "hooks/nothing").symlink_to("nowhere")


@pytest.mark.parametrize("link", [link_to_itself, link_to_the_project, link_to_nothing])
def test_a_link_that_leads_to_no_further_files(project: Path, link: Callable[[Path], None]) -> None:
    write(project, {"hooks/a.sh": "", "src/app.py": ""})
    link(project)
    assert names(project, {"hooks/": ALL}) == ["hooks/a.sh"]


def test_what_links_lead_to_counts(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "shared", {"lib/b.sh": "", "c.sh": ""})
    (project / "hooks").mkdir()
    (project / "hooks/lib").symlink_to(tmp_path / "shared/lib")
    (project / "hooks/c").symlink_to(tmp_path / "shared/c.sh")
    covered = {"hooks/": ALL}
    recorded = CoveredFiles(LocalFiles(), str(project)).ids(covered)
    assert list(recorded) == ["hooks/", "hooks/c", "hooks/lib/b.sh"]
    write(tmp_path / "shared", {"c.sh": "more"})
    assert compare_files(recorded, CoveredFiles(LocalFiles(), str(project))) == "hooks/c was changed"


@pytest.mark.req("X-13")
def test_modules_beside_the_file_to_which_a_link_leads_count(project: Path) -> None:
    files = {"tools/check.py": "import json\n", "tools/other.py": "", ".claude/hooks/a": ""}
    make(project, command("python3 .claude/hooks/check.py"), files)
    (project / ".claude/hooks/check.py").symlink_to("../../tools/check.py")
    approve_all(project)
    assert said(ask(project)) == []
    write(project, {"tools/other.py": "# edited"})
    assert said(ask(project)) == []
    write(project, {"tools/json.py": "open('evil', 'w')"})
    assert said(ask(project)) == ["tools/json.py was added after it was approved"]
    assert not (project / "evil").exists()


# Limits


def many_files(project: Path) -> None:
    for number in range(covered_files.MAX_FILES + 1):
        (project / f"hooks/{number}").touch()


def large_files(project: Path) -> None:
    for number in range(2):
        with (project / f"hooks/{number}").open("wb") as file:
            file.truncate(covered_files.MAX_BYTES // 2 + 1)


DO = "too much to compare at each stop; move the scripts of hooks into a folder of their own"


@pytest.mark.parametrize(
    ("fill", "what"),
    [(many_files, "has more than 2,000 files"), (large_files, "has more than 64 MiB")],
    ids=["files", "bytes"],
)
def test_a_folder_that_is_too_large_is_named_and_its_hook_is_pending(
    project: Path, fill: Callable[[Path], None], what: str
) -> None:
    make(project, command("sh hooks/check.sh"), {"hooks/check.sh": RUNS})
    approve_all(project)
    fill(project)
    assert said(ask(project)) == [f"the folder hooks {what}, {DO}"]
    assert not (project / "ran").exists()
    with pytest.raises(UsageError, match=f"Stop:1 cannot be approved: the folder hooks {what}"):
        approve_all(project)


def test_the_time_for_reading_is_limited(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(project, command("sh hooks/check.sh"), {"hooks/check.sh": RUNS})
    approve_all(project)
    monkeypatch.setattr(covered_files, "MAX_SECONDS", -1.0)
    assert said(ask(project)) == [f"the folder hooks could not be read within -1 s, {DO}"]


# What is read


@pytest.mark.parametrize(("age", "count"), [(-1, 1), (10**18, 2)], ids=["old", "just written"])
def test_a_file_that_was_not_written_meanwhile_is_not_read_again(
    project: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch, age: int, count: int
) -> None:
    monkeypatch.setattr(covered_files, "RACY_NS", age)
    write(project, {"hooks/check.sh": RUNS})
    for _ in range(2):
        names(project, {"hooks/": ALL})
    assert reads == ["check.sh"] * count


def test_a_file_with_the_same_size_and_modification_time_is_read_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covered_files, "RACY_NS", -1)
    path = project / "hooks/check.sh"
    write(project, {"hooks/check.sh": "one"})
    recorded = CoveredFiles(LocalFiles(), str(project)).ids({"hooks/": ALL})
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text("two")
    os.utime(path, ns=times)
    assert compare_files(recorded, CoveredFiles(LocalFiles(), str(project))) == "hooks/check.sh was changed"
