"""Names from data: none leads out of its folder, and files with secrets are recognized."""

import os
from pathlib import Path

import pytest

from turngate import UnsafePath, is_sensitive, safe_path
from turngate.state.paths import session_folder
from turngate.subagents.host import subagent_transcript_path

pytestmark = pytest.mark.req("S3-49")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with links to places inside and outside of it."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    (root / "sub" / "file").write_text("f")
    (root / "inside").symlink_to("sub/file")
    (root / "out-file").symlink_to("../outside/secret")
    (root / "out-folder").symlink_to(tmp_path / "outside")
    (root / "out-missing").symlink_to(tmp_path / "missing")
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to("..")
    return root


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("file", "file"),
        ("sub/file", "sub/file"),
        ("./sub//file", "sub/file"),
        ("inside", "sub/file"),
        ("new/deep/file", "new/deep/file"),
        ("..file", "..file"),
        ("...", "..."),
        ("a b\n$(rm -rf x)", "a b\n$(rm -rf x)"),
        ("ünïcode", "ünïcode"),
    ],
)
def test_a_name_below_the_folder_is_its_path_without_links(name: str, expected: str, root: Path) -> None:
    assert safe_path(root, name) == safe_path(str(root), name) == f"{root}/{expected}"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "./",
        "..",
        "../root-2",
        "../outside/secret",
        "sub/../../outside/secret",
        "sub/..",
        "/etc/passwd",
        "//etc/passwd",
        "~/.ssh/id_rsa",
        "~root",
        "a\0b",
        "\ud800",
        "out-file",
        "out-folder",
        "out-folder/secret",
        "out-folder/new",
        "out-missing",
        "loop",
        "up/outside/secret",
        "up/root",
    ],
)
def test_a_name_that_leads_out_of_the_folder_is_an_error(name: str, root: Path) -> None:
    with pytest.raises(UnsafePath):
        safe_path(root, name)


def test_the_message_names_the_name_and_the_folder(root: Path) -> None:
    with pytest.raises(ValueError, match="is not a relative path") as raised:
        safe_path(root, "../x")
    assert str(raised.value) == f"'../x' is not a relative path below {root}"
    with pytest.raises(UnsafePath) as raised:
        safe_path(root, "out-file")
    assert str(raised.value) == f"'out-file' does not lead to a place below {root}"


def test_a_folder_that_is_a_link_itself_can_be_used(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert safe_path(tmp_path / "link", "sub/file") == f"{root}/sub/file"


@pytest.mark.parametrize("name", ["../x", "a/b", "/x", "..", ".", "", "a\0b", "\ud800", "-rf x", "a" * 5000])
def test_no_session_id_leads_out_of_the_sessions(name: str, tmp_path: Path) -> None:
    folder = session_folder(str(tmp_path), name)
    assert safe_path(tmp_path / "sessions", os.path.basename(folder)) == folder
    transcript = subagent_transcript_path(str(tmp_path), name, "a1")
    assert os.path.dirname(os.path.dirname(transcript)) == folder


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        ".env-staging",
        ".env~",
        "/p/config/.ENV.production",
        "prod.env",
        ".envrc",
        ".git/config",
        "/p/.git/hooks/pre-commit",
        ".git",
        "sub/.git",
        "id_rsa",
        "/home/me/.ssh/known_hosts",
        "id_ed25519",
        "id_ed25519_sk",
        "server.pem",
        "tls/Server.KEY",
        "store.p12",
        "release.keystore",
        "credentials.json",
        "/home/me/.aws/config",
        "secrets.yaml",
        ".netrc",
        ".npmrc",
        ".docker/config.json",
        "terraform.tfstate",
    ],
)
def test_a_file_that_usually_holds_secrets_is_sensitive(path: str) -> None:
    assert is_sensitive(path)
    assert is_sensitive(Path(path))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "src/environment.py",
        ".environment",
        ".env.example",
        ".env.sample",
        "id_rsa.pub",
        ".gitignore",
        ".github/workflows/ci.yml",
        "digit/config",
        "keyboard.py",
        "monkey",
        "config.json",
        "docs/secrets-policy.md",
        "credentials/README.md",
    ],
)
def test_other_files_are_not_sensitive(path: str) -> None:
    assert not is_sensitive(path)
