"""The three sets of manners, as data: what a hook may say, how it is counted and what the agent is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from turngate.core.constants import FAMILIES
from turngate.core.hooks import HookKind


@dataclass(frozen=True, kw_only=True)
class Dialect:
    name: str

    # Settings
    timeouts: Mapping[HookKind, float]  # seconds, for hooks without a timeout of their own
    disable_reaches: Literal["family", "all"]  # what `disableAllHooks` in a file switches off
    unloadable_guard_voids_file: bool  # a PreToolUse or PermissionRequest hook that can not be read
    condition_skips_stop: bool  # a hook with `if` never runs on a stop event
    honours_shell: bool  # `"shell": "bash"`

    # The loop
    limit: int  # continuations in one turn
    hard_limit: int | None
    limit_variable: str | None  # environment variable that sets the limit
    tool_call_resets: bool  # counts consecutive refusals only
    asks_while_waiting: bool  # gates are asked also when the agent waits for the user
    defers_to_user: bool  # a message that waits is answered before the gates are asked
    stall_after: int | None  # the same refusal, this often, with no tool call between
    children_in_background: bool  # where the Task tool's caller does not say

    # What a hook says
    json_on_any_exit: bool
    strict_json: bool  # a wrong type anywhere voids the whole answer
    block_words: frozenset[str]
    allow_words: frozenset[str]
    default_reason: str | None  # a block without a reason; None: no block
    default_stderr: str | None  # exit 2 with an empty stderr; None: no block
    failure_may_block: bool  # `"blocking": true` is honoured
    held_pipes_void_json: bool  # an answer whose pipes a child still holds is not trusted
    advice: Literal["once", "never", "always"]  # does additionalContext alone send the agent on?
    silent: frozenset[tuple[HookKind, str]]  # kinds of hook and fault that are recorded and not told
    strict_judge: bool  # a model that is asked answers `{ok, reason, impossible}`, and is asked once

    # What the agent is told
    prefix: str
    child_prefix: str
    prefix_each: bool  # one prefix per refusing hook, in order of completion
    names_exit2_command: bool  # `[<command>]: ` before stderr, which stays verbatim
    reason_limit: int | None  # characters
    advice_limit: int | None

    # What a hook is told
    child_identity: Literal["parent", "task", "claude"]
    last_text_block_only: bool
    judge_sees: Literal["as_asked", "input", "conversation"]  # of what was said; `transcript` asks for it
    arguments_heading: str  # before a prompt hook's input where the prompt names no place for it
    background_grace: float  # seconds that hooks in the background get at the end
    families: tuple[str, ...] = field(default=())


TURNGATE = Dialect(
    name="turngate",
    families=FAMILIES["turngate"],
    timeouts={"command": 60.0, "prompt": 30.0, "agent": 60.0, "http": 30.0, "callback": 30.0},
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
    children_in_background=False,
    json_on_any_exit=False,
    strict_json=False,
    block_words=frozenset({"block", "deny"}),
    allow_words=frozenset({"approve", "allow"}),
    default_reason=None,
    default_stderr=None,
    failure_may_block=True,
    held_pipes_void_json=False,
    advice="once",
    silent=frozenset(),
    strict_judge=False,
    prefix="[Stop hook requested continuation]\n",
    child_prefix="",
    prefix_each=False,
    names_exit2_command=False,
    reason_limit=10_000,
    advice_limit=10_000,
    child_identity="parent",
    last_text_block_only=False,
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
        "advice": "never",
        "child_identity": "task",
        "judge_sees": "input",
    }
)

CLAUDE = Dialect(
    name="claude",
    families=FAMILIES["claude"],
    timeouts={"command": 600.0, "prompt": 30.0, "agent": 60.0, "http": 600.0, "callback": 60.0},
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
    children_in_background=True,
    json_on_any_exit=True,
    strict_json=True,
    block_words=frozenset({"block"}),
    allow_words=frozenset({"approve"}),
    default_reason="Blocked by hook",
    default_stderr="No stderr output",
    failure_may_block=False,
    held_pipes_void_json=True,
    advice="always",
    silent=frozenset({("http", "timeout"), ("prompt", "timeout"), ("agent", "timeout"), ("agent", "failed")}),
    strict_judge=True,
    prefix="Stop hook feedback:\n",
    child_prefix="Stop hook feedback:\n",
    prefix_each=True,
    names_exit2_command=True,
    reason_limit=None,
    advice_limit=10_000,
    child_identity="claude",
    last_text_block_only=True,
    judge_sees="conversation",
    arguments_heading="ARGUMENTS: ",
    background_grace=0.0,
)

DIALECTS: Mapping[str, Dialect] = {d.name: d for d in (TURNGATE, MUX, CLAUDE)}
