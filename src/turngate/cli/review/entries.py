"""The hooks of a project with all that is known of them: place, trust, earlier runs; as lines and as JSON."""

import contextlib
import os
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.cli.console.conversation_text import counted, flat, format_time, outcome_label
from turngate.cli.console.ui import TextStyle
from turngate.core.constants import COMMAND_LINE, DOCUMENTATION
from turngate.core.hooks.kinds import KINDS, hook_text
from turngate.core.hooks.selection import switched_off_by
from turngate.core.settings import Rule, Settings
from turngate.core.text import one_line
from turngate.core.verdict.json_output import recorded_gate
from turngate.history.journals import journal_folders, journal_stamp, read_journal
from turngate.hosts.install.json_text import Node, NotJson, read_json_text
from turngate.project.files import LOCAL, Files
from turngate.settings.parse import MAX_FILE_BYTES
from turngate.settings.paths import read_text
from turngate.trust.approvals import Approval
from turngate.trust.review import Review, ReviewedHook

# What the journals know of them: their last runs and how long they take


MAX_READ_BYTES = 16 * 1024 * 1024  # of all journals, the newest first
MAX_LAST_RUNS = 5  # of one hook, that are kept
_TEXT_KEYS = tuple(dict.fromkeys(("name", *(kind.body for kind in KINDS.values()))))

HookName = tuple[str, str | None, str]  # event, file, and the id or else the text


@frozen
class PastRun:
    time: float
    session_id: str
    outcome: str
    reason: str | None
    seconds: float


@dataclass
class History:
    """The runs of one hook. Those that were skipped or interrupted count neither for `count` nor for the mean."""

    last: list[PastRun]  # the newest first
    passed: float | None = None  # when it last did
    count: int = 0
    seconds: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.seconds / self.count if self.count else None

    def add(self, run: PastRun) -> None:
        self.last = sorted((*self.last, run), key=lambda each: each.time, reverse=True)[:MAX_LAST_RUNS]
        if run.outcome == "allow":
            self.passed = max(self.passed or 0.0, run.time)
        if run.outcome not in ("skipped", "interrupted"):
            self.count += 1
            self.seconds += run.seconds


class Histories:
    """The histories of all hooks that have run in a project."""

    def __init__(self, project: str, state: str) -> None:
        self._by_name: dict[tuple[HookName, bool], History] = {}
        # The last block in one, and what is known of it.
        self.unknown_program: tuple[float, str] | None = None
        for record in _records(project, state):
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):  # a damaged line
                if record["kind"] == "notice":
                    unknown = float(record["time"]), str(record["unknown_program"])
                    self.unknown_program = max(self.unknown_program or unknown, unknown)
                    continue
                key = _name_of_record(record), record["kind"] == "background"
                reason = record.get("reason")
                run = PastRun(
                    float(record["time"]),
                    str(record["session_id"]),
                    str(record["outcome"]),
                    reason if isinstance(reason, str) else None,
                    float(record["seconds"]),
                )
                self._by_name.setdefault(key, History([])).add(run)

    def of(self, rule: Rule) -> History:
        """Return the history of a hook; that of one in the background has the ends of its runs, not their starts."""
        hook = rule.hook
        name = (rule.event, rule.file, hook.id or hook_text(hook))
        return self._by_name.get((name, hook.detached), History([]))


def _name_of_record(record: Mapping[str, Any]) -> HookName:
    hook = record["hook"]
    is_gate = hook.get("type") == "gate"
    texts = (hook[key] for key in _TEXT_KEYS if hook.get(key))
    text = recorded_gate(hook) if is_gate else " ".join((*texts, *hook.get("args", ())))
    return record["event"], record.get("file"), hook.get("id") or text


# The journals


def _records(project: str, state: str) -> Iterator[Mapping[str, Any]]:
    """Yield the runs of hooks in a project, and the notices about it, the newest journal first, until enough was read."""
    stamps, left = dict[str, tuple[float, int]](), MAX_READ_BYTES
    with contextlib.suppress(OSError):  # no state folder that can be used
        stamps = {folder: journal_stamp(folder) for folder in journal_folders(state, every=True)}
    for folder, (_, size) in sorted(stamps.items(), key=lambda each: each[1], reverse=True):
        if left > 0:
            left -= size
            records = read_journal(folder, project=project).records
            yield from (each for each in records if each.get("kind") in ("hook", "background", "notice"))


# The hooks

MAX_TEXT_CHARS = 200  # of a command or prompt in the list
NO_HOOKS = (
    "no hooks are configured; `turngate init` writes gates for the checks of this project, "
    f"and {DOCUMENTATION}/tutorial/first-hook.md shows how to write a hook"
)
PENDING = ("new", "changed")  # statuses that wait for a decision

Line = tuple[str, TextStyle]


@frozen
class HookEntry:
    """One hook, and what other places know of it."""

    hook: ReviewedHook
    line: int | None  # in its file
    history: History

    @property
    def rule(self) -> Rule:
        return self.hook.rule

    @property
    def key(self) -> str:
        return self.hook.key

    @property
    def is_pending(self) -> bool:
        return self.hook.status in PENDING

    @property
    def place(self) -> str:
        """The file and the line: `.turngate/settings.json:5`."""
        file = make_visible(self.rule.file or self.rule.source)
        return file if self.line is None else f"{file}:{self.line}"


def read_entries(review: Review, project: str, state: str, files: Files) -> list[HookEntry]:
    """Return all hooks with their lines and last runs."""
    lines, given, histories = HookLines(files), HookLines(LOCAL), Histories(files.machine + project, state)

    def line_of(rule: Rule) -> int | None:
        """The file of `--settings` is on this machine."""
        if rule.source != COMMAND_LINE:
            return lines.line_of(rule, os.path.join(project, files.expand_home(rule.file or "")))
        return given.line_of(rule, os.path.abspath(rule.file or ""))

    return [HookEntry(hook, line_of(hook.rule), histories.of(hook.rule)) for hook in review.hooks]


_INDEX = re.compile(r"\[(\d+)\]\.hooks\[(\d+)\]")
_Place = tuple[str | int, ...]  # keys and positions: ("Stop", 0, "hooks", 1)


class HookLines:
    """Finds the lines of hooks in their files, and reads each file once."""

    def __init__(self, files: Files) -> None:
        self._machine_files = files
        self._files: dict[str, tuple[str, dict[_Place, int]]] = {}

    def line_of(self, rule: Rule, path: str) -> int | None:
        """Return the line of a hook in the file at this path; None: it is not found, or the file is the hook."""
        index = _INDEX.fullmatch(rule.index or "")
        if index is None:
            return None
        if path not in self._files:
            text = read_text(path, self._machine_files, MAX_FILE_BYTES).removeprefix("\ufeff")
            self._files[path] = text, _positions(text) if path.endswith(".json") else {}
        text, positions = self._files[path]
        if path.endswith(".json"):
            start = positions.get((rule.event, int(index[1]), "hooks", int(index[2])))
        else:
            start = text.find((hook_text(rule.hook).splitlines() or ["\0"])[0])
        return None if start in (None, -1) else text.count("\n", 0, start) + 1


def _positions(text: str) -> dict[_Place, int]:
    """Return where each value begins, by the innermost part of its place: a plugin's hooks are at several depths."""
    try:
        root = read_json_text(text)
    except NotJson:
        return {}
    nodes: list[tuple[_Place, Node]] = [((), root)] if root else []
    for place, node in nodes:
        for number, item in enumerate(node.items):
            nodes.append(((*place, number if item.key is None else item.key)[-4:], item.node))
    # Of equal keys the last counts, as for `json`.
    return {place: node.start for place, node in reversed(nodes)}


# Lines


def format_entries(entries: Sequence[HookEntry], review: Review) -> Iterator[Line]:
    """Format all hooks, event by event, then those that have vanished, then the total."""
    for event in dict.fromkeys(entry.rule.event for entry in entries):
        yield event, "user"
        for entry in entries:
            if entry.rule.event == event:
                yield from format_entry(entry, review.settings)
    for approval in vanished_hooks(review):
        yield from format_vanished(approval)
    problems = _problems(review)
    pending, hooks = sum(entry.is_pending for entry in entries), counted(len(entries), "hook")
    if pending:
        yield f"{hooks}, {pending} pending: `turngate hooks diff` shows what a person has to approve", "alert"
    elif entries or not problems:
        yield f"{hooks}, none pending" if entries else NO_HOOKS, "plain"
    for problem in problems:
        yield f"! {problem}", "alert"


def _problems(review: Review) -> list[str]:
    """Return why hooks were not loaded, and why a file of approvals does not count."""
    return [flat(str(problem)) for problem in (*review.settings.not_loaded, *review.reviewer.problems)]


def format_entry(entry: HookEntry, settings: Settings) -> Iterator[Line]:
    yield f"  {shown_key(entry.key)}: {format_trust(entry.hook)}", trust_style(entry.hook)
    yield f"    {format_text(entry.rule)}", "plain"
    yield f"    {entry.place}, {', '.join(_facts(entry.rule, settings))}", "dim"
    history, past = entry.history, "never run"
    if history.last:
        mean = (
            "" if history.mean is None else f"; mean {history.mean:.2f} s of {counted(history.count, 'run')}"
        )
        past = f"last run {format_past_run(history.last[0])}{mean}"
    yield f"    {past}", "dim"
    yield from ((f"    {text}", style) for text, style in format_not_covered(entry.hook))
    if entry.is_pending or entry.hook.status == "rejected":
        yield f"    → {what_to_do(entry.key)}", "notice"


def format_not_covered(hook: ReviewedHook) -> Iterator[Line]:
    """Format what the command may run although an approval does not cover it."""
    for text in hook.command_files.not_covered:
        yield f"not covered: {one_line(make_visible(text), MAX_TEXT_CHARS)}", "dim"


def format_text(rule: Rule) -> str:
    """Return the kind and the text of a hook on one line."""
    return f"{rule.hook.kind}: {one_line(make_visible(hook_text(rule.hook)), MAX_TEXT_CHARS)}"


def format_trust(hook: ReviewedHook) -> str:
    match hook.status:
        case "approved":
            return "approved"
        case "exempt":
            return "needs no approval"
        case "rejected":
            return "rejected, so it does not run"
        case _:
            return f"PENDING, so it does not run: {make_visible(hook.why or '')}"


def trust_style(hook: ReviewedHook) -> TextStyle:
    return "alert" if hook.status in PENDING else "notice" if hook.status == "rejected" else "plain"


def what_to_do(key: str) -> str:
    word = shlex.quote(key)
    return f"`turngate hooks diff {word}` shows it, `turngate hooks approve {word}` lets it run"


def shown_key(key: str) -> str:
    return one_line(make_visible(key))


def _facts(rule: Rule, settings: Settings) -> Iterator[str]:
    yield f"dialect {settings.dialect.name}"
    yield f"timeout {settings.timeout_of(rule):g} s"
    if rule.matcher:
        yield f"matcher {one_line(make_visible(rule.matcher), MAX_TEXT_CHARS)}"
    if rule.agent_type:
        yield f"agent type {make_visible(rule.agent_type)}"
    if settings.mode_of(rule) == "observe":
        yield "observes only"
    if not rule.hook.enabled:
        yield "switched off"
    elif switch := switched_off_by(rule, settings):
        yield f"switched off by {switch}"


def format_past_run(run: PastRun) -> str:
    return f"{format_time(run.time)}: {outcome_label(run.outcome, blocking=True)} ({run.seconds:.2f} s)"


def vanished_hooks(review: Review) -> list[Approval]:
    """Return the last approval of each hook that is no longer there."""
    oldest_first = sorted(review.vanished, key=lambda each: each.time)
    return list({approval.key: approval for approval in oldest_first}.values())


def format_vanished(approval: Approval) -> Iterator[Line]:
    key = shown_key(approval.key)
    when = format_time(approval.time)
    yield f"{key}: GONE; it was approved on {when} and is not in the settings that are read here", "alert"
    yield f"  → if that is right, `turngate hooks reject {shlex.quote(approval.key)}` forgets it", "notice"


# JSON


def entries_json(entries: Sequence[HookEntry], review: Review, location: str) -> dict[str, Any]:
    return {
        "project": location,
        "dialect": review.settings.dialect.name,
        "hooks": [entry_json(entry, review.settings) for entry in entries],
        "vanished": [{"key": approval.key, "approved": approval.time} for approval in vanished_hooks(review)],
        "problems": _problems(review),
    }


def entry_json(entry: HookEntry, settings: Settings) -> dict[str, Any]:
    hook, rule, history = entry.hook, entry.rule, entry.history
    last = history.last[0] if history.last else None
    return {
        "key": hook.key,
        "event": rule.event,
        "matcher": rule.matcher,
        "agent_type": rule.agent_type,
        "type": rule.hook.kind,
        "text": hook_text(rule.hook),
        "source": rule.source,
        "file": rule.file,
        "line": entry.line,
        "dialect": settings.dialect.name,
        "timeout": settings.timeout_of(rule),
        "mode": settings.mode_of(rule),
        "enabled": rule.hook.enabled and not switched_off_by(rule, settings),
        "trust": hook.status,
        "pending": hook.why,
        "approved": hook.approval.time if hook.approval else None,
        "not_covered": list(hook.command_files.not_covered),
        "last_run": last.time if last else None,
        "last_result": last.outcome if last else None,
        "mean_seconds": None if history.mean is None else round(history.mean, 4),
        "runs": history.count,
    }


# Characters that hide in a text under review: invisible ones, and those that look like ASCII


# A selection of letters of other alphabets that most fonts draw as letters of ASCII.
_LETTERS = frozenset(
    "асеорхуіјѕһԁԛԝьӏАВЕКМНОРСТУХІЈЅԌԚԜӀ"  # Cyrillic
    "αοενικρτυχγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ"  # Greek
    "օսոհցԁյզԱՍՕ"  # Armenian
    "ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ"  # Cherokee
    "ıɑɡɩʏʟɴʜǀǃꓲꓰꓐꓚꓓꓝꓖꓧꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ"
)
_PUNCTUATION = frozenset("‐‑‒–−‘’‚‛“”„‟′″ʹʺʼˈ⁄∕╱⧸․‥∶ːꓸꓹꓺ˗⁎∗⸴︰﹨⧵∖❘￨∣⟨⟩❬❭‹›")
_CLEAR = frozenset("…™")  # equivalent to ASCII, but drawn differently
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # drawn as nothing, or as a blank
_INVISIBLE_MARKS = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_WORD = re.compile(r"\w+")


def make_visible(text: str) -> str:
    """Return a text whose invisible and look-alike characters are written as `<U+202E>`; newline and tab stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    marked = _WORD.sub(_mark_word, text)
    return "".join(_name(char) if _is_hidden(char) else char for char in marked)


def _mark_word(match: re.Match[str]) -> str:
    """Mark look-alikes in a word that could be read as ASCII; in a word of its own alphabet, they are what they seem."""
    word = match[0]
    others = [char for char in word if not char.isascii()]
    if not all(char in _LETTERS or unicodedata.normalize("NFKC", char).isascii() for char in others):
        return word
    return "".join(char if char.isascii() else _name(char) for char in word)


def _is_hidden(char: str) -> bool:
    if char.isascii():
        return not char.isprintable() and char not in "\n\t"
    if char in _PUNCTUATION or char in _BLANK_LETTERS or _INVISIBLE_MARKS.match(char):
        return True
    if not char.isprintable():  # control, format, private and unassigned characters, surrogates, blanks
        return True
    return unicodedata.normalize("NFKC", char).isascii() and not (char.isalnum() or char in _CLEAR)


def _name(char: str) -> str:
    return f"<U+{ord(char):04X}>"
