"""The site of the documentation can be built: `make docs`."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

ZENSICAL = Path(sys.executable).parent / "zensical"
needs_zensical = pytest.mark.skipif(not ZENSICAL.exists(), reason="zensical is not installed")
CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def pages(entry: Any) -> list[str]:
    """Return the files of a part of the navigation."""
    match entry:
        case str():
            return [entry]
        case list():
            return [page for each in entry for page in pages(each)]
        case _:
            return [page for each in entry.values() for page in pages(each)]


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build a copy of the docs as `make docs` does."""
    shutil.copytree(ROOT / "docs", folder / "docs", dirs_exist_ok=True)
    shutil.copy(ROOT / "zensical.toml", folder)
    return subprocess.run(
        [ZENSICAL, "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_page_is_in_the_navigation_once() -> None:
    docs = ROOT / "docs"
    files = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    files = [name for name in files if not name.startswith("decisions/0")]  # decisions/README.md lists them
    assert sorted(pages(CONFIG["nav"])) == sorted(files)


@needs_zensical
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert (done.returncode, re.findall("(?i)warning.*", done.stdout + done.stderr)) == (0, [])
    built = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    expected = {
        page.removesuffix(".md") + "/index.html"
        for page in pages(CONFIG["nav"])
        if not page.endswith("README.md")
    }
    assert expected <= built


@needs_zensical
@pytest.mark.parametrize("link", ["how-to/nothing.md", "how-to/ssh.md#nothing"])
def test_a_link_that_leads_nowhere_is_an_error(link: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "extra.md").write_text(f"See [it]({link}).\n")
    assert build(tmp_path).returncode != 0
