"""Compares the hooks of a project and of the user with what a person has approved."""

import contextlib
import json
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from turngate.core.constants import COMMAND_LINE, FAMILIES, MANAGED
from turngate.core.hooks.kinds import KINDS, CommandHook, GateHook, Hook
from turngate.core.settings import GUARDED, Layer, Problem, Rule, Settings
from turngate.core.verdict.hints import GONE
from turngate.errors import UsageError
from turngate.project.files import Files
from turngate.project.safe_paths import is_inside
from turngate.settings.load import Layers, load_layers, project_path, report_unreachable
from turngate.settings.paths import settings_snapshot
from turngate.state.paths import state_folder
from turngate.trust.approvals import Approval, Approvals
from turngate.trust.command_files import CommandFiles
from turngate.trust.covered_files import NO_FILES, CoveredFiles, FileIds, TooLarge, compare_files, find_change
from turngate.trust.fingerprint import (
    PROJECT,
    Fingerprint,
    LevelSettings,
    Surroundings,
    asks_judge,
    definition_of,
    files_of,
    fingerprint,
    text_digest,
)

Status = Literal["approved", "new", "changed", "rejected", "exempt"]
OWNERS = ("project", "user")
TRUST_VARIABLE = "TURNGATE_TRUST"
NEW = "it is not approved"
NO_COMMAND_FILES = CommandFiles()


class ReviewedHook(NamedTuple):
    """One hook and its status. Only "approved" and "exempt" ones run."""

    rule: Rule
    key: str
    status: Status
    why: str | None  # it does not run
    fingerprint: Fingerprint
    approval: Approval | None = None  # the last version that was approved
    command_files: CommandFiles = NO_COMMAND_FILES  # of a complete review


def accepts_all(trust: bool = False) -> bool:
    """Return whether all hooks run as they are: the caller says so, or the user's environment."""
    return trust or os.environ.get(TRUST_VARIABLE) == "1"


class Reviewer:
    """Reviews the hooks of one project. With `accept`, all of them run as they are now."""

    def __init__(
        self,
        layers: Layers,
        *,
        accept: bool = False,
        complete: bool = False,
        reports_gone: bool = False,
    ) -> None:
        """With `complete`, hooks that do not run have a fingerprint too, so that they can be approved.

        With `reports_gone`, hooks that were approved and are no longer configured are pending rules.
        """
        self.project, self.home, self.dialect = layers.project, layers.home, layers.dialect.name
        self.files = layers.files
        self._complete, self._reports_gone = complete, reports_gone
        self.accept = accept
        self._is_remote = layers.own is not None
        inherited = self.files.environ  # by hooks
        self._covered = CoveredFiles(self.files, self.files.realpath(self.project))
        self._around = {
            owner: Surroundings(self._covered, inherited, of_user=owner == "user") for owner in OWNERS
        }
        self._approvals: dict[str, Approvals] = {}
        if self._is_remote:
            read = layers.layers
            first = (replace(each, rules=tuple(map(without_first_sight, each.rules))) for each in read)
            layers = replace(layers, layers=tuple(first))
        self._layers = layers
        self.levels = {owner: level_settings(owner, layers.layers) for owner in OWNERS}
        self.digests: dict[str, set[str]] = {owner: set() for owner in OWNERS}
        # By the id of a rule, which is kept so that its id stays its own.
        self._content_by_rule: dict[int, tuple[Rule, str]] = {}
        self._first: list[tuple[str, str, Fingerprint]] = []  # hooks of the user that were not seen before
        # The beginnings of the places in files with errors.
        self._with_errors = tuple(
            f"{layer.file}:"
            for layer in layers.layers
            if any(each.severity == "error" for each in layer.problems)
        )
        self._replaced: set[str] = set()  # definitions that were changed into another one

    def review_settings(self) -> Settings:
        """Return the settings with the reason why a hook is pending, and without an `env` that is not approved."""
        layers = self._layers.layers
        self._note_digests(rule for layer in layers for rule in layer.rules)
        reviewed = [
            replace(layer, rules=tuple(self.review(rule).rule for rule in layer.rules)) for layer in layers
        ]
        self._store_first()
        gone = self._gone_rules({None})
        family = FAMILIES[self.dialect][-1]
        reviewed += [Layer(file="", level="project", family=family, rules=gone)] if gone else []
        return replace(self._layers, layers=tuple(self._without_unapproved_env(reviewed))).merge()

    def _gone_rules(self, agent_types: Container[str | None]) -> tuple[Rule, ...]:
        """Return the hooks of the project, or of these agent types, that were approved and are no longer there."""
        if not self._reports_gone or self.accept:
            return ()
        rules = map(gone_rule, self.vanished("project"))
        return tuple(rule for rule in rules if rule.agent_type in agent_types)

    def review_rules(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return more rules of the same settings: the hooks of agent files."""
        rules = tuple(rules)
        self._note_digests(rules)
        reviewed = [self.review(rule).rule for rule in rules]
        self._store_first()
        return (*reviewed, *self._gone_rules({rule.agent_type for rule in rules}))

    def review(self, rule: Rule) -> ReviewedHook:
        """Return the status of one hook. A hook of the user that is new is approved on first sight.

        That of the user's account on another machine is not if it acts on this one, where the user's keys are.
        """
        owner = owner_of(rule)
        if owner is None:
            return self._reviewed(rule, "exempt", None, Fingerprint(definition_of(rule)))
        if self.accept:
            return self._reviewed(rule, "exempt", None, self._fingerprint(rule, owner))
        digest = self._digest_of(rule, owner)
        approval = self.approvals(owner).find(digest)
        if approval:
            reviewed = self._review_approved(rule, owner, approval)
        else:
            reviewed = self._review_unknown(rule, owner, digest)
        if owner == "user" and reviewed.status == "approved":
            return self._review_in_project(reviewed, digest)
        return reviewed

    def _review_approved(self, rule: Rule, owner: str, approval: Approval) -> ReviewedHook:
        """Compare a hook with all versions that were approved."""
        whys = []
        for approved in (approval.fingerprint, *approval.earlier):
            found = self._fingerprint(rule, owner, approved.files)
            whys.append(found.problem or self._find_change(owner, approved, found))
            if whys[-1] is None:
                return self._reviewed(rule, "approved", None, found, approval)
        return self._reviewed(rule, "changed", whys[0], self._fingerprint_of_pending(rule, owner), approval)

    def _find_change(self, owner: str, approved: Fingerprint, found: Fingerprint) -> str | None:
        """A hook of the user runs in all projects, and each of its files is approved where it is."""
        for name in found.variables.keys() | approved.variables.keys():
            if found.variables.get(name) != approved.variables.get(name):
                return f"${name} has another value than when it was approved"
        if owner == "user":
            change = compare_files(approved.files, self._covered)
        else:
            change = find_change(approved.files, found.files, found.named)
        return f"{change} after it was approved" if change else None

    def _review_in_project(self, hook: ReviewedHook, digest: str) -> ReviewedHook:
        """Review what a hook of the user would run of this project: that is not the user's."""
        _, inside = self.divided(hook.fingerprint)
        used = [name for name in inside.files if not name.endswith("/")]
        if not used:
            return hook
        approval = self.approvals("project").find(digest)
        if approval is None:
            why = f"it runs {used[0]} of the project, which is not approved"
            return self._reviewed(hook.rule, "new", why, hook.fingerprint)
        found = self._fingerprint(hook.rule, "user", approval.fingerprint.files)
        change = found.problem or find_change(
            approval.fingerprint.files, self.divided(found)[1].files, found.named
        )
        if change:
            why = f"{change} after it was approved"
            return self._reviewed(hook.rule, "changed", why, hook.fingerprint, approval)
        return self._reviewed(hook.rule, "approved", None, found, approval)

    def divided(self, found: Fingerprint) -> tuple[Fingerprint, Fingerprint]:
        """Return what a fingerprint has outside of the project, and what inside."""
        inside = {name: content for name, content in found.files.items() if not os.path.isabs(name)}
        outside = {name: content for name, content in found.files.items() if name not in inside}
        if is_inside(self.files.realpath(self.home), self._covered.project):
            # What is in the home folder is the user's.
            outside |= {self._covered.path_of(name): content for name, content in inside.items()}
            inside = {}
        return found._replace(files=outside), Fingerprint(found.content, inside)

    def _fingerprint(self, rule: Rule, owner: str, approved: FileIds = NO_FILES) -> Fingerprint:
        return fingerprint(
            rule, self._content_of(rule, owner), self.levels[owner], self._around[owner], approved
        )

    def approvals(self, owner: str) -> Approvals:
        if owner not in self._approvals:
            folder = self.project if owner == "project" else self.home
            of_user = owner == "user"
            self._approvals[owner] = Approvals(folder, state_folder(), of_user=of_user, files=self.files)
        return self._approvals[owner]

    def vanished(self, owner: str) -> tuple[Approval, ...]:
        """Return the approvals of hooks that are no longer in the settings, neither as approved nor changed."""
        approved = tuple(self.approvals(owner).all())
        present = {each.place for each in approved if each.fingerprint.digest in self.digests[owner]}
        return tuple(each for each in approved if each.place not in present and self._is_gone(owner, each))

    def _is_gone(self, owner: str, approval: Approval) -> bool:
        """A hook of a file with an error may not have been loaded; the error is reported."""
        place = approval.place
        unread = {*FAMILIES["turngate"]} - {*FAMILIES[self.dialect]}  # by sessions of this dialect
        folders = (f"{base}.{family}/" for family in unread for base in ("", "~/"))
        if place.startswith((*self._with_errors, *folders)):
            return False
        if owner == "project" and place.startswith("~/"):
            return False  # what a hook of the user runs of the project
        digest = approval.fingerprint.digest
        return digest not in self._replaced and not self.approvals(owner).is_withdrawn(digest)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why a file of approvals does not count."""
        return tuple(
            Problem(file=each.path, message=each.problem.removeprefix(f"{each.path} "), severity="warning")
            for each in self._approvals.values()
            if each.problem
        )

    def _fingerprint_of_pending(self, rule: Rule, owner: str) -> Fingerprint:
        if self._complete:
            return self._fingerprint(rule, owner)
        return Fingerprint(self._content_of(rule, owner))

    def _files_of(self, rule: Rule) -> CommandFiles:
        owner = owner_of(rule)
        with contextlib.suppress(TooLarge):
            if owner:
                return files_of(rule, self.levels[owner], self._around[owner], explains=True)
        return NO_COMMAND_FILES

    def _review_unknown(self, rule: Rule, owner: str, digest: str) -> ReviewedHook:
        """Review a definition without an approval: a new hook, another definition of a known one, or a rejected one."""
        approvals, found = self.approvals(owner), self._fingerprint_of_pending(rule, owner)
        if approvals.is_rejected(digest):
            return self._reviewed(rule, "rejected", "it was rejected", found)
        earlier = approvals.latest_of(place_of(rule))
        if earlier is not None and earlier.fingerprint.digest not in self.digests[owner]:
            return self._review_changed(rule, found, earlier)
        if owner == "user" and not approvals.problem and not (self._is_remote and acts_here(rule.hook)):
            found = self._fingerprint(rule, "user")
            self._first.append((place_of(rule), _name(rule), self.divided(found)[0]))
            return self._reviewed(rule, "approved", None, found)
        return self._reviewed(rule, "new", NEW, found)

    def _review_changed(self, rule: Rule, found: Fingerprint, earlier: Approval) -> ReviewedHook:
        """Review another definition of a hook. What was approved is missed where it would have run: at its event."""
        self._replaced.add(earlier.fingerprint.digest)
        what = describe_change_of_definition(earlier.fingerprint.content, found.content)
        why = f"{what} after it was approved"
        if self._reports_gone:
            gone = gone_rule(earlier, why)
            rule = replace(rule, event=gone.event, matcher=gone.matcher, hook=gone.hook)
        return self._reviewed(rule, "changed", why, found, earlier)

    def _store_first(self) -> None:
        """Store all hooks that were seen for the first time at once."""
        first, self._first = self._first, []
        if first:
            # If it cannot be stored, the next session sees them for the first time again.
            with contextlib.suppress(UsageError):
                self.approvals("user").approve(first, self.levels["user"].env, self.digests["user"])

    def _reviewed(
        self,
        rule: Rule,
        status: Status,
        why: str | None,
        found: Fingerprint,
        approval: Approval | None = None,
    ) -> ReviewedHook:
        why = (found.problem or why) if why else None
        definition = (approval.fingerprint if approval else found).content
        rejected = status == "rejected"
        rule = replace(rule, pending=why, rejected=rejected, files=found.watched, definition=definition)
        files = self._files_of(rule) if self._complete else NO_COMMAND_FILES
        return ReviewedHook(rule, _name(rule), status, why, found, approval, files)

    def _note_digests(self, rules: Iterable[Rule]) -> None:
        """Remember which definitions there are: one that is still there has not been changed into another."""
        for rule in () if self.accept else rules:
            if owner := owner_of(rule):
                self.digests[owner].add(self._digest_of(rule, owner))

    def _digest_of(self, rule: Rule, owner: str) -> str:
        return text_digest(self._content_of(rule, owner))

    def _content_of(self, rule: Rule, owner: str) -> str:
        """Return the definition of a hook. It is asked for its status, and to know what is still there."""
        if id(rule) not in self._content_by_rule:
            content = definition_of(rule, self.levels[owner], self._covered.project)
            self._content_by_rule[id(rule)] = (rule, content)
        return self._content_by_rule[id(rule)][1]

    def _without_unapproved_env(self, layers: Sequence[Layer]) -> list[Layer]:
        """Leave out the project's `env` until it is approved: it would reach the hooks of the user too."""
        env = self.levels["project"].env
        if self.accept or not env or self.approvals("project").has_env(env):
            return list(layers)
        return [
            replace(layer, env={}) if layer.env and owner_of_level(layer.level) == "project" else layer
            for layer in layers
        ]


def _name(rule: Rule) -> str:
    return rule.hook.id or f"{rule.event}{rule.index or ''}"


@dataclass
class Review:
    """All hooks of a project and of the user with their status, and what was approved and is no longer there."""

    settings: Settings
    hooks: tuple[ReviewedHook, ...]
    vanished: tuple[Approval, ...]
    reviewer: Reviewer

    def approve(self, hooks: Iterable[ReviewedHook]) -> None:
        """Approve hooks as they were reviewed, and the `env` of the project's settings. Raises UsageError."""
        hooks = tuple(hooks)
        for owner in OWNERS:
            if not (chosen := _places_and_keys(hooks, owner)):
                continue
            reviewer, present = self.reviewer, self.reviewer.digests[owner]
            if owner == "user":
                divided = [(place, key, *reviewer.divided(found)) for place, key, found in chosen]
                if inside := [(place, key, part) for place, key, _, part in divided if part.files]:
                    reviewer.approvals("project").approve(inside, present=present)
                chosen = [(place, key, part) for place, key, part, _ in divided]
            reviewer.approvals(owner).approve(chosen, reviewer.levels[owner].env, present)

    def reject(self, hooks: Iterable[ReviewedHook]) -> None:
        """Withdraw the approval of hooks; they are no longer pending, and do not run. Raises UsageError."""
        hooks = tuple(hooks)
        for owner in OWNERS:
            if chosen := _places_and_keys(hooks, owner):
                self.reviewer.approvals(owner).reject(chosen, self.reviewer.digests[owner])

    def forget(self, approvals: Iterable[Approval]) -> None:
        """Remove approvals of hooks that have vanished. Raises UsageError."""
        digests = {approval.fingerprint.digest for approval in approvals}
        for owner in OWNERS:
            stored = self.reviewer.approvals(owner)
            if known := digests.intersection(each.fingerprint.digest for each in stored.all()):
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
    files: Files,
) -> Review:
    """Return the hooks of a project, also those of its agent files, and of the user as they are now."""
    from turngate.settings.agent_types import hooks_of_agents  # noqa: PLC0415 # lazy: not for a stop

    project = project_path(project, files)
    agent_hooks = hooks_of_agents(project, dialect, files)
    with report_unreachable(files):
        snapshot = settings_snapshot(files, project)
        layers = load_layers(project, dialect=dialect, plugin_dirs=plugin_dirs, extra=extra, files=snapshot)
        reviewer = Reviewer(layers, complete=True)
        settings = reviewer.review_settings().with_rules(
            *reviewer.review_rules(agent_hooks), problems=reviewer.problems
        )
        hooks = with_unique_keys([reviewer.review(rule) for rule in settings.rules])
        vanished = tuple(approval for owner in OWNERS for approval in reviewer.vanished(owner))
    return Review(settings, hooks, vanished, reviewer)


def with_unique_keys(hooks: Sequence[ReviewedHook]) -> tuple[ReviewedHook, ...]:
    keys = unique_keys([hook.rule for hook in hooks])
    return tuple(hook._replace(key=key) for hook, key in zip(hooks, keys, strict=True))


def without_first_sight(rule: Rule) -> Rule:
    """Return a rule of an administrator of another machine as one that has to be approved, if it acts on this machine."""
    is_managed = owner_of(rule) is None and MANAGED in (rule.level, rule.source)
    return replace(rule, level="user") if is_managed and acts_here(rule.hook) else rule


def acts_here(hook: Hook) -> bool:
    """Return whether a hook acts on this machine wherever the project is: it sends requests, or asks a model."""
    if isinstance(hook, GateHook):
        return hook.gate == "notify" or asks_judge(hook)
    return hook.asks is not None


def gone_rule(approval: Approval, why: str | None = GONE, project: str = ".") -> Rule:
    """Return the rule as it was approved. It does not run: `why` says so. If it runs again, its mode is its own."""
    content = json.loads(approval.fingerprint.content.replace(PROJECT, json.dumps(project)[1:-1]))
    hook = _hook(content, approval.key)
    file = approval.place.partition(f":{content.get('event')}:")[0]
    return Rule(
        content.get("event", ""),
        replace(hook, mode=hook.mode or content.get("settings", {}).get("mode") or "gate") if why else hook,
        content.get("matcher"),
        source="project",
        file=file,
        family=next((each for each in FAMILIES["turngate"] if file.startswith(f".{each}/")), "claude"),
        agent_type=content.get("agent"),
        pending=why,
        definition=approval.fingerprint.content,
    )


def _hook(content: Mapping[str, Any], key: str) -> Hook:
    kind: Any = KINDS.get(content.get("type", ""), CommandHook)
    known = {each.name for each in fields(kind)}
    options = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in content.items()
        if name in known
    }
    try:
        hook: Hook = kind(**options)
    except (TypeError, ValueError):  # of another version
        return CommandHook(key)
    return hook


def describe_change_of_definition(approved: str, now: str) -> str:
    """Return what was changed, as the beginning of a sentence."""
    one, other = json.loads(approved), json.loads(now)
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    match names:
        case ["settings_env"]:
            return "the `env` of the settings was changed"
        case ["settings"]:
            old, new = one.get("settings", {}), other.get("settings", {})
            changed = next(key for key in {**old, **new} if old.get(key) != new.get(key))
            return f"`{changed}` of the settings was changed"
        case _:
            return "its definition was changed"


def owner_of(rule: Rule) -> Literal["project", "user"] | None:
    """Return who has to approve a hook; None for hooks in Python, of `--settings` and of an administrator."""
    if rule.source == "python":
        return None
    return owner_of_level(rule.level or rule.source)


def owner_of_level(level: str) -> Literal["project", "user"] | None:
    if level == "user":
        return "user"
    return None if level in (COMMAND_LINE, MANAGED) else "project"


def level_settings(owner: str, layers: Iterable[Layer]) -> LevelSettings:
    """Return what the files of an owner say about all hooks; the user's options may change without a review."""
    own = [layer for layer in layers if owner_of_level(layer.level) == owner]
    env = {name: value for layer in own for name, value in layer.env.items()}
    options: dict[str, Any] = {}
    for layer in own if owner == "project" else ():
        for name in (GUARDED | {"http_hook_urls"}) & layer.scalars.keys():
            value = layer.scalars[name]
            options[name] = {**options.get(name, {}), **value} if isinstance(value, Mapping) else value
    return LevelSettings(env, options)


def place_of(rule: Rule) -> str:
    """Return where a hook is configured: the same place with another definition is the same hook, changed."""
    return f"{rule.file}:{rule.event}:{rule.agent_type or ''}:{rule.hook.id or rule.index}"


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
