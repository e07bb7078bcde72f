"""Decides for each hook whether it will run and, if it is a gate, whether it will hold; and why not. Reads the reviewed settings
for it, and the state of Turngate itself."""

import contextlib
import os
import platform
import sqlite3
import tempfile
import time
import urllib.parse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Literal, NamedTuple, Unpack, get_args, get_type_hints

from turngate._frozen_dataclass import frozen
from turngate.check.misplaced_files import find_misplaced_files
from turngate.core.answers.report_types import Skipped
from turngate.core.constants import EVENTS, OBSERVED_EVENTS
from turngate.core.conversation.tools import TOOL_NAMES, tool_names
from turngate.core.events.events import PreCompact, SessionEnd, SessionStart
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import identity
from turngate.core.hooks.matcher import InvalidMatcher, NameMatcher, read_matcher
from turngate.core.hooks.selection import plan, switched_off_by, without_duplicates
from turngate.core.settings import Problem, Rule, Settings, Severity
from turngate.core.text import describe_name, one_line
from turngate.core.verdict.verdict import honors_blocking, honors_on_failure
from turngate.models.providers import PROVIDERS
from turngate.project.files import LOCAL
from turngate.settings.agent_types import check_agent_files, hooks_of_agents
from turngate.settings.key_table import closest_name
from turngate.settings.load import Sources, load_layers
from turngate.settings.plugin_folders import display_name
from turngate.settings.problem_log import did_you_mean
from turngate.state.files import open_regular_file
from turngate.state.paths import OTHER_STATE_FOLDER, REGISTRY_FILE, REGISTRY_URL
from turngate.trust.review import ReviewedHook, Reviewer, accepts_all, gone_rule, with_unique_keys

MCP_PREFIX = "mcp__"  # tools of MCP servers, which no list names
_MAX_LISTED = 15

# What only Claude Code has: a hook for it is not a mistake, and never runs here.
_OF_CLAUDE_CODE = {
    "tool_name": frozenset(
        "AskUserQuestion EnterPlanMode ExitPlanMode LS LSP MultiEdit NotebookEdit NotebookRead Skill "
        "SlashCommand TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate ToolSearch WebFetch "
        "WebSearch".split()
    ),
    "reason": frozenset({"logout", "resume", "bypass_permissions_disabled"}),
}
_NOUNS = {
    "tool_name": "tool",
    "agent_type": "agent type",
    "source": "source of a session",
    "trigger": "trigger of a compaction",
    "reason": "reason of a session's end",
}
_VALUES = {
    field: get_args(get_type_hints(event)[field])
    for event, field in ((SessionStart, "source"), (PreCompact, "trigger"), (SessionEnd, "reason"))
}


def known_subjects(event: str, agent_types: Iterable[str]) -> tuple[str, ...]:
    """Return everything that a matcher of this event can be compared with; () for an event without a subject."""
    match EVENTS[event]:
        case None:
            return ()
        case "tool_name":
            return tuple(dict.fromkeys(name for tool in TOOL_NAMES for name in tool_names(tool)))
        case "agent_type":
            return tuple(agent_types)
        case field:
            return _VALUES[field]


def never_matches(rule: Rule, agent_types: Iterable[str]) -> tuple[str, str | None, bool] | None:
    """Return why a matcher matches nothing, what to do, and whether that may be meant; None if it can match."""
    field = EVENTS[rule.event]
    if field is None or rule.matcher in (None, "", "*"):
        return None
    matcher = read_matcher(rule.matcher or "")
    known = known_subjects(rule.event, agent_types)
    if isinstance(matcher, InvalidMatcher) or any(map(matcher.matches, known)):
        return None  # an invalid one is reported where the settings are parsed
    if MCP_PREFIX in (rule.matcher or ""):
        return None
    shown = describe_name(repr(rule.matcher))
    if any(map(matcher.matches, _OF_CLAUDE_CODE.get(field, ()))):
        return f"its matcher {shown} matches only a {_NOUNS[field]} of Claude Code", None, True
    article = "an" if field == "agent_type" else "a"
    message = f"its matcher {shown} never matches: it is not {article} {_NOUNS[field]} of Turngate"
    names = matcher.names if isinstance(matcher, NameMatcher) else ()
    close = (did_you_mean(closest_name(name, known, 0.6)) for name in names)
    listed = ", ".join(sorted(known)[:_MAX_LISTED]) + (" …" if len(known) > _MAX_LISTED else "")
    return message, next(filter(None, close), f"known: {listed}"), False


Outlook = Literal["will run", "will run, but", "will NOT hold", "will NOT run"]
_ORDER = ("will NOT run", "will NOT hold", "will run, but", "will run", "error", "warning", "note")
# A warning about one of these means that a gate does not decide what was meant.
_FIELDS_OF_A_GATE = frozenset({"command", "mode", "blocking", "onFailure"})
MAX_REASON_CHARS = 200


class Finding(NamedTuple):
    """One thing to know about a hook. A note does not count as a problem."""

    outlook: Outlook
    severity: Severity
    message: str
    hint: str | None = None


class LastRun(NamedTuple):
    time: float
    outcome: str
    reason: str | None
    seconds: float = 0.0


@frozen
class HookFacts:
    """A hook, and what is known about it besides its definition."""

    rule: Rule
    key: str  # for `turngate hooks`
    trust: str  # approved, new, changed, rejected, exempt or gone
    how_to_approve: str  # a hint for the case that it is pending
    last_run: LastRun | None = None
    changed: float = 0.0  # when its definition or one of its scripts did


@frozen
class HookDiagnosis:
    facts: HookFacts
    is_gate: bool
    findings: tuple[Finding, ...]  # the worst first
    subject: str | None = None  # for which it runs: a tool, an agent type …

    @property
    def rule(self) -> Rule:
        return self.facts.rule

    @property
    def outlook(self) -> Outlook:
        return self.findings[0].outlook if self.findings else "will run"

    @property
    def has_problem(self) -> bool:
        return any(finding.severity != "note" for finding in self.findings)

    @property
    def fails_to_hold(self) -> bool:
        """Whether it is a gate that should hold and will not."""
        return self.is_gate and any(
            finding.severity != "note" and finding.outlook in ("will NOT run", "will NOT hold")
            for finding in self.findings
        )


@frozen
class Diagnosis:
    hooks: tuple[HookDiagnosis, ...]
    problems: tuple[Problem, ...]  # that belong to none of these hooks


def diagnose(
    hooks: Sequence[HookFacts],
    settings: Settings,
    problems: Sequence[Problem],
    *,
    project: str,
    agent_types: Iterable[str],
) -> Diagnosis:
    """Return a diagnosis of each hook. `problems` are those of `find_problems`."""
    names = tuple(agent_types)
    definitions = _definitions_in_use(settings)
    by_place: dict[tuple[str, str | None], list[Problem]] = {}
    for problem in problems:
        by_place.setdefault((problem.file, problem.event), []).append(problem)
    found: list[HookDiagnosis] = []
    claimed: set[int] = set()
    for facts in hooks:
        place = (facts.rule.file or "Python", facts.rule.event)
        index = f"{facts.rule.index}."  # a problem is one of this hook, or of its group
        own = [each for each in by_place.get(place, ()) if index.startswith(f"{each.index}.")]
        claimed.update(map(id, own))
        found.append(_diagnose_hook(facts, settings, own, definitions, project, names))
    return Diagnosis(tuple(found), tuple(problem for problem in problems if id(problem) not in claimed))


def _diagnose_hook(
    facts: HookFacts,
    settings: Settings,
    problems: Sequence[Problem],
    definitions: Mapping[object, tuple[Rule, ...]],
    project: str,
    agent_types: tuple[str, ...],
) -> HookDiagnosis:
    rule, gate = facts.rule, is_gate(facts.rule, settings)
    matcher = read_matcher("" if rule.matcher in (None, "*") else rule.matcher)
    subject = next(filter(matcher.matches, known_subjects(rule.event, agent_types)), None)
    has_error = any(problem.severity == "error" for problem in problems)
    why_skipped = None if has_error else _why_skipped(rule, settings, project, subject)
    findings = (
        *_why_not_run(facts, settings, agent_types, why_skipped),
        *_duplicate(rule, definitions, settings),
        *(finding_of(problem, is_gate=gate) for problem in problems),
        *_of_last_run(facts, settings),
    )
    return HookDiagnosis(facts, gate, worst_first(findings), subject)


def is_gate(rule: Rule, settings: Settings) -> bool:
    is_enforced = rule.event not in OBSERVED_EVENTS and settings.mode_of(rule) == "gate"
    return is_enforced and rule.hook.enabled and not rule.hook.detached


def position(rule: Rule) -> str:
    """Return where in its file a hook is: `Stop[0].hooks[1]`."""
    return f"{rule.event}{rule.index or ''}"


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sort the findings. Two sources can report the same thing."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: [*map(_ORDER.index, each[:2])]))


# Problems of the settings


_OUTLOOKS: dict[Severity, Outlook] = {"error": "will NOT run", "warning": "will run, but", "note": "will run"}


def finding_of(problem: Problem, *, is_gate: bool) -> Finding:
    is_named = problem.field in (None, "command")
    message = problem.message if is_named else f"{problem.field}: {problem.message}"
    outlook = _OUTLOOKS[problem.severity]
    if problem.severity == "warning" and is_gate and problem.field in _FIELDS_OF_A_GATE:
        outlook = "will NOT hold"
    return Finding(outlook, problem.severity, message, problem.hint)


# Hooks that do not run


def _why_not_run(
    facts: HookFacts, settings: Settings, agent_types: tuple[str, ...], why_skipped: str | None
) -> Iterator[Finding]:
    rule = facts.rule
    if not rule.hook.enabled:
        yield Finding("will NOT run", "note", "its own `enabled` switches it off")
        return
    if setting := switched_off_by(rule, settings):
        name, _, file = setting.partition(" in ")
        yield Finding("will NOT run", "error", f"{setting} switches it off", f"remove {name} from {file}")
    if rule.pending:
        severity: Severity = "note" if rule.rejected else "error"
        yield Finding("will NOT run", severity, rule.pending, facts.how_to_approve)
    if found := never_matches(rule, agent_types):
        message, hint, may_be_meant = found
        yield Finding("will NOT run", "note" if may_be_meant else "error", message, hint)
    elif why_skipped:
        yield Finding("will NOT run", "error", why_skipped)


def fired_event(rule: Rule) -> str:
    """Return the event that a hook runs at: `Stop` in the file of an agent type is the stop of a subagent."""
    return "SubagentStop" if rule.agent_type and rule.event == "Stop" else rule.event


def _why_skipped(rule: Rule, settings: Settings, project: str, subject: str | None) -> str | None:
    """Return why the hook is skipped, against the intent of its author, at an event that it is meant for."""
    event = fired_event(rule)
    fields = {"outcome": next(iter(rule.hook.outcomes), "ok"), EVENTS[event] or "": subject or ""}
    if rule.agent_type:
        fields["agent_type"] = rule.agent_type
    ready = replace(rule, event=event, pending=None)
    alone = replace(settings, rules=(ready,), switched_off={}, managed_only=None)
    skipped = (why for _, why in plan(alone, read_event(event, fields, cwd=project)).skip)
    return next((why.why for why in skipped if isinstance(why, Skipped) and not why.on_purpose), None)


# Two definitions of one hook


def _definitions_in_use(settings: Settings) -> dict[object, tuple[Rule, ...]]:
    """Return, for each hook that has several definitions, the one that is used and the others."""
    groups: dict[object, list[Rule]] = {}
    for rule in settings.rules:
        is_candidate = rule.hook.enabled and rule.source != "python" and not rule.pending
        if is_candidate and not switched_off_by(rule, settings):
            groups.setdefault(_key(rule), []).append(rule)
    return {
        key: (*without_duplicates(rules, settings), *rules) for key, rules in groups.items() if len(rules) > 1
    }


def _key(rule: Rule) -> object:
    return rule.event, rule.matcher, rule.agent_type, identity(rule.hook)


def _duplicate(
    rule: Rule, definitions: Mapping[object, tuple[Rule, ...]], settings: Settings
) -> Iterator[Finding]:
    used, *others = definitions.get(_key(rule), (None,))
    if used is None or used is rule or not any(each is rule for each in others):
        return
    where = f"{position(used)} in {used.file}"
    message = f"is defined twice: it runs once, with the options of {where}"
    if is_gate(rule, settings) and not is_gate(used, settings):
        message = f"{message}, where it is not a gate"
        yield Finding("will NOT hold", "warning", message, "remove one of them")
    else:
        yield Finding("will run", "note", message, "remove one of them")


# The last run


def _of_last_run(facts: HookFacts, settings: Settings) -> Iterator[Finding]:
    rule, run = facts.rule, facts.last_run
    if run is None or run.outcome not in ("failed", "timeout") or not rule.hook.enabled:
        return
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.time))
    reason = one_line(run.reason or "no reason is known", MAX_REASON_CHARS)
    failure = reason if run.outcome == "timeout" else f"failed: {reason}"  # a timeout's reason says it itself
    message = f"its last run ({when}) {failure}"
    if facts.changed > run.time:
        hint = f"it has changed since; `turngate fire {rule.event}` runs it again"
        yield Finding("will run", "note", message, hint)
        return
    blocks = honors_blocking(rule, settings.dialect) or honors_on_failure(rule, settings.dialect)
    outlook: Outlook = "will NOT hold" if is_gate(rule, settings) and not blocks else "will run, but"
    explain = f"`turngate hooks test {rule.event}` explains it"
    yield Finding(outlook, "warning", message, "raise its `timeout`" if run.outcome == "timeout" else explain)


# The settings of a project with every hook reviewed, those of agent files as they are written there


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
    known, home = len(settings.rules), os.path.expanduser("~")
    of_files = defaultdict[str | None, list[ReviewedHook]](list)  # those that sessions use, in their order
    for hook in reviewed[known:]:
        of_files[display_name(hook.rule.file or "", project, home)].append(hook)
    used: list[tuple[Rule, ReviewedHook]] = []
    unused: dict[Problem, None] = {}
    for rule in written:
        if hooks := of_files[rule.file]:
            now = hooks[0].rule
            written_so = replace(rule, pending=now.pending, rejected=now.rejected, files=now.files)
            used.append((written_so, hooks.pop(0)))
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


def _gone_hooks(reviewer: Reviewer, settings: Settings) -> Iterator[tuple[Rule, str]]:
    """Yield the project's hooks that were approved and are gone, except those of a file that cannot be read."""
    unread = {problem.file for problem in settings.errors}
    for approval in reviewer.vanished("project"):
        rule = gone_rule(approval)
        if rule.file not in unread:
            yield rule, approval.key


# Turngate itself: its version, its state folder, the registry, the keys of models


_BUSY_TIMEOUT_S = 5.0


class Fact(NamedTuple):
    """One line about Turngate; `is_problem`: it does not work as it is."""

    name: str
    text: str
    is_problem: bool = False
    hint: str | None = None


def inspect_turngate(state: str, environ: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return what is known about this installation. `environ` is where models find their keys."""
    return (
        Fact("turngate", f"{version('turngate')}, Python {platform.python_version()}"),
        _state_folder(state),
        _registry(os.path.join(state, REGISTRY_FILE), environ),
        _model_keys(environ),
    )


def _state_folder(state: str) -> Fact:
    name, folder = "state folder", state
    while not os.path.lexists(folder):  # it can be made
        folder = os.path.dirname(folder)
    try:
        with tempfile.NamedTemporaryFile(prefix=".turngate-", dir=folder):
            is_there = folder == state
    except OSError as error:
        why = f"cannot be written ({error.strerror}): there is no journal, and nothing can be approved"
        return Fact(name, f"{state} {why}", is_problem=True, hint=f"repair it, {OTHER_STATE_FOLDER}")
    return Fact(name, f"{state}, {'writable' if is_there else 'not there yet'}")


def _registry(path: str, environ: Mapping[str, str]) -> Fact:
    name = "registry"
    if environ.get(REGISTRY_URL):
        return Fact(name, f"in the database of {REGISTRY_URL}; `turngate runs` tries it")
    if not os.path.lexists(path):
        return Fact(name, "not there yet: no subagent has been started")
    try:
        # Another process may use it: SQLite never opens the file twice in one process.
        os.close(open_regular_file(path, os.O_RDWR))
        uri = f"file:{urllib.parse.quote(path)}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S)) as db:
            runs = int(db.execute("SELECT count(*) FROM runs").fetchone()[0])
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or error
        text = f"{path} cannot be used ({why}): no subagent can be started"
        return Fact(name, text, is_problem=True, hint=f"move it away, {OTHER_STATE_FOLDER}")
    return Fact(name, f"readable, {runs:,} run{'s' * (runs != 1)} of subagents")


def _model_keys(environ: Mapping[str, str]) -> Fact:
    """Name the variables that hold a key, never their values."""
    variables = dict.fromkeys(name for provider in PROVIDERS.values() for name in provider.key_variables)
    found = [name for name in variables if environ.get(name)]
    if found:
        return Fact("model key", f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} set")
    return Fact("model key", "none is set; `turngate run` and hooks that ask a model need one, or ollama")
