"""The line that installs an extra fits the way in which Turngate was installed, and can be copied."""

import importlib.util
import json
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from turngate.extra_install import install_command

METADATA = """\
Metadata-Version: 2.4
Name: turngate
Version: 0.1.0
Provides-Extra: http
Requires-Dist: httpx2<3,>=2.7; extra == 'http'
Requires-Dist: other>=1; extra == 'agent'
"""
# An environment that uv has made has no pip.
HAS_PIP = importlib.util.find_spec("pip") is not None
PIP = f"{sys.executable} -m pip install" if HAS_PIP else f"uv pip install --python {sys.executable}"


def package(folder: Path, origin: dict[str, Any] | None) -> Distribution:
    path = folder / "turngate-0.1.0.dist-info"
    path.mkdir()
    (path / "METADATA").write_text(METADATA)
    if origin is not None:
        (path / "direct_url.json").write_text(json.dumps(origin))
    return Distribution.at(path)


def command(folder: Path, origin: dict[str, Any] | None) -> str:
    return install_command("http", package(folder, origin), str(folder))


def test_from_an_index_the_package_is_named(tmp_path: Path) -> None:
    assert command(tmp_path, None) == f"{PIP} 'turngate[http]'"


@pytest.mark.parametrize(("editable", "option"), [(True, "-e "), (False, "")])
def test_from_a_clone_its_folder_is_named(tmp_path: Path, editable: bool, option: str) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    origin = {"url": clone.as_uri(), "dir_info": {"editable": editable}}
    assert command(tmp_path, origin) == f"{PIP} {option}'{clone}[http]'"


def test_from_a_wheel_the_file_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / "turngate-0.1.0-py3-none-any.whl"
    wheel.touch()
    assert command(tmp_path, {"url": wheel.as_uri(), "archive_info": {}}) == f"{PIP} '{wheel}[http]'"


def test_from_a_wheel_that_was_deleted_the_requirements_are_named(tmp_path: Path) -> None:
    origin = {"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}}
    assert command(tmp_path, origin) == f"{PIP} 'httpx2<3,>=2.7'"


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (
            {"url": "https://h.example/t.git", "vcs_info": {"vcs": "git", "requested_revision": "v1"}},
            "turngate[http] @ git+https://h.example/t.git@v1",
        ),
        (
            {"url": "https://h.example/t.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "turngate[http] @ git+https://h.example/t.git",
        ),
        (
            {"url": "https://h.example/t.whl", "archive_info": {}},
            "turngate[http] @ https://h.example/t.whl",
        ),
    ],
    ids=["revision", "branch", "archive"],
)
def test_from_a_url_the_url_is_named(tmp_path: Path, origin: dict[str, Any], requirement: str) -> None:
    assert command(tmp_path, origin) == f"{PIP} '{requirement}'"


def test_uv_tool_installs_the_tool_again_with_the_extra(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").touch()
    clone = tmp_path / "clone"
    clone.mkdir()
    origin = {"url": clone.as_uri(), "dir_info": {"editable": True}}
    assert command(tmp_path, origin) == f"uv tool install --force -e '{clone}[http]'"


def test_pipx_injects_the_requirements(tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    assert command(tmp_path, None) == "pipx inject turngate 'httpx2<3,>=2.7'"


def test_without_pip_uv_installs_into_this_interpreter(tmp_path: Path) -> None:
    package(tmp_path, None)
    program = f"""
import importlib.metadata, sys
sys.modules["pip"] = None
from turngate.extra_install import install_command
at = importlib.metadata.Distribution.at({str(tmp_path / "turngate-0.1.0.dist-info")!r})
print(install_command("http", at, {str(tmp_path)!r}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"uv pip install --python {sys.executable} 'turngate[http]'\n"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"url": 5}'])
def test_an_origin_that_cannot_be_read_is_taken_for_an_index(tmp_path: Path, text: str) -> None:
    found = package(tmp_path, None)
    (tmp_path / "turngate-0.1.0.dist-info" / "direct_url.json").write_text(text)
    assert install_command("http", found, str(tmp_path)) == f"{PIP} 'turngate[http]'"
