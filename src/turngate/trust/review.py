"""Compares the hooks of a project and of the user with what a person has approved."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from turngate.core.constants import COMMAND_LINE, FAMILIES, MANAGED
from turngate.core.hooks import CommandHook
from turngate.core.settings import GUARDED, Layer, Problem, Rule, Settings
from turngate.errors import UsageError
from turngate.settings.load import read_settings
from turngate.state.paths import state_folder
from turngate.trust.approvals import Approval, Approvals
from turngate.trust.changes import ChangedFiles, describe_change
from turngate.trust.fingerprint import (
    Fingerprint,
    LevelSettings,
    Surroundings,
    definition_of,
    fingerprint,
    text_digest,
    used_variables,
)
from turngate.trust.gone import describe_change_of_definition, gone_rule, is_read_by

Status = Literal["approved", "new", "changed", "rejected", "exempt"]

TRUST_VARIABLE = "TURNGATE_TRUST"
NEW = "it is not approved"


class ReviewedHook(NamedTuple):
    """One hook and its status. Only "approved" and "exempt" ones run."""

    rule: Rule
    key: str
    status: Status
    why: str | None  # it does not run
    fingerprint: Fingerprint
    approval: Approval | None = None  # the last version that was approved


class Reviewer:
    """Reviews the hooks of one project. With `accept`, all of them run as they are now."""

    def __init__(
        self,
        project: str,
        *,
        home: str | None = None,
        state: str | None = None,
        environ: Mapping[str, str] = os.environ,
        accept: bool = False,
        complete: bool = False,
        reports_gone: str | None = None,
    ) -> None:
        """With `complete`, hooks that do not run have a fingerprint too, so that they can be approved.

        With `reports_gone`, a dialect, hooks that were approved and are no longer configured are pending rules.
        """
        self.project, self.home = os.path.abspath(project), home or os.path.expanduser("~")
        self._complete, self._reports_gone = complete, reports_gone
        self.accept = accept or environ.get(TRUST_VARIABLE) == "1"
        self._state = state or state_folder(environ)
        self._around = Surroundings(self.project, self.home, environ)
        self._changed = ChangedFiles()
        self._files: dict[str, Approvals] = {}
        self._levels = {"project": LevelSettings(), "user": LevelSettings()}
        self._digests: dict[str, set[str]] = {"project": set(), "user": set()}
        self._digest_by_rule: dict[
            int, tuple[Rule, str]
        ] = {}  # the rule is kept so that its id stays its own
        self._replaced: set[str] = set()  # definitions that were changed into another one

    def review_layers(self, layers: Sequence[Layer]) -> list[Layer]:
        """Return the layers with the reason why a hook is pending, and without an `env` that is not approved."""
        self._levels = {owner: _level_settings(owner, layers) for owner in self._levels}
        rules = [rule for layer in layers for rule in layer.rules]
        self._note_digests(rules)
        reviewed = [
            replace(layer, rules=tuple(self.review(rule).rule for rule in layer.rules)) for layer in layers
        ]
        return self._without_unapproved_env([*reviewed, *self._gone_layers(layers)])

    def _gone_layers(self, layers: Sequence[Layer]) -> list[Layer]:
        """Return the hooks that are gone, except those of a file that cannot be read, which is reported."""
        if self._reports_gone is None or self.accept:
            return []
        unread = {layer.file for layer in layers if any(each.severity == "error" for each in layer.problems)}
        rules = [rule for rule in self._gone_rules() if rule.agent_type is None and rule.file not in unread]
        family = FAMILIES[self._reports_gone][-1]
        return [Layer(file="", level="project", family=family, rules=tuple(rules))] if rules else []

    def _gone_rules(self) -> Iterator[Rule]:
        approvals = self.approvals("project")
        for digest, approval in approvals.all():
            place = approvals.place_of(digest)
            if self._is_gone("project", digest) and is_read_by(place, self._reports_gone or "turngate"):
                yield gone_rule(approval, place)

    def review_rules(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return more rules of the same settings: the hooks of agent files."""
        rules = tuple(rules)
        self._note_digests(rules)
        reviewed = [self.review(rule).rule for rule in rules]
        if self._reports_gone and not self.accept:
            types = {rule.agent_type for rule in rules}
            reviewed += [rule for rule in self._gone_rules() if rule.agent_type in types]
        return tuple(reviewed)

    def review(self, rule: Rule) -> ReviewedHook:
        """Return the status of one hook. A hook of the user that is new is approved on first sight."""
        owner = owner_of(rule)
        if owner is None:
            return self._reviewed(rule, "exempt", None, Fingerprint(definition_of(rule)))
        if self.accept:
            found = fingerprint(rule, self._levels[owner], self._around)
            return self._reviewed(rule, "exempt", None, found)
        approvals = self.approvals(owner)
        digest = self._digest_of(rule, owner)
        approval = approvals.find(digest)
        if approval is None:
            return self._review_unknown(rule, owner, digest)
        why = self._why_changed(rule, self._levels[owner].env, approval.fingerprint)
        if why is None:
            return self._reviewed(rule, "approved", None, approval.fingerprint, approval)
        return self._reviewed(rule, "changed", why, self._fingerprint_of_pending(rule, owner), approval)

    def approvals(self, owner: str) -> Approvals:
        if owner not in self._files:
            folder, name = (self.project, None) if owner == "project" else (self.home, "user.json")
            self._files[owner] = Approvals(folder, self._state, name=name)
        return self._files[owner]

    def env_of(self, owner: str) -> Mapping[str, str]:
        return self._levels[owner].env

    def digests_of(self, owner: str) -> Collection[str]:
        return self._digests[owner]

    def vanished(self, dialect: str = "turngate") -> tuple[Approval, ...]:
        """Return the approvals of hooks that are no longer in files of the dialect, neither as approved nor changed."""
        return tuple(
            approval
            for owner in ("project", "user")
            for digest, approval in self.approvals(owner).all()
            if self._is_gone(owner, digest) and is_read_by(self.approvals(owner).place_of(digest), dialect)
        )

    def _is_gone(self, owner: str, digest: str) -> bool:
        return digest not in self._digests[owner] and digest not in self._replaced

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why a file of approvals does not count."""
        return tuple(
            Problem(
                file=approvals.path,
                message=approvals.problem.removeprefix(f"{approvals.path} "),
                severity="warning",
            )
            for approvals in self._files.values()
            if approvals.problem
        )

    def _fingerprint_of_pending(self, rule: Rule, owner: str) -> Fingerprint:
        if self._complete:
            return fingerprint(rule, self._levels[owner], self._around)
        return Fingerprint(definition_of(rule, self._levels[owner]))

    def _review_unknown(self, rule: Rule, owner: str, digest: str) -> ReviewedHook:
        """Review a definition without an approval: a new hook, another definition of a known one, or a rejected one."""
        approvals, found = self.approvals(owner), self._fingerprint_of_pending(rule, owner)
        if approvals.is_rejected(digest):
            return self._reviewed(rule, "rejected", "it was rejected", found)
        earlier = approvals.latest_of(place_of(rule))
        if earlier is not None and earlier.fingerprint.digest not in self._digests[owner]:
            return self._review_changed(rule, found, earlier)
        if owner == "user" and not approvals.problem:
            return self._approve_first(rule, fingerprint(rule, self._levels[owner], self._around), approvals)
        return self._reviewed(rule, "new", NEW, found)

    def _review_changed(self, rule: Rule, found: Fingerprint, earlier: Approval) -> ReviewedHook:
        """Review another definition of a hook. What was approved is missed where it would have run: at its event."""
        self._replaced.add(earlier.fingerprint.digest)
        what = describe_change_of_definition(earlier.fingerprint.content, found.content)
        why = f"{what} after it was approved"
        if self._reports_gone:
            gone = gone_rule(earlier, place_of(rule), why)
            rule = replace(rule, event=gone.event, matcher=gone.matcher, hook=gone.hook)
        return self._reviewed(rule, "changed", why, found, earlier)

    def _approve_first(self, rule: Rule, found: Fingerprint, approvals: Approvals) -> ReviewedHook:
        try:
            approvals.approve(
                [(place_of(rule), _name(rule), found)], self.env_of("user"), self._digests["user"]
            )
        except UsageError:  # it cannot be stored, so the next session sees it for the first time again
            return self._reviewed(rule, "approved", None, found)
        return self._reviewed(rule, "approved", None, found, approvals.find(found.digest))

    def _why_changed(self, rule: Rule, env: Mapping[str, str], approved: Fingerprint) -> str | None:
        if why := describe_change(approved.files, self.project, self._changed):
            return f"{why} after it was approved"
        if isinstance(rule.hook, CommandHook):
            now = used_variables(rule.hook, env, self._around)
            for name in now.keys() | approved.variables.keys():
                if now.get(name) != approved.variables.get(name):
                    return f"${name} has another value than when it was approved"
        return None

    def _reviewed(
        self,
        rule: Rule,
        status: Status,
        why: str | None,
        found: Fingerprint,
        approval: Approval | None = None,
    ) -> ReviewedHook:
        rule = replace(rule, pending=why, rejected=status == "rejected", files=found.files)
        return ReviewedHook(rule, _name(rule), status, why, found, approval)

    def _note_digests(self, rules: Iterable[Rule]) -> None:
        """Remember which definitions there are: one that is still there has not been changed into another."""
        for rule in () if self.accept else rules:
            if owner := owner_of(rule):
                self._digests[owner].add(self._digest_of(rule, owner))

    def _digest_of(self, rule: Rule, owner: str) -> str:
        """Return the digest of a definition. It is asked for twice: for the status, and to know what is still there."""
        if id(rule) not in self._digest_by_rule:
            digest = text_digest(definition_of(rule, self._levels[owner]))
            self._digest_by_rule[id(rule)] = (rule, digest)
        return self._digest_by_rule[id(rule)][1]

    def _without_unapproved_env(self, layers: Sequence[Layer]) -> list[Layer]:
        """Leave out the project's `env` until it is approved: it would reach the hooks of the user too."""
        env = self.env_of("project")
        if self.accept or not env or self.approvals("project").has_env(env):
            return list(layers)
        return [
            replace(layer, env={}) if layer.env and _owner_of_level(layer.level) == "project" else layer
            for layer in layers
        ]


def owner_of(rule: Rule) -> Literal["project", "user"] | None:
    """Return who has to approve a hook; None for hooks in Python, of `--settings` and of an administrator."""
    if rule.source == "python":
        return None
    return _owner_of_level(rule.level or rule.source)


def _owner_of_level(level: str) -> Literal["project", "user"] | None:
    if level == "user":
        return "user"
    return None if level in (COMMAND_LINE, MANAGED) else "project"


def _level_settings(owner: str, layers: Iterable[Layer]) -> LevelSettings:
    """Return what the files of an owner say about all hooks; the user's options may change without a review."""
    own = [layer for layer in layers if _owner_of_level(layer.level) == owner]
    env = {name: value for layer in own for name, value in layer.env.items()}
    options: dict[str, Any] = {}
    for layer in own if owner == "project" else ():
        for name in GUARDED & layer.scalars.keys():
            value = layer.scalars[name]
            options[name] = {**options.get(name, {}), **value} if isinstance(value, Mapping) else value
    return LevelSettings(env, options)


def place_of(rule: Rule) -> str:
    """Return where a hook is configured: the same place with another definition is the same hook, changed."""
    return f"{rule.file}:{rule.event}:{rule.agent_type or ''}:{rule.hook.id or rule.index}"


def _name(rule: Rule) -> str:
    return rule.hook.id or f"{rule.event}{rule.index or ''}"


@dataclass
class Review:
    """All hooks of a project and of the user with their status, and what was approved and is no longer there."""

    settings: Settings
    hooks: tuple[ReviewedHook, ...]
    vanished: tuple[Approval, ...]
    reviewer: Reviewer

    @property
    def pending(self) -> tuple[ReviewedHook, ...]:
        return tuple(hook for hook in self.hooks if hook.status in ("new", "changed"))

    def approve(self, hooks: Iterable[ReviewedHook]) -> None:
        """Approve hooks as they were reviewed, and the `env` of the project's settings. Raises UsageError."""
        hooks = tuple(hooks)
        for owner in ("project", "user"):
            if chosen := _places_and_keys(hooks, owner):
                self.reviewer.approvals(owner).approve(
                    chosen, self.reviewer.env_of(owner), self.reviewer.digests_of(owner)
                )

    def reject(self, hooks: Iterable[ReviewedHook]) -> None:
        """Withdraw the approval of hooks; they are no longer pending, and do not run. Raises UsageError."""
        hooks = tuple(hooks)
        for owner in ("project", "user"):
            if chosen := _places_and_keys(hooks, owner):
                self.reviewer.approvals(owner).reject(chosen, self.reviewer.digests_of(owner))

    def forget(self, approvals: Iterable[Approval]) -> None:
        """Remove approvals of hooks that have vanished. Raises UsageError."""
        digests = {approval.fingerprint.digest for approval in approvals}
        for owner in ("project", "user"):
            stored = self.reviewer.approvals(owner)
            if known := digests.intersection(digest for digest, _ in stored.all()):
                stored.forget(known)


def _places_and_keys(hooks: Iterable[ReviewedHook], owner: str) -> list[tuple[str, str, Fingerprint]]:
    return [
        (place_of(hook.rule), hook.key, hook.fingerprint) for hook in hooks if owner_of(hook.rule) == owner
    ]


def review_project(
    project: str,
    *,
    dialect: str = "turngate",
    plugin_dirs: Sequence[str] = (),
    extra: str | None = None,
    home: str | None = None,
    state: str | None = None,
    agent_hooks: Iterable[Rule] = (),
) -> Review:
    """Return the hooks of a project and of the user as they are now. `agent_hooks` are those of agent files."""
    environ = {name: value for name, value in os.environ.items() if name != TRUST_VARIABLE}
    reviewer = Reviewer(project, home=home, state=state, environ=environ, complete=True)
    settings = read_settings(
        project,
        dialect=dialect,
        home=home,
        plugin_dirs=plugin_dirs,
        extra=extra,
        review=reviewer.review_layers,
    )
    settings = settings.with_rules(*reviewer.review_rules(agent_hooks), problems=reviewer.problems)
    hooks = with_unique_keys([reviewer.review(rule) for rule in settings.rules])
    return Review(settings, hooks, reviewer.vanished(dialect), reviewer)


def with_unique_keys(hooks: Sequence[ReviewedHook]) -> tuple[ReviewedHook, ...]:
    keys = unique_keys([hook.rule for hook in hooks])
    return tuple(hook._replace(key=key) for hook, key in zip(hooks, keys, strict=True))


def unique_keys(rules: Iterable[Rule]) -> list[str]:
    """Give a hook its id as key, or its event and its number there; the second of the same id gets a number too."""
    numbers: dict[str, int] = {}
    used: dict[str, int] = {}
    keys = []
    for rule in rules:
        numbers[rule.event] = numbers.get(rule.event, 0) + 1
        key = rule.hook.id or f"{rule.event}:{numbers[rule.event]}"
        used[key] = used.get(key, 0) + 1
        keys.append(key if used[key] == 1 else f"{key}:{used[key]}")
    return keys
