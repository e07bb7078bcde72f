"""The settings of a project with every hook reviewed, those of agent files as they are written there."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Unpack

from turngate._frozen_dataclass import frozen
from turngate.check.misplaced_files import find_misplaced_files
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import describe_name
from turngate.doctor.diagnosis import fired_event
from turngate.project.files import LOCAL
from turngate.settings.agent_types import check_agent_files, hooks_of_agents
from turngate.settings.load import Sources, load_layers
from turngate.settings.plugin_folders import display_name
from turngate.trust.review import ReviewedHook, Reviewer, accepts_all, gone_rule, with_unique_keys


@frozen
class ReviewedSettings:
    settings: Settings
    hooks: tuple[ReviewedHook, ...]  # the status and the key of each rule of the settings, in the same order
    gone: tuple[tuple[Rule, str], ...]  # hooks that were approved and are gone, with their keys


def review_settings(project: str, **sources: Unpack[Sources]) -> ReviewedSettings:
    """Return the settings as a session would have them, and the problems of all files."""
    layers = load_layers(project, **sources, files=LOCAL)
    reviewer = Reviewer(layers, accept=accepts_all())
    settings = reviewer.review_settings().with_rules(problems=find_misplaced_files(layers))
    of_agents = hooks_of_agents(project, settings.dialect.name, LOCAL)
    rules = (*settings.rules, *reviewer.review_rules(of_agents))
    reviewed = with_unique_keys([reviewer.review(rule) for rule in rules])
    written, problems = check_agent_files(settings, project)
    known = len(settings.rules)
    used: list[tuple[Rule, ReviewedHook]] = []
    unused: dict[Problem, None] = {}
    for rule, hook in _pair(written, reviewed[known:], project):
        if hook:
            now = hook.rule
            used.append((replace(rule, pending=now.pending, rejected=now.rejected, files=now.files), hook))
        else:
            message = (
                f"are not run: another file defines the agent type {describe_name(rule.agent_type or '')}"
            )
            unused[Problem(file=rule.file or "", field="hooks", message=message, severity="note")] = None
    return ReviewedSettings(
        settings.with_rules(*(rule for rule, _ in used), problems=(*problems, *unused, *reviewer.problems)),
        (*reviewed[:known], *(hook for _, hook in used)),
        () if reviewer.accept else tuple(_gone_hooks(reviewer, settings)),
    )


def _pair(
    written: Sequence[Rule], reviewed: Sequence[ReviewedHook], project: str
) -> Iterator[tuple[Rule, ReviewedHook | None]]:
    """Yield each hook of an agent file with its review; None: no session uses it."""
    left, home = list(reviewed), os.path.expanduser("~")
    for rule in written:
        place = (rule.file, rule.agent_type, fired_event(rule), rule.index, rule.hook)
        for number, used in enumerate(hook.rule for hook in left):
            file = display_name(used.file or "", project, home)
            if place == (file, used.agent_type, used.event, used.index, used.hook):
                yield rule, left.pop(number)
                break
        else:
            yield rule, None


def _gone_hooks(reviewer: Reviewer, settings: Settings) -> Iterator[tuple[Rule, str]]:
    """Yield the project's hooks that were approved and are gone, except those of a file that cannot be read."""
    unread = {problem.file for problem in settings.errors}
    for approval in reviewer.vanished("project"):
        rule = gone_rule(approval)
        if rule.file not in unread:
            yield rule, approval.key
