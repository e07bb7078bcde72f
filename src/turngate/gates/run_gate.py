"""Runs one gate: what all gates have in common. Waiting agents, cached results, repeated reasons, failures of our own, the answer."""

import asyncio
import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, assert_never

from turngate.core.constants import AGENT_KEEPS, IN_GATE
from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import CommandHook
from turngate.core.redaction import Redactor
from turngate.core.text import describe_exception, one_line, quote_name
from turngate.core.verdict.decisions import UNCHANGED_RESULT, Advise, Allow, Block, Decision, Fault, Halt
from turngate.gates.conversation import (
    TranscriptUnreadable,
    describe_wait,
    kept_reason,
    last_answer,
    measure_activity,
)
from turngate.gates.gate import WITHOUT_BASELINE, Gate, GateContext, GateInputs
from turngate.gates.local_tree_state import content_of
from turngate.gates.run_commands import FilesUnreadable, ProjectCommands, ProjectUnreachable
from turngate.gates.stored_state import GateState, digest, gate_definition, inputs_state, state_path
from turngate.gates.tree_state import CLOCK_TICK_NS, look_first, tree_before, tree_state
from turngate.ports import HeldPass, HookRunContext, Shell
from turngate.project.checkouts import in_main_checkout
from turngate.project.files import LOCAL
from turngate.state.files import make_private_dir, open_regular_file

NO_ANSWER = (FilesUnreadable, TranscriptUnreadable, ProjectUnreachable)  # the gate could not run
POLL_S = 0.1  # of the lock of a gate
MAX_CHANGED = 5  # files that a notice names
COLUMNS = "120"  # for reports of tools, which otherwise cut their lines at 80 where there is no terminal
MAX_PASSED = 8  # trees of a session that are not checked again
FOR_SAME_GATE = "for the same gate, which another agent checked in this project"
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_STEP_END = re.compile(r"[;&|(\n]+")
_SCRIPT = re.compile(r"\.(?:(?:ba|z)?sh|py|[cm]?[jt]s|rb|pl|php|lua)$")
# Variables of Turngate, and of agent programs, which differ between two sessions.
_OF_SESSION = r"(?:TURNGATE|MUX|CLAUDE|CODEX|GEMINI|QWEN|COPILOT|OPENCODE|KIMI|CURSOR|FACTORY)_"
MAX_WHY_CHARS = 300
INSIST = "If you need the user's answer first, ask again and do nothing else."
KEEP = "If the user asked for this, end your answer with `turngate: keep {}: why`."
KEEP_FAILURES = "If all of this failed before, end your answer with `turngate: keep {}: failed before`."
ASKS = "the agent asks the user"
STILL = "This is the same result as at the last stop, although files have changed since."


def make_context(
    gate: Gate,
    event: StopEvent,
    shell: Shell,
    project: str,
    *,
    options: Mapping[str, Any],
    command: CommandHook | None = None,
    timeout: float | None = None,  # None: no limit
    limit: float | None = None,  # the configured one, of which the gate's own timeout is a part
    state_folder: str | None = None,  # None: nothing is kept
    base: str | None = None,  # see `GateContext.base`
    env: Mapping[str, str] = os.environ,  # of commands
    redactor: Redactor | None = None,  # of its secrets
    live: HookRunContext | None = None,  # of the hook, if the gate is one
    reviewed: Mapping[str, str | None] = MappingProxyType({}),  # `Rule.files`
    environ: Mapping[str, str] = os.environ,
) -> GateContext:
    """Return what one run of a gate is given. The start of a session is one for all checkouts and agents; a subagent may have its own."""
    path, starts = None, list[str]()
    if state_folder is not None:
        agent = event.subagent.id if event.subagent else ""
        definition = gate_definition(gate.name, options, repr(command), project)
        path = state_path(state_folder, event.session_id, agent, definition)
        main = (
            in_main_checkout(os.path.realpath(project), LOCAL)
            if getattr(shell, "is_local", False)
            else project
        )
        of_start = "start " + gate_definition(gate.name, options, repr(command).replace(project, main), main)
        starts = [
            state_path(state_folder, event.session_id, each, of_start) for each in dict.fromkeys((agent, ""))
        ]
    return GateContext(
        project=project,
        name=gate.name,
        event=event,
        commands=ProjectCommands(
            shell,
            project,
            {"COLUMNS": COLUMNS, **env, IN_GATE: "1"},
            timeout,
            redactor,
            limit=limit,
            hook=live,
        ),
        state=GateState(path, starts, project),
        state_folder=state_folder,
        options=options,
        command=command,
        redactor=redactor,
        inputs=_find_inputs(command, shell, project, reviewed) if gate.is_cached else GateInputs(),
        now=time.time(),
        base=base,
        environ=environ,
    )


async def run_gate(gate: Gate, context: GateContext, *, strict: bool = False) -> Decision:
    """Answer for a stop; `strict`: block unless the gate has run and passed, whatever the session has changed. Only cancellation is raised."""
    if strict:
        stricter = dict.fromkeys({"always", "all-failures", "firm"} & {*context.options}, True)
        context.options = {**context.options, **stricter}
    try:
        if not gate.is_observer and (wait := describe_wait(context)):
            return Fault(wait, "waiting", may_block=False)
        if (gate.is_cached or gate.is_hard) and _insists(context):
            return Fault(ASKS, "waiting", may_block=False)
        decision = await _run_or_reuse(gate, context, strict=strict)
    except asyncio.CancelledError:
        raise
    except NO_ANSWER as error:
        decision = _if_strict(gate, Fault(str(error)), strict=strict)
    except Exception as error:  # noqa: BLE001 - a fault of our own must not block an agent forever
        return Fault(f"internal error: {describe_exception(error)}", may_block=False)
    notes = [decision.reason if isinstance(decision, Allow) and not decision.quiet else None, decision.notice]
    if note := "; ".join(filter(None, notes)):
        decision = replace(decision, notice=f"gate {quote_name(gate.name)}: {note}")
    return replace(decision, reason=None) if isinstance(decision, Allow) and not decision.quiet else decision


def _find_inputs(
    command: CommandHook | None, shell: Shell, project: str, reviewed: Mapping[str, str | None]
) -> GateInputs:
    """Return what the definition of a gate names: files that a person has approved, and scripts and variables of its command."""
    text = " ".join((command.command, *(command.args or ()))) if command else ""
    variables = tuple(sorted(set(_VARIABLE.findall(text))))
    scripts = tuple(_scripts(text, project)) if getattr(shell, "is_local", False) else ()
    state = inputs_state(project, scripts, variables)
    return GateInputs(
        state and digest(f"{state} {sorted(reviewed.items())}"), (*reviewed, *scripts), variables
    )


def _scripts(command: str, project: str) -> Iterator[str]:
    """Yield the files that a command starts, roughly. Those that a person has reviewed are known better."""
    for step in _STEP_END.split(command):
        for place, word in enumerate(step.split()):
            path = os.path.join(project, os.path.expanduser(os.path.expandvars(word.strip("'\""))))
            if (place == 0 or _SCRIPT.search(path)) and os.path.isfile(path):
                yield path


def held_pass(context: GateContext, decision: Decision) -> HeldPass | None:
    """Return that for which the gate passes again, or None if it depends on more."""
    state, inputs = context.state, context.inputs
    if not (state.holds and state.tree and isinstance(decision, Allow)):
        return None
    return state.tree.partition(" ")[0], inputs.files, inputs.variables


def answer_json(name: str, decision: Decision, *, for_turngate: bool = False) -> dict[str, Any]:
    """Return what a hook prints with this decision of a gate. `for_turngate`: with the keys that only our engine reads."""
    answer: dict[str, Any] = {"systemMessage": decision.notice} if decision.notice else {}
    extra: dict[str, Any] = {}
    match decision:
        case Allow() | Advise():
            pass
        case Block(reason):
            answer |= {"decision": "block", "reason": reason}
            extra = {"continuations": decision.continuations}
        case Halt(reason, waits=True) if not for_turngate:
            answer = {"systemMessage": reason}
        case Halt(reason):
            answer |= {"continue": False, **({"stopReason": reason} if reason else {})}
            extra = {"waits": decision.waits or None}
        case Fault(error):
            answer = {"systemMessage": f"{describe_fault(name, decision)}; it was NOT enforced"}
            extra = {"notEnforced": error, "waits": decision.kind == "waiting" or None}
        case _:
            assert_never(decision)
    return {**answer, **{key: value for key, value in extra.items() if for_turngate and value is not None}}


def describe_fault(name: str, fault: Fault) -> str:
    happened = "waits" if fault.kind == "waiting" else "could not run"
    return f"gate {quote_name(name)} {happened}: {fault.error}"


async def record_start(gate: Gate, context: GateContext) -> None:
    """Store what is there at the start of the session, or of a subagent, once for each."""
    if gate.record and not context.state.has_start:
        context.state.save_start(dict(await gate.record(context)))


async def _run_or_reuse(gate: Gate, context: GateContext, *, strict: bool) -> Decision:
    state = context.state
    before = state.result or {}
    activity = measure_activity(context.event) if gate.is_cached else None
    tree = await _look(context) if gate.is_cached else None
    note = STILL if tree != state.tree else UNCHANGED_RESULT
    decision = None
    if tree is not None and tree == state.tree:
        decision = _reusable(before, is_idle=activity is not None and activity == state.activity)
        state.holds = decision is not None
    if decision is None and tree is not None:
        decision = _reusable(state.passed.get(tree) or {}, is_idle=False)  # it has passed before
        if decision is not None:
            _keep(state, tree, activity, decision)
    if decision is None:
        tree, decision = await _check_alone(gate, context, tree)
        decision = _keep(state, tree if context.keeps_result else None, activity, decision)
    is_repeated = isinstance(decision, Block | Fault) and _reason(decision) == before.get("reason")
    if isinstance(decision, Block):
        decision = _heed_user(gate, context, decision)
    else:
        decision = _if_strict(gate, decision, strict=strict)
    if is_repeated and isinstance(decision, Block):
        # An agent that reads the same again, without being told so, may give up.
        return replace(decision, reason=f"{decision.reason}\n\n{note}")
    return decision


def _heed_user(gate: Gate, context: GateContext, decision: Block) -> Decision:
    """Return what becomes of a block if the agent asks the user, or says that the user wants it this way.

    A soft gate waits for the answer. A hard one blocks once and says how to insist; what it has found can be kept only if
    it is not known what failed at the session's start.
    """
    has_agent = context.event.transcript_path or last_answer(context.event)
    if context.base is not None or not has_agent:
        return decision
    is_soft = "firm" in context.options and not gate.is_cached
    if is_soft and _asks(context):
        return Fault(ASKS, "waiting", may_block=False)
    failures = context.state.data.get(WITHOUT_BASELINE)
    can_keep = (is_soft or isinstance(failures, list)) and not context.options["firm"]
    found = failures if isinstance(failures, list) else [digest(decision.reason)]
    if can_keep and (why := kept_reason(context, found)):
        context.state.holds = False  # the tree has not passed
        shown = one_line(decision.reason, MAX_WHY_CHARS)
        return Allow(f"{AGENT_KEEPS}: {one_line(why, MAX_WHY_CHARS)} (found: {shown})")
    if (gate.is_cached or gate.is_hard) and _asks(context):
        context.state.data["asked"] = _moment(context)
        context.state.save()
        return replace(decision, reason=f"{decision.reason}\n{INSIST}")
    if can_keep:
        hint = (KEEP if is_soft else KEEP_FAILURES).format(gate.name)
        return replace(decision, reason=f"{decision.reason}\n{hint}")
    return decision


def _insists(context: GateContext) -> bool:
    """Return whether the agent has asked the user again, without a tool call since the block that told it how to insist."""
    data = context.state.data
    return "asked" in data and _asks(context) and data["asked"] == _moment(context)


def _moment(context: GateContext) -> list[str | None]:
    """Return what changes with every prompt, and with every tool call if the transcript can be read."""
    return [context.event.prompt_id, measure_activity(context.event)]


def _asks(context: GateContext) -> bool:
    from turngate.gates.claims import asks_user  # noqa: PLC0415 # lazy: it compiles large patterns

    return asks_user(last_answer(context.event))


def _reason(decision: Block | Fault) -> str:
    return decision.reason if isinstance(decision, Block) else decision.error


def _if_strict(gate: Gate, decision: Decision, *, strict: bool) -> Decision:
    if strict and isinstance(decision, Fault):
        return Block(describe_fault(gate.name, decision))
    return decision


async def _look(context: GateContext, *, is_whole: bool = False) -> str | None:
    """Find the state before the check, and return what `_with_inputs` makes of it; None: it is not known, or known only after the check."""
    with contextlib.suppress(ProjectUnreachable):
        await look_first(context, is_whole=is_whole or bool(context.state.result or context.state.passed))
    return _with_inputs(context, context.tree)


def _with_inputs(context: GateContext, tree: str | None) -> str | None:
    """Return the state of all that the gate depends on, also of what defined it at the start, since sessions share results; None: it is not known.

    The environment is not a part of it: within a session it is the same, and a result is shared only between equal ones.
    """
    definition = digest(repr((context.state.start or {}).get("definition")))
    return f"{tree} {context.inputs.state} {definition}" if tree and context.inputs.state else None


def _keep(state: GateState, tree: str | None, activity: object, result: Decision) -> Decision:
    state.tree, state.activity, state.result = tree, activity, _to_json(result)
    if tree is not None:
        state.passed.pop(tree, None)
        if isinstance(result, Allow):
            state.passed[tree] = state.result or {}
            state.passed = dict(list(state.passed.items())[-MAX_PASSED:])
        else:  # its cause may be outside of the project's files, and then the others would fail too
            state.passed = {}
    state.holds = state.save() and tree is not None and state.result is not None
    return result


async def _check_alone(gate: Gate, context: GateContext, tree: str | None) -> tuple[str | None, Decision]:
    """Check while no other agent checks this gate here; after a wait, its result may count. Return the result and the tree that it is about."""
    lock = _open_lock(context) if gate.is_cached else None
    if lock is None:
        decision = await _check(gate, context)
        return (_with_inputs(context, await tree_before(context)) if gate.is_cached else None), decision
    with contextlib.closing(lock):
        if not await lock.acquire(context.commands):
            return tree, Fault(f"its time was up after it waited {lock.waited:.3g} s {FOR_SAME_GATE}")
        if lock.waited:
            tree = await _look(context, is_whole=True)
            is_same = (tree, _environment(context)) == (
                lock.shared.get("tree"),
                lock.shared.get("environment"),
            )
            shared = lock.shared if tree is not None and is_same else {}
            # What failed for another session may not count in this one.
            is_any = not (context.state.start or context.options.get("if-changed"))
            if result := _reusable(shared.get("result") or {}, is_idle=is_any):
                return tree, result
        began, before = time.time_ns(), "" if context.unseen else context.tree
        decision = await _check(gate, context)
        tree = _with_inputs(context, await tree_before(context))
        if tree is None or not await _is_still(context, began):
            decision = await _note_own_changes(context, decision, before, began)
            if isinstance(decision, Allow):
                tree = None  # what has passed is neither what was there before nor what is there now
        if context.keeps_result and context.is_shared:
            shown = {"tree": tree, "environment": _environment(context), "result": _to_json(decision)}
            lock.share(shown)
    if lock.waited and isinstance(decision, Fault) and context.commands.seconds_left <= 0:
        error = f"{decision.error}, of which it waited {lock.waited:.3g} s {FOR_SAME_GATE}"
        return tree, replace(decision, error=error)
    return tree, decision


def _environment(context: GateContext) -> str:
    own = sorted(each for each in context.environ.items() if not re.match(_OF_SESSION, each[0]))
    return digest(repr(own))


def _open_lock(context: GateContext) -> "GateLock | None":
    """Return the lock of a gate in this project, which is checked once at a time; None without a state folder, and below another gate."""
    if (
        not (context.state_folder and context.state.path and context.commands.is_local)
        or IN_GATE in os.environ
    ):
        return None
    folder = os.path.join(context.state_folder, "locks")
    try:
        make_private_dir(folder)
        return GateLock(os.path.join(folder, os.path.basename(context.state.path)))
    except OSError:
        return None


class GateLock:
    """A file that the process that checks the gate has locked; the kernel frees the lock of a process that dies."""

    def __init__(self, path: str) -> None:
        self._fd = open_regular_file(path, os.O_RDWR | os.O_CREAT)
        self.waited = 0.0  # seconds
        self.shared: dict[str, Any] = {}  # what the process has left that was waited for

    async def acquire(self, commands: ProjectCommands) -> bool:
        """Wait until no other check holds the lock. Return False if the time of the commands is up before."""
        begun = time.monotonic()
        while not self._try_lock():
            if commands.seconds_left <= 0:
                return False
            await asyncio.sleep(POLL_S)
            self.waited = time.monotonic() - begun
        if self.waited:
            with contextlib.suppress(ValueError):  # the disk was full
                self.shared = json.loads(os.pread(self._fd, os.fstat(self._fd).st_size, 0))
        self.share({})
        return True

    def share(self, result: dict[str, Any]) -> None:
        """Leave a result for those that wait."""
        with contextlib.suppress(OSError):  # a full disk: they check for themselves
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(result).encode(), 0)

    def close(self) -> None:
        os.close(self._fd)

    def _try_lock(self) -> bool:
        with contextlib.suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True


async def _is_still(context: GateContext, began_ns: int) -> bool:
    """Return whether the state is that of before, and no file was changed and changed back, since no command has run or by a look."""
    if context.is_of_tree or context.commands_by_look == context.commands.count:
        return True
    with contextlib.suppress(ProjectUnreachable):
        return await tree_state(context, began_ns) == context.tree
    return False


async def _note_own_changes(
    context: GateContext, decision: Decision, before: str | None, began_ns: int
) -> Decision:
    """Tell the user which files in git the check itself has changed; others, such as reports, do not count."""
    if before is None or not context.commands.is_local:
        return decision
    if content_of(before) == content_of(await tree_state(context) or ""):
        return decision
    from turngate.gates.git.output import show_path, unquote_path  # noqa: PLC0415 # lazy: few checks change files

    report = await context.commands.run_script("git ls-files --modified")
    names = [unquote_path(line) for line in report.stdout.splitlines()]
    changed = [name for name in names if _changed_since(os.path.join(context.project, name), began_ns)]
    if not changed:
        return decision
    more = f" and {len(changed) - MAX_CHANGED} more" if len(changed) > MAX_CHANGED else ""
    notice = f"the check itself changed {', '.join(map(show_path, changed[:MAX_CHANGED]))}{more}"
    return replace(decision, notice="; ".join(filter(None, (decision.notice, notice))))


def _changed_since(path: str, moment_ns: int) -> bool:
    with contextlib.suppress(OSError):  # it was deleted
        return os.lstat(path).st_mtime_ns >= moment_ns - CLOCK_TICK_NS
    return False


async def _check(gate: Gate, context: GateContext) -> Decision:
    """Ask the gate. What it answers is shown, sent to a model and stored: secrets are hidden here."""
    context.state.data.pop(WITHOUT_BASELINE, None)
    try:
        decision = await gate.check(context)
    except NO_ANSWER as error:
        decision = Fault(str(error))
    return context.redactor.decision(decision) if context.redactor else decision


def _reusable(record: Mapping[str, Any], *, is_idle: bool) -> Decision | None:
    """Return a stored result that still holds; a failure only while neither the agent nor the user has done anything since."""
    match record:
        case {"outcome": "passed", "note": note}:
            return Allow(note, quiet=bool(record.get("quiet")))
        case {"outcome": "failed", "reason": str(reason), "continuations": continuations} if is_idle:
            return Block(reason, continuations=continuations)
        case _:
            return None


def _to_json(result: Decision) -> dict[str, Any] | None:
    match result:
        case Allow(note):
            return {"outcome": "passed", "note": note, "quiet": result.quiet}
        case Block(reason):
            return {"outcome": "failed", "reason": reason, "continuations": result.continuations}
        case Fault(why):
            return {"outcome": "could not run", "reason": why}
        case _:
            return None
