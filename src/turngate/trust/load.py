"""Loads the settings of a project whose hooks are reviewed: one that is not approved is pending, and does not run."""

import os
from ast import literal_eval
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Unpack

from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.kinds import hook_text
from turngate.core.hooks.selection import switched_off_by
from turngate.core.settings import Layer, Rule, Settings
from turngate.core.verdict.hints import GONE
from turngate.gates.local_tree_state import is_committed
from turngate.project.files import LOCAL, Files
from turngate.settings.load import Sources, load_layers, project_path, report_unreachable
from turngate.settings.paths import settings_snapshot
from turngate.state.paths import state_folder
from turngate.trust.approvals import Approval, Approvals
from turngate.trust.fingerprint import Fingerprint, definition_of
from turngate.trust.review import Reviewer, accepts_all, gone_rule, place_of
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
    project: str, *, trust: bool = False, files: Files = LOCAL, **sources: Unpack[Sources]
) -> Settings:
    """Return the reviewed settings of a project whose folder may not exist.

    A hook that is not approved is pending, and so is one that was and is gone. `recorded_plugins` are the folders of plugins of a session that has ended.
    """
    with report_unreachable(files):
        layers = load_layers(project, **sources, files=settings_snapshot(files, project))
        reviewer = Reviewer(layers, accept=accepts_all(trust), reports_gone=True)
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
        reviewer = Reviewer(layers, accept=accepts_all(trust), reports_gone=True)
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
        is_gone = rule.pending == GONE  # it is reported as no longer configured
        same = rule.event, rule.file, hook_text(rule.hook)
        for each in () if old else lost:
            if place_of(each) == place or (is_gone and (each.event, each.file, hook_text(each.hook)) == same):
                old = each
                break
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


def _what(rule: Rule) -> tuple[str | None, str]:
    """Return what a hook is, wherever it is in its file."""
    return rule.file, definition_of(rule)


def with_running_gates_held(settings: Settings) -> Settings:
    """Return the settings in which a gate that runs now blocks if its files are changed later."""
    rules = tuple(replace(rule, held=rule.held or _runs(rule, settings)) for rule in settings.rules)
    return replace(settings, rules=rules)


# A session of a host


def load_held(
    project: str, record: SessionRecord | None, files: str = "", *, own_only: bool = False
) -> tuple[Settings, SessionRecord]:
    """Return the settings for an event of a host, in which the gates of the record hold, and the record from now on.

    Limits, and what the user's settings say about all hooks, are those of the session's start. `own_only`: without the
    gates of the user, which another project of the session has.
    """
    layers = load_layers(project, dialect="host", files=settings_snapshot(LOCAL, project))
    names, own = ("file", "family", "scalars", "env"), (at for at in layers.layers if at.level == "user")
    values = (
        record.values if record else repr([{name: getattr(each, name) for name in names} for each in own])
    )
    kept = [replace(each, scalars={}, env={}) if each.level == "user" else each for each in layers.layers]
    kept += [Layer(level="user", **each) for each in literal_eval(values)]
    reviewer = Reviewer(replace(layers, layers=tuple(kept)), accept=accepts_all(), reports_gone=True)
    settings = reviewer.review_settings().with_rules(problems=reviewer.problems)
    if own_only:
        settings = replace(settings, rules=tuple(rule for rule in settings.rules if rule.trust == 0))
    if record:
        settings = _with_held_gates(settings, record, reviewer)
        files, project = record.files, record.project
    limits = settings.limit, settings.hard_limit, settings.child_limit
    return settings, SessionRecord(project, _session_gates(settings), limits, files, values)


def _with_held_gates(settings: Settings, record: SessionRecord, reviewer: Reviewer) -> Settings:
    recorded = {definition for _, _, definition in record.gates}
    rules = [replace(rule, held=rule.definition in recorded and not rule.rejected) for rule in settings.rules]
    rules += _lost_gates(settings, record, reviewer.project)
    rules = [_as_recorded(rule, reviewer) if rule.held and rule.pending else rule for rule in rules]
    limit, hard, child = record.limits
    return replace(settings, rules=tuple(rules), limit=limit, hard_limit=hard, child_limit=child)


def _as_recorded(rule: Rule, reviewer: Reviewer) -> Rule:
    """Return a gate that another branch does not have, or has otherwise, so that it runs as it was approved."""
    if not _is_of_branch(rule, reviewer.project):
        return rule
    approval = Approval("", place_of(rule), Fingerprint(rule.definition))
    reviewed = reviewer.review(gone_rule(approval, None, os.path.realpath(reviewer.project))).rule
    is_same = not reviewed.pending and reviewed.definition == rule.definition
    return replace(reviewed, held=True) if is_same else rule


def _is_of_branch(rule: Rule, project: str) -> bool:
    """Return whether the settings file of a gate is not there, or is that of the commit."""
    path = os.path.join(project, os.path.expanduser(rule.file or ""))
    return bool(rule.file) and (not os.path.lexists(path) or is_committed(path))


def _lost_gates(settings: Settings, record: SessionRecord, project: str) -> Iterator[Rule]:
    """Yield the recorded gates that are not in the settings, although no person has decided about them.

    Another branch may have another definition of one that was approved too.
    """
    present, state = {rule.definition for rule in settings.rules}, state_folder()
    places = {place_of(rule) for rule in settings.rules if not rule.pending}
    lost = [gate for gate in record.gates if gate[-1] not in present]
    if not lost:
        return
    stored = (Approvals(record.project, state), Approvals(os.path.expanduser("~"), state, of_user=True))
    for key, place, definition in lost:
        approval = Approval(key, place, Fingerprint(definition))
        rule = replace(gone_rule(approval, _why_lost(settings, place, record.project)), held=True)
        is_other = place in places and _is_of_branch(rule, project)
        if not is_other and not any(each.is_withdrawn(approval.fingerprint.digest) for each in stored):
            yield rule


def _why_lost(settings: Settings, place: str, project: str) -> str:
    if not os.path.isdir(project):
        return f"the project folder {project} is gone"
    unread = (each.file for each in settings.not_loaded if place.startswith(f"{each.file}:"))
    return f"{file} cannot be read" if (file := next(unread, None)) else "it is no longer configured"


def _session_gates(settings: Settings) -> tuple[RecordedGate, ...]:
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
