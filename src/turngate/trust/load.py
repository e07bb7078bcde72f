"""Loads the settings of a project whose hooks are reviewed: one that is not approved is pending, and does not run."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from turngate.core.settings import Rule, Settings
from turngate.settings.load import project_path, read_settings, report_unreachable
from turngate.settings.snapshot import settings_snapshot
from turngate.trust.review import Reviewer


def load_settings(
    project: str = ".",
    *,
    dialect: str = "turngate",
    home: str | None = None,
    plugin_dirs: Sequence[str] = (),
    extra: str | None = None,
    trust: bool = False,
) -> Settings:
    """Return the merged settings of a project. An invalid file does not affect the others; see `problems`.

    `plugin_dirs` are folders of Claude Code plugins, in addition to `pluginDirs` of the settings. `extra` is JSON, or
    the path of a file, and is stronger than the files of the project and the user. A hook of the project runs only if
    it is approved; `trust` accepts all hooks as they are now. For a project on another machine, call it
    with `World.with_files`.
    """
    with report_unreachable(), settings_snapshot(project):
        return load_reviewed(
            project_path(project),
            dialect=dialect,
            home=home,
            plugin_dirs=plugin_dirs,
            extra=extra,
            trust=trust,
        )


def load_reviewed(
    project: str,
    *,
    dialect: str,
    home: str | None = None,
    plugin_dirs: Sequence[str] = (),
    extra: str | None = None,
    trust: bool = False,
    recorded_plugins: Sequence[str] = (),
) -> Settings:
    """Return the reviewed settings of a project whose folder may not exist.

    `recorded_plugins` are the folders of plugins of a session that has ended.
    """
    with report_unreachable(), settings_snapshot(project):
        reviewer = Reviewer(project, home=home, accept=trust, reports_gone=dialect)
        settings = read_settings(
            project,
            dialect=dialect,
            home=home,
            plugin_dirs=plugin_dirs,
            extra=extra,
            review=reviewer.review_layers,
            recorded_plugins=recorded_plugins,
        )
    return (
        replace(settings, problems=(*settings.problems, *reviewer.problems))
        if reviewer.problems
        else settings
    )


def review_agent_hooks(
    rules: Iterable[Rule], project: str, dialect: str, *, trust: bool = False
) -> tuple[Rule, ...]:
    """Return the hooks of agent files, reviewed under the `env` of the project's settings."""
    rules = tuple(rules)
    with report_unreachable(), settings_snapshot(project):
        reviewer = Reviewer(project, accept=trust, reports_gone=dialect)
        if rules:
            read_settings(project, dialect=dialect, review=reviewer.review_layers)
        return reviewer.review_rules(rules)
