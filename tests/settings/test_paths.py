"""The places of settings that are read on another machine at once."""

import pytest

from tests.support.prefixed_files import PrefixedFiles
from turngate.settings.paths import settings_places


@pytest.mark.parametrize(
    ("project", "home"), [("/", "/home/me"), ("/srv/app", "/"), ("/srv/app/", "/home/me/")]
)
def test_only_folders_of_settings_are_read_with_all_that_is_below(project: str, home: str) -> None:
    """At most the names in the folder of a project are read, also if that is `/` or the home folder is."""
    files = PrefixedFiles("/no-such-folder", home, {"PATH": "/.:/usr/bin/.:bin:/usr/bin"})
    paths = settings_places(files, project)
    whole = [path for path in paths if path.endswith("/**")]
    top, own = project.rstrip("/"), home.rstrip("/")
    assert sorted(whole) == sorted(
        (
            "/Library/Application Support/ClaudeCode/**",
            "/etc/claude-code/**",
            *(f"{top}/.{family}/**" for family in ("claude", "mux", "turngate")),
            *(
                f"{own}/.{name}/**"
                for name in ("mux", "turngate", "claude/agents", "claude/commands", "claude/hooks")
            ),
        )
    )
    assert [path for path in paths if path.endswith("/.")] == [f"{top}/."]
