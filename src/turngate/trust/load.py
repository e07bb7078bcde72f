"""Loads the settings of a project whose hooks are reviewed: one that is not approved is pending, and does not run."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.kinds import hook_text
from turngate.core.hooks.selection import switched_off_by
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.hints import GONE
from turngate.project.files import LOCAL, Files
from turngate.settings.load import Layers, load_layers, project_path, report_unreachable
from turngate.settings.paths import settings_snapshot
from turngate.trust.approvals import Approval, Approvals
from turngate.trust.fingerprint import Fingerprint, definition_of
from turngate.trust.review import Reviewer, gone_rule, place_of
from turngate.trust.session_record import RecordedGate, SessionRecord


def load_settings(
    project: str = ".",
    *,
    dialect: str = "turngate",
    home: str | None = None,
    plugin_dirs: Sequence[str] = (),
    extra: str | None = None,
    trust: bool = False,
    files: Files = LOCAL,
) -> Settings:
    """Return the merged settings of a project. An invalid file does not affect the others; see `problems`.

    `plugin_dirs` are folders of Claude Code plugins, in addition to `pluginDirs` of the settings. `extra` is JSON, or
    the path of a file, and is stronger than the files of the project and the user. A hook of the project runs only if
    it is approved; `trust` accepts all hooks as they are now. For a project on another machine, call it
    with `World.with_files`, which passes its `files`.
    """
    with report_unreachable(files):
        files = settings_snapshot(files, project)
        return load_reviewed(
            project_path(project, files),
            dialect=dialect,
            home=home,
            plugin_dirs=plugin_dirs,
            extra=extra,
            trust=trust,
            files=files,
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
    files: Files = LOCAL,
) -> Settings:
    """Return the reviewed settings of a project whose folder may not exist.

    `recorded_plugins` are the folders of plugins of a session that has ended.
    """
    with report_unreachable(files):
        layers = load_layers(
            project,
            dialect=dialect,
            home=home,
            plugin_dirs=plugin_dirs,
            extra=extra,
            recorded_plugins=recorded_plugins,
            files=settings_snapshot(files, project),
        )
        return review(layers, trust=trust)


def review(layers: Layers, *, trust: bool = False) -> Settings:
    """Return the settings of these layers. A hook that is not approved is pending, and so is one that was and is gone."""
    reviewer = Reviewer(layers, accept=trust, reports_gone=True)
    return reviewer.review_settings().with_rules(problems=reviewer.problems)


def review_agent_hooks(
    rules: Iterable[Rule], project: str, dialect: str, *, trust: bool = False, files: Files = LOCAL
) -> tuple[Rule, ...]:
    """Return the hooks of agent files, reviewed under the `env` of the project's settings."""
    rules = tuple(rules)
    if not rules:
        return ()
    with report_unreachable(files):
        layers = load_layers(project, dialect=dialect, files=settings_snapshot(files, project))
        reviewer = Reviewer(layers, accept=trust, reports_gone=True)
        reviewer.review_settings()
        return reviewer.review_rules(rules)


# A session that is open


def refreshed(settings: Settings, reviewed: Settings) -> Settings:
    """Return the settings of a session with the hooks that were approved or rejected since its start.

    A hook that has changed and is pending runs on as it was at the start, and so does one that is no longer configured:
    no person has decided about it.
    """
    running = [rule for rule in settings.rules if not rule.pending]
    lost = _undecided(running, reviewed.rules)
    rules = []
    for rule in reviewed.rules:
        if not rule.pending or rule.rejected:
            rules.append(rule)
            continue
        what, place = _what(rule), place_of(rule)
        old = next((each for each in running if _what(each) == what), None)
        old = old or next((each for each in lost if place_of(each) == place or _is_gone(each, rule)), None)
        lost = [each for each in lost if each is not old]
        rules.append(old or rule)
    return replace(settings, rules=(*rules, *lost), env=reviewed.env, user_env=reviewed.user_env)


def _undecided(running: Iterable[Rule], reviewed: Iterable[Rule]) -> list[Rule]:
    """Return the hooks of the session that are configured no longer, and that no approved hook has replaced."""
    reviewed, running = tuple(reviewed), tuple(running)
    configured, known = set(map(_what, reviewed)), set(map(_what, running))
    approved = [rule for rule in reviewed if not rule.pending]
    places = {place_of(rule) for rule in approved if _what(rule) not in known}
    ids = {(rule.event, rule.hook.id) for rule in approved if rule.hook.id}
    return [
        rule
        for rule in running
        if rule.source == "python"
        or (
            _what(rule) not in configured
            and place_of(rule) not in places
            and (rule.event, rule.hook.id) not in ids
        )
    ]


def _is_gone(rule: Rule, reported: Rule) -> bool:
    """Return whether a hook of the session is the one that is reported as no longer configured."""
    return reported.pending == GONE and (rule.event, rule.file, hook_text(rule.hook)) == (
        reported.event,
        reported.file,
        hook_text(reported.hook),
    )


def _what(rule: Rule) -> tuple[str | None, str]:
    """Return what a hook is, wherever it is in its file."""
    return rule.file, definition_of(rule)


def with_running_gates_held(settings: Settings) -> Settings:
    """Return the settings in which a gate that runs now blocks if its files are changed later."""
    rules = tuple(replace(rule, held=rule.held or _runs(rule, settings)) for rule in settings.rules)
    return replace(settings, rules=rules)


# A session of a host


def with_held_gates(settings: Settings, record: SessionRecord, state: str) -> Settings:
    """Return the settings with the limits of the record, in which each of its gates blocks if it is not what was recorded."""
    recorded = {definition for _, _, definition in record.gates}
    rules = [replace(rule, held=rule.definition in recorded and not rule.rejected) for rule in settings.rules]
    rules += _lost_gates(settings, record, state)
    limit, hard, child = record.limits
    return replace(settings, rules=tuple(rules), limit=limit, hard_limit=hard, child_limit=child)


def _lost_gates(settings: Settings, record: SessionRecord, state: str) -> Iterator[Rule]:
    """Yield the recorded gates that are not in the settings, although no person has decided about them."""
    present = {rule.definition for rule in settings.rules}
    lost = [gate for gate in record.gates if gate[-1] not in present]
    if not lost:
        return
    stored = (Approvals(record.project, state), Approvals(os.path.expanduser("~"), state, of_user=True))
    for key, place, definition in lost:
        approval = Approval(key, Fingerprint(definition), 0.0, "")
        if not any(each.is_withdrawn(approval.fingerprint.digest) for each in stored):
            why = _why_lost(settings, place, record.project)
            yield replace(gone_rule(approval, place, why), held=True)


def _why_lost(settings: Settings, place: str, project: str) -> str:
    if not os.path.isdir(project):
        return f"the project folder {project} is gone"
    unread = (each.file for each in settings.not_loaded if place.startswith(f"{each.file}:"))
    return f"{file} cannot be read" if (file := next(unread, None)) else "it is no longer configured"


def session_gates(settings: Settings) -> tuple[RecordedGate, ...]:
    """Return the gates that hold from now on: those that run, and those of the record that no person has withdrawn."""
    return tuple(
        dict.fromkeys(
            (rule.hook.id or "", place_of(rule), rule.definition)
            for rule in settings.rules
            if rule.held or _runs(rule, settings)
        )
    )


def _runs(rule: Rule, settings: Settings) -> bool:
    is_approved = rule.event in STOP_EVENTS and rule.definition and not rule.pending
    return bool(is_approved and rule.hook.enabled and not switched_off_by(rule, settings))
