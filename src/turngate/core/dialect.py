"""The dialects as data: how hooks are configured, counted, read and reported to the agent."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from turngate._frozen_dataclass import frozen
from turngate.core.constants import FAMILIES
from turngate.core.hooks.kinds import KINDS, HookKind

_TIMEOUTS: Mapping[HookKind, float] = {hook.kind: hook.default_timeout for hook in KINDS.values()}


@frozen(kw_only=True)
class Dialect:
    """The rules in which the three programs differ; the defaults are those of Turngate."""

    name: str

    # Settings
    # Seconds, for hooks without a timeout of their own.
    timeouts: Mapping[HookKind, float] = field(default_factory=lambda: _TIMEOUTS)
    disable_reaches: Literal["family", "all"] = "family"  # what `disableAllHooks` in a file switches off
    # An invalid PreToolUse or PermissionRequest hook disables its whole file.
    unloadable_guard_voids_file: bool = False
    condition_skips_stop: bool = False  # a hook with `if` never runs on an event without a tool call
    honors_shell: bool = True  # `"shell": "bash"`

    # The loop
    limit: int = 3  # continuations in one turn
    hard_limit: int | None = 10
    limit_variable: str | None = None  # environment variable that sets the limit
    tool_call_resets: bool = False  # count consecutive blocks only
    asks_while_waiting: bool = False  # run the hooks also when the agent waits for the user
    defers_to_user: bool = True  # answer a pending user message before the hooks run
    stall_after: int | None = 3  # end the turn after this many equal blocks without a tool call between them
    subagents_in_background: bool = False  # the default of the Task tool
    # A turn without a user waits for hooks with `asyncRewake`, and continues if they block.
    wakes_without_user: bool = True
    # Once per turn, a model that refused to answer is asked to continue without that.
    asks_after_refusal: bool = False

    # How output of a hook is read
    json_on_any_exit: bool = False
    # A block with a reason counts on any exit code; other JSON only on exit code 0.
    block_on_any_exit: bool = True
    # Exit code 2 at a stop is not a block wherever stderr says `no such file`.
    any_missing_file_passes: bool = False
    strict_json: bool = False  # a wrong type anywhere makes the whole output invalid
    # The user decides about a tool call if the answer of a hook cannot be understood.
    unreadable_asks: bool = True
    block_words: frozenset[str] = frozenset({"block", "deny"})
    allow_words: frozenset[str] = frozenset({"approve", "allow"})
    default_reason: str | None = None  # for a block without a reason; None: not a block
    default_stderr: str | None = None  # for exit code 2 with an empty stderr; None: not a block
    failure_may_block: bool = True  # `"blocking": true` is honored
    held_pipes_void_json: bool = False  # ignore JSON while a child process still holds the pipes
    # Whether additionalContext alone causes a continuation.
    advice: Literal["once", "never", "always"] = "once"
    strict_judge: bool = False  # the judge must answer `{ok, reason, impossible}`, and is asked once
    judge_ends_turn: bool = False  # a prompt hook that blocks another event than a stop ends the turn

    # What the agent gets
    prefix: str = "[Stop hook requested continuation]\n"
    subagent_prefix: str = ""
    prefix_each: bool = False  # one prefix per blocking hook, in order of completion
    names_exit2_command: bool = False  # `[<command>]: ` before stderr, which stays verbatim
    reason_limit: int | None = 10_000  # characters
    advice_limit: int | None = 10_000  # characters

    # The result of a turn whose prompt a hook blocks, or before which a hook ends the turn.
    blocked_prompt: str = ""
    halted_prompt: str = ""

    # What a hook gets
    # Whose session id and paths a SubagentStop hook gets.
    subagent_identity: Literal["parent", "task", "claude"] = "parent"
    task_tool: str = "Task"  # the `tool_name` of a Task call
    last_text_block_only: bool = False  # of the last assistant message
    is_claude_code: bool = False  # hooks get the environment variables of Claude Code
    default_effort: str = ""  # of the model, unless the environment names one
    # as_asked: the hook's `transcript` decides.
    judge_sees: Literal["as_asked", "input", "conversation"] = "as_asked"
    arguments_heading: str = ""  # before a prompt hook's input, where the prompt has no `$ARGUMENTS`
    background_grace: float = 5.0  # seconds that background hooks get at the end

    @property
    def families(self) -> tuple[str, ...]:
        """The families of settings files that the dialect reads, weakest first."""
        return FAMILIES[self.name]


TURNGATE = Dialect(name="turngate")

MUX = Dialect(
    name="mux",
    timeouts={**_TIMEOUTS, "command": 10.0},
    stall_after=None,
    defers_to_user=False,
    block_on_any_exit=False,
    advice="never",
    subagent_identity="task",
    judge_sees="input",
)

CLAUDE = Dialect(
    name="claude",
    timeouts={**_TIMEOUTS, "command": 600.0, "http": 600.0, "callback": 60.0},
    disable_reaches="all",
    unloadable_guard_voids_file=True,
    condition_skips_stop=True,
    honors_shell=False,
    limit=8,
    hard_limit=None,
    limit_variable="CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
    tool_call_resets=True,
    asks_while_waiting=True,
    stall_after=None,
    subagents_in_background=True,
    wakes_without_user=False,
    asks_after_refusal=True,
    json_on_any_exit=True,
    any_missing_file_passes=True,
    strict_json=True,
    unreadable_asks=False,
    block_words=frozenset({"block"}),
    allow_words=frozenset({"approve"}),
    default_reason="Blocked by hook",
    default_stderr="No stderr output",
    failure_may_block=False,
    held_pipes_void_json=True,
    advice="always",
    strict_judge=True,
    judge_ends_turn=True,
    prefix="Stop hook feedback:\n",
    subagent_prefix="Stop hook feedback:\n",
    prefix_each=True,
    names_exit2_command=True,
    reason_limit=None,
    blocked_prompt="UserPromptSubmit operation blocked by hook:\n{reason}\n\nOriginal prompt: {prompt}",
    halted_prompt="Operation stopped by hook: {reason}",
    subagent_identity="claude",
    task_tool="Agent",
    last_text_block_only=True,
    is_claude_code=True,
    default_effort="medium",
    judge_sees="conversation",
    arguments_heading="ARGUMENTS: ",
    background_grace=0.0,
)

# For `turngate hook`. The other agent program adds its own heading, and names sessions and transcripts in its own way.
HOST = Dialect(name="host", stall_after=1, prefix="", subagent_identity="claude")

DIALECTS: Mapping[str, Dialect] = {d.name: d for d in (TURNGATE, MUX, CLAUDE)}  # those that a user can choose
ALL_DIALECTS: Mapping[str, Dialect] = {**DIALECTS, HOST.name: HOST}
