"""How an extra is installed here: a command that can be copied, whichever way Turngate itself was installed."""

import importlib.util
import json
import os
import re
import shlex
import sys
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError
from typing import Any
from urllib.parse import unquote, urlsplit

PACKAGE = "turngate"
_MODULES = {  # by which an extra is known to be installed
    "agent": ("h11", "prompt_toolkit", "yaml"),
    "pydantic-ai": ("pydantic_ai",),
    "claude": ("claude_agent_sdk",),
    "ssh": ("asyncssh",),
    "postgres": ("psycopg",),
}


def installed_extras() -> list[str]:
    return [extra for extra, modules in _MODULES.items() if all(map(importlib.util.find_spec, modules))]


def install_command(extra: str, package: Distribution | None = None, prefix: str = sys.prefix) -> str:
    with suppress(PackageNotFoundError):  # run from a source tree
        package = package or Distribution.from_name(PACKAGE)
    words = _requirement(extra, package)
    if os.path.exists(os.path.join(prefix, "uv-receipt.toml")):
        return shlex.join(["uv", "tool", "install", "--force", *words])
    if os.path.exists(os.path.join(prefix, "pipx_metadata.json")):
        return shlex.join(["pipx", "inject", PACKAGE, *_packages(extra, package)])
    if importlib.util.find_spec("pip") is None:
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, *words])
    return shlex.join([sys.executable, "-m", "pip", "install", *words])


def _requirement(extra: str, package: Distribution | None) -> list[str]:
    """Return the arguments that name this package with the extra, from where it was installed (PEP 610)."""
    origin = _direct_url(package)
    url = origin.get("url")
    if package is None or not isinstance(url, str):
        return [f"{PACKAGE}[{extra}]"]
    if not url.startswith("file://"):
        return [f"{PACKAGE}[{extra}] @ {_remote(origin, url)}"]
    path = unquote(urlsplit(url).path)
    if not os.path.exists(path):
        return _packages(extra, package)
    editable = isinstance(origin.get("dir_info"), dict) and origin["dir_info"].get("editable")
    return [*(["-e"] if editable else []), f"{path}[{extra}]"]


def _direct_url(package: Distribution | None) -> dict[str, Any]:
    text = package.read_text("direct_url.json") if package else None
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _remote(origin: dict[str, Any], url: str) -> str:
    match origin.get("vcs_info"):
        case {"vcs": str(vcs), "requested_revision": str(revision)}:
            return f"{vcs}+{url}@{revision}"
        case {"vcs": str(vcs)}:
            return f"{vcs}+{url}"
        case _:
            return url


_EXTRA_OF = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")


def _packages(extra: str, package: Distribution | None) -> list[str]:
    """Return the requirements of an extra, or its name if they are not known."""
    packages: list[str] = []
    for line in (package.requires if package else None) or ():
        requirement, _, marker = line.partition(";")
        named = _EXTRA_OF.search(marker)
        if named and named[1] == extra:
            packages.append(requirement.strip())
    return packages or [f"{PACKAGE}[{extra}]"]
