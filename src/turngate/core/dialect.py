"""The dialects as data: how hooks are configured, counted, read and reported to the agent."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from turngate._frozen import frozen
from turngate.core.constants import FAMILIES
from turngate.core.hooks.kinds import KINDS, HookKind


@frozen(kw_only=True)
class Dialect:
    """The rules in which the three programs differ."""

    name: str

    # Settings
    timeouts: Mapping[HookKind, float]  # seconds, for hooks without a timeout of their own
    disable_reaches: Literal["family", "all"]  # what `disableAllHooks` in a file switches off
    # An invalid PreToolUse or PermissionRequest hook disables its whole file.
    unloadable_guard_voids_file: bool
    condition_skips_stop: bool  # a hook with `if` never runs on an event without a tool call
    honours_shell: bool  # `"shell": "bash"`

    # The loop
    limit: int  # continuations in one turn
    hard_limit: int | None
    limit_variable: str | None  # environment variable that sets the limit
    tool_call_resets: bool  # count consecutive blocks only
    asks_while_waiting: bool  # run the hooks also when the agent waits for the user
    defers_to_user: bool  # answer a pending user message before the hooks run
    stall_after: int | None  # end the turn after this many equal blocks without a tool call between them
    subagents_in_background: bool  # the default of the Task tool
    # A turn without a user waits for hooks with `asyncRewake`, and continues if they block.
    wakes_without_user: bool
    asks_after_refusal: (
        bool  # once per turn, a model that refused to answer is asked to continue without that
    )

    # How output of a hook is read
    json_on_any_exit: bool
    block_on_any_exit: bool  # a block with a reason counts on any exit code; other JSON only on exit code 0
    any_missing_file_passes: bool  # exit code 2 at a stop is not a block wherever stderr says `no such file`
    strict_json: bool  # a wrong type anywhere makes the whole output invalid
    unreadable_asks: bool  # the user decides about a tool call if the answer of a hook cannot be understood
    block_words: frozenset[str]
    allow_words: frozenset[str]
    default_reason: str | None  # for a block without a reason; None: not a block
    default_stderr: str | None  # for exit code 2 with an empty stderr; None: not a block
    failure_may_block: bool  # `"blocking": true` is honoured
    held_pipes_void_json: bool  # ignore JSON while a child process still holds the pipes
    advice: Literal["once", "never", "always"]  # whether additionalContext alone causes a continuation
    strict_judge: bool  # the judge must answer `{ok, reason, impossible}`, and is asked once
    judge_ends_turn: bool  # a prompt hook that blocks another event than a stop ends the turn

    # What the agent gets
    prefix: str
    subagent_prefix: str
    prefix_each: bool  # one prefix per blocking hook, in order of completion
    names_exit2_command: bool  # `[<command>]: ` before stderr, which stays verbatim
    reason_limit: int | None  # characters
    advice_limit: int | None  # characters

    # The result of a turn whose prompt a hook blocks, or before which a hook ends the turn.
    blocked_prompt: str
    halted_prompt: str

    # What a hook gets
    # Whose session id and paths a SubagentStop hook gets.
    subagent_identity: Literal["parent", "task", "claude"]
    task_tool: str  # the `tool_name` of a Task call
    last_text_block_only: bool  # of the last assistant message
    is_claude_code: bool  # hooks get the environment variables of Claude Code
    default_effort: str  # of the model, unless the environment names one
    judge_sees: Literal["as_asked", "input", "conversation"]  # as_asked: the hook's `transcript` decides
    arguments_heading: str  # before a prompt hook's input, where the prompt has no `$ARGUMENTS`
    background_grace: float  # seconds that background hooks get at the end
    families: tuple[str, ...] = field(default=())


TURNGATE = Dialect(
    name="turngate",
    families=FAMILIES["turngate"],
    timeouts={hook.kind: hook.default_timeout for hook in KINDS.values()},
    disable_reaches="family",
    unloadable_guard_voids_file=False,
    condition_skips_stop=False,
    honours_shell=True,
    limit=3,
    hard_limit=10,
    limit_variable=None,
    tool_call_resets=False,
    asks_while_waiting=False,
    defers_to_user=True,
    stall_after=3,
    subagents_in_background=False,
    wakes_without_user=True,
    asks_after_refusal=False,
    json_on_any_exit=False,
    block_on_any_exit=True,
    any_missing_file_passes=False,
    strict_json=False,
    unreadable_asks=True,
    block_words=frozenset({"block", "deny"}),
    allow_words=frozenset({"approve", "allow"}),
    default_reason=None,
    default_stderr=None,
    failure_may_block=True,
    held_pipes_void_json=False,
    advice="once",
    strict_judge=False,
    judge_ends_turn=False,
    prefix="[Stop hook requested continuation]\n",
    subagent_prefix="",
    prefix_each=False,
    names_exit2_command=False,
    reason_limit=10_000,
    advice_limit=10_000,
    blocked_prompt="",
    halted_prompt="",
    subagent_identity="parent",
    task_tool="Task",
    last_text_block_only=False,
    is_claude_code=False,
    default_effort="",
    judge_sees="as_asked",
    arguments_heading="",
    background_grace=5.0,
)

MUX = Dialect(
    **{
        **vars(TURNGATE),
        "name": "mux",
        "families": FAMILIES["mux"],
        "timeouts": {**TURNGATE.timeouts, "command": 10.0},
        "stall_after": None,
        "defers_to_user": False,
        "block_on_any_exit": False,
        "advice": "never",
        "subagent_identity": "task",
        "judge_sees": "input",
    }
)

CLAUDE = Dialect(
    name="claude",
    families=FAMILIES["claude"],
    timeouts={**TURNGATE.timeouts, "command": 600.0, "http": 600.0, "callback": 60.0},
    disable_reaches="all",
    unloadable_guard_voids_file=True,
    condition_skips_stop=True,
    honours_shell=False,
    limit=8,
    hard_limit=None,
    limit_variable="CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
    tool_call_resets=True,
    asks_while_waiting=True,
    defers_to_user=True,
    stall_after=None,
    subagents_in_background=True,
    wakes_without_user=False,
    asks_after_refusal=True,
    json_on_any_exit=True,
    block_on_any_exit=True,
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
    advice_limit=10_000,
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
HOST = Dialect(
    **{
        **vars(TURNGATE),
        "name": "host",
        "families": FAMILIES["host"],
        "stall_after": 1,
        "prefix": "",
        "subagent_identity": "claude",
    }
)

DIALECTS: Mapping[str, Dialect] = {d.name: d for d in (TURNGATE, MUX, CLAUDE)}  # those that a user can choose
ALL_DIALECTS: Mapping[str, Dialect] = {**DIALECTS, HOST.name: HOST}
