"""Paths without links, compared with what the system finds."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from turngate.project.files import LOCAL
from turngate.project.safe_paths import MAX_LINKS, is_inside, real_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with folders and links. A link's name says what is special about it."""
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "file").write_text("x")
    for name, target in (
        ("up", ".."),
        ("absolute", str(top / "a" / "b")),
        ("dotted", "./a/../a//b/"),
        ("two", "absolute/.."),
        ("dangling", "a/gone/deeper"),
        ("outside", str(tmp_path)),
        ("root", "/"),
    ):
        (top / name).symlink_to(target)
    return top


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "a/file",
        "a/./b/",
        "a//b",
        "a/file/x",
        "absolute/x",
        "dotted/x",
        "two/file",
        "two/../a",
        "dangling/x",
        "outside/top/a",
        "up/top/up",
        "gone/../a",
        "root/etc",
        "../../../../../../../../../..",
    ],
)
def test_a_path_is_resolved_as_the_standard_library_resolves_it(
    path: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = f"{folder}/{path}"
    monkeypatch.chdir(folder)
    assert (LOCAL.resolve(full), LOCAL.resolve(path)) == (os.path.realpath(full), os.path.realpath(path))


@pytest.mark.parametrize("links", [MAX_LINKS, MAX_LINKS + 1, 1500])
def test_as_many_links_are_followed_as_the_system_follows(links: int, tmp_path: Path) -> None:
    for number in range(links):
        (tmp_path / str(number)).symlink_to(str(number + 1))
    (tmp_path / str(links)).write_text("x")
    path = str(tmp_path / "0")
    if links <= MAX_LINKS:
        assert (os.stat(path).st_size, LOCAL.resolve(path)) == (1, str(tmp_path / str(links)))
    else:
        assert (_errno(os.stat, path), _errno(LOCAL.resolve, path)) == (errno.ELOOP, errno.ELOOP)
        assert real_path(path) == path


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a/" * 1_000_000, errno.ENAMETOOLONG),
        ("a" * 300, errno.ENAMETOOLONG),
        ("a\0b", errno.EINVAL),
        ("a\ud800", errno.EILSEQ),
        ("loop", errno.ELOOP),
        ("loop/x", errno.ELOOP),
        ("links-that-grow", errno.ELOOP),
    ],
    ids=["deep", "long", "NUL", "surrogate", "loop", "below a loop", "grow"],
)
def test_a_path_that_no_file_can_have_is_an_os_error(path: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "links-that-grow").symlink_to("links-that-grow/" * 200)
    full = f"{tmp_path}/{path}"
    assert (_errno(LOCAL.resolve, full), real_path(full)) == (code, full)


def _errno(function: Callable[[str], object], path: str) -> int | None:
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is compared
        function(path)
    return raised.value.errno


def test_a_relative_path_in_a_folder_that_is_gone_is_an_os_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert (_errno(LOCAL.resolve, "a"), real_path("a")) == (errno.ENOENT, "a")


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("/a/b", "/a", True),
        ("/a", "/a", True),
        ("/a-b", "/a", False),
        ("/", "/a", False),
        ("/a", "/", True),
        ("/", "/", True),
    ],
)
def test_a_path_is_inside_a_folder_and_not_beside_it(path: str, folder: str, inside: bool) -> None:
    assert is_inside(path, folder) is inside
