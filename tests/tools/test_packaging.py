"""What people install from: the lock file, the Dockerfile, the workflow and the versions that the docs name agree with pyproject.toml."""

import re
import tomllib
from typing import Any

import yaml
from tools.docker_steps import instructions

from tests.support.paths import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
REQUIREMENT = re.compile(r"(?P<name>[\w-]+)(?:\[(?P<extras>[^]]+)\])?(?P<versions>.*)")


def requirement(extra: str, text: str) -> tuple[str, str, tuple[str, ...], str]:
    """Return a requirement of pyproject.toml as the lock file writes it."""
    found = REQUIREMENT.fullmatch(text)
    assert found
    extras = tuple(found["extras"].split(",")) if found["extras"] else ()
    return extra, found["name"].lower().replace("_", "-"), extras, found["versions"]


def test_the_lock_file_is_current() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    [ours] = [package for package in lock["package"] if package["name"] == "turngate"]
    locked = {
        (
            each["marker"].split("'")[1],
            each["name"],
            tuple(each.get("extras", ())),
            each.get("specifier", ""),
        )
        for each in ours["metadata"]["requires-dist"]
    }
    required = {
        requirement(extra, text)
        for extra, texts in PROJECT["optional-dependencies"].items()
        for text in texts
    }
    assert (ours["version"], lock["requires-python"], locked) == (
        PROJECT["version"],
        PROJECT["requires-python"],
        required,
    ), "run `uv lock`"


def test_the_lock_file_names_only_the_public_index() -> None:
    text = (ROOT / "uv.lock").read_text()
    sources = {str(package["source"]) for package in tomllib.loads(text)["package"]}
    addresses = set(re.findall(r'"(\w+:[^"]*?[^/:]/|/[^"]*)', text))
    assert (addresses, sources) == (
        {"https://pypi.org/", "https://files.pythonhosted.org/"},
        {"{'registry': 'https://pypi.org/simple'}", "{'editable': '.'}"},
    )


def test_the_dockerfile_copies_what_the_package_is_built_from() -> None:
    steps = instructions((ROOT / "Dockerfile").read_text())
    copied = [source for name, text in steps if name == "COPY" for source in text.split()[:-1]]
    sdist = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    not_ignored = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(["pyproject.toml", *sdist]) == sorted(not_ignored)


def test_the_workflow_runs_every_python_of_the_package_on_linux_and_macos() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    prefix = "Programming Language :: Python :: "
    supported = [text.removeprefix(prefix) for text in PROJECT["classifiers"] if f"{prefix}3." in text]
    assert workflow["jobs"]["test"]["strategy"]["matrix"] == {
        "os": ["ubuntu-latest", "macos-latest"],
        "python": supported,
    }


def test_the_docs_name_this_version_of_the_action_and_the_hooks() -> None:
    text = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    named = re.findall(r"turngate/turngate(?:@|\n    rev: )v(\S+?)\"?$", text, re.MULTILINE)
    assert (len(named) >= 3, set(named)) == (True, {PROJECT["version"]})
