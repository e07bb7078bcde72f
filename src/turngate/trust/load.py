"""Loads the settings of a project whose hooks are reviewed: one that is not approved is pending, and does not run."""

from collections.abc import Iterable, Sequence

from turngate.core.settings import Rule, Settings
from turngate.settings.load import Layers, load_layers, project_path, report_unreachable
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
        project = project_path(project)
        return load_reviewed(
            project, dialect=dialect, home=home, plugin_dirs=plugin_dirs, extra=extra, trust=trust
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
        layers = load_layers(
            project,
            dialect=dialect,
            home=home,
            plugin_dirs=plugin_dirs,
            extra=extra,
            recorded_plugins=recorded_plugins,
        )
        return review(layers, trust=trust)


def review(layers: Layers, *, trust: bool = False) -> Settings:
    """Return the settings of these layers. A hook that is not approved is pending, and so is one that was and is gone."""
    reviewer = Reviewer(layers, accept=trust, reports_gone=True)
    return reviewer.review_settings().with_rules(problems=reviewer.problems)


def review_agent_hooks(
    rules: Iterable[Rule], project: str, dialect: str, *, trust: bool = False
) -> tuple[Rule, ...]:
    """Return the hooks of agent files, reviewed under the `env` of the project's settings."""
    rules = tuple(rules)
    if not rules:
        return ()
    with report_unreachable(), settings_snapshot(project):
        reviewer = Reviewer(load_layers(project, dialect=dialect), accept=trust, reports_gone=True)
        reviewer.review_settings()
        return reviewer.review_rules(rules)
