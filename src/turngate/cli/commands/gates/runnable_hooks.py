"""Which hooks of a project can be run without an agent, and the commit that `--base` compares with."""

import asyncio
import re
from collections.abc import Iterator, Sequence

from turngate._frozen_dataclass import frozen
from turngate.cli.console.conversation_text import flat
from turngate.cli.review import find_keys
from turngate.cli.review.entries import shown_key
from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.kinds import CommandHook, identity
from turngate.core.hooks.selection import switched_off_by
from turngate.core.settings import Rule, Settings
from turngate.core.text import quote_name
from turngate.doctor.proof.gate_commands import gate_text
from turngate.doctor.proof.ready_made_gates import named_gate, why_not_a_check
from turngate.errors import UsageError
from turngate.gates.gate import Gate
from turngate.gates.session_changes import NO_SESSION, record_files
from turngate.ports import HookRunContext, World
from turngate.settings.plugin_folders import display_name
from turngate.trust.fingerprint import scripts_of
from turngate.trust.review import unique_keys

_CONVERSATION = re.compile(r"transcript_path|last_assistant_message", re.IGNORECASE)


@frozen
class GateEntry:
    """One hook that decides whether an agent may stop; `left_out` says why it needs an agent."""

    key: str
    rule: Rule
    left_out: str | None = None
    file: str | None = None  # in which it is configured, for the user


def select_gates(
    settings: Settings, world: World, names: Sequence[str], *, has_base: bool
) -> list[GateEntry]:
    """Return all hooks of stops, or those with these keys. Raises UsageError for a name that is not one.

    `has_base`: there is a commit that gates can compare with.
    """
    keyed = zip(unique_keys(settings.rules), settings.rules, strict=True)
    stops = [(key, rule) for key, rule in keyed if rule.event in STOP_EVENTS]
    entries = list(_entries(stops, settings, world, has_base=has_base))
    by_key = {entry.key: entry for entry in entries}
    return find_keys(by_key, names, "gate") if names else entries


def _entries(
    rules: Sequence[tuple[str, Rule]], settings: Settings, world: World, *, has_base: bool
) -> Iterator[GateEntry]:
    """A check that is a hook of Stop and of SubagentStop is run once."""
    seen: dict[tuple[object, ...], str] = {}
    for key, rule in rules:
        why = _why_left_out(rule, settings, world, has_base=has_base)
        same = seen.get(identity(rule.hook)) if why is None and not rule.pending else None
        if why is None and same is None:
            seen[identity(rule.hook)] = key
        why = why or (f"it is the same as {shown_key(same)}" if same else None)
        file = display_name(rule.file, world.project, world.files.home) if rule.file else None
        yield GateEntry(key, rule, why, file)


def _why_left_out(rule: Rule, settings: Settings, world: World, *, has_base: bool) -> str | None:
    if setting := switched_off_by(rule, settings):
        return f"{setting} switches it off"
    if not rule.hook.enabled:
        return "its own `enabled` switches it off"
    if rule.rejected:
        return "it was rejected"
    if settings.mode_of(rule) != "gate":
        return "it only observes"
    if rule.hook.detached:
        return "it runs in the background, and does not block a stop"
    if named := named_gate(rule.hook):
        return _why_gate_left_out(named.gate, has_base=has_base)
    if isinstance(rule.hook, CommandHook):
        command = " ".join((rule.hook.command, *(rule.hook.args or ())))
        text = gate_text(command, scripts_of(rule, world.project, world.files), world.project, world.files)
        return "it reads the conversation" if _CONVERSATION.search(text) else None
    return f"it asks a {rule.hook.asks}" if rule.hook.asks else None


def _why_gate_left_out(gate: Gate, *, has_base: bool) -> str | None:
    if why := why_not_a_check(gate):
        return why
    if gate.needs_conversation:
        return "it needs a conversation"
    return NO_SESSION if gate.record is record_files and not has_base else None


GIT_TIMEOUT_S = 60.0


async def find_base(world: World, revision: str) -> str:
    """Return the last commit that the revision and HEAD have in common. Raises UsageError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit, name = await _git(world, *words), quote_name(flat(revision))
    if not commit:
        raise UsageError(
            f"--base {name}: git knows no such commit here; fetch it first, e.g. `git fetch origin`"
        )
    base = await _git(world, "merge-base", commit, "HEAD")
    if not base:
        raise UsageError(
            f"--base {name} has no commit in common with HEAD here; "
            "fetch the whole history (`git fetch --unshallow`, in a GitHub workflow `fetch-depth: 0`)"
        )
    return base


async def _git(world: World, *words: str) -> str:
    """Return the first line that git prints where the project is; empty if it fails."""
    git, live = CommandHook("git", args=("-c", "core.fsmonitor=false", *words)), HookRunContext()
    try:
        async with asyncio.timeout(GIT_TIMEOUT_S):
            done = await world.shell.run(git, cwd=world.project, env=world.environ, stdin=b"", live=live)
    except TimeoutError:
        raise UsageError(f"--base: git did not answer within {GIT_TIMEOUT_S:.0f} s") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--base: git could not be started: {error}") from None
    return done.stdout.partition("\n")[0] if done.code == 0 else ""
