"""The commit that `turngate gates run --base REV` compares with."""

import subprocess

from turngate.cli.terminal.format import flat
from turngate.core.text import quote_name
from turngate.errors import UsageError

GIT_TIMEOUT_S = 60.0


def find_base(project: str, revision: str) -> str:
    """Return the last commit that the revision and HEAD have in common. Raises UsageError."""
    commit = _git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    name = quote_name(flat(revision))
    if not commit:
        raise UsageError(
            f"--base {name}: git knows no such commit here; fetch it first, e.g. `git fetch origin`"
        )
    base = _git(project, "merge-base", commit, "HEAD")
    if not base:
        raise UsageError(
            f"--base {name} has no commit in common with HEAD here; "
            "fetch the whole history (`git fetch --unshallow`, in a GitHub workflow `fetch-depth: 0`)"
        )
    return base


def _git(project: str, *words: str) -> str:
    """Return the first line that git prints; empty if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - git, with a revision that cannot be an option
            ["git", "-C", project, *words],  # noqa: S607 - the git of the user
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"--base: git could not be started: {error}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"--base: git did not answer within {GIT_TIMEOUT_S:.0f} s") from None
    return done.stdout.partition("\n")[0] if done.returncode == 0 else ""
