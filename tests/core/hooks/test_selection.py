from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import rule, settings, stop_event, subagent_stop
from turngate.core.answers.report_types import HookFailed, Skipped
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.events import Event, PreToolUse
from turngate.core.hooks.kinds import AgentHook, CallbackHook, CommandHook, Hook, HttpHook, PromptHook
from turngate.core.hooks.selection import Plan, matches, plan
from turngate.core.settings import Rule, Settings


def commands(rules: tuple[Rule, ...]) -> list[str]:
    return [r.hook.command for r in rules if isinstance(r.hook, CommandHook)]


@pytest.mark.req("S0-01")
def test_each_event_asks_its_own_hooks() -> None:
    both = Settings(rules=(rule("a"), rule("b", "SubagentStop"), rule("c")))
    assert (plan(both, stop_event()), plan(both, subagent_stop())) == (
        Plan((both.rules[0], both.rules[2])),
        Plan((both.rules[1],)),
    )


MATCHERS: list[tuple[Any, str, bool]] = [
    (None, "Explore", True),
    ("", "Explore", True),
    ("*", "Explore", True),
    ("Explore", "Explore", True),
    ("explore", "Explore", False),
    ("Expl", "Explore", False),
    ("Explore|general-purpose", "general-purpose", True),
    ("Explore, general-purpose", "general-purpose", True),
    ("^Expl", "Explore", True),
    ("plore$", "Explore", True),
    ("code-.*", "code-reviewer", True),
    ("(((", "Explore", False),
    (".*", "", True),
]


@pytest.mark.req("S0-18")
@pytest.mark.parametrize(("matcher", "subject", "fits"), MATCHERS)
def test_a_matcher_is_a_list_of_names_or_an_unanchored_expression(
    matcher: Any, subject: str, fits: bool
) -> None:
    event: Event = PreToolUse(session_id="s", tool_name=subject)
    assert (matches(matcher, subagent_stop(subject)), matches(matcher, event)) == (fits, fits)


@pytest.mark.parametrize("matcher", [None, "Bash", "((("])
def test_on_stop_a_matcher_is_ignored(matcher: str | None) -> None:
    assert matches(matcher, stop_event())


def written(*hooks: Hook) -> Settings:
    """As settings files have them."""
    return Settings(rules=tuple(rule(hook, source="project") for hook in hooks))


@pytest.mark.req("X-14")
def test_the_same_command_runs_once_in_its_first_place_with_its_last_definition() -> None:
    first, other = CommandHook("make test", timeout=1), CommandHook("make lint")
    last = CommandHook("make test", timeout=30, shell="bash")
    assert [r.hook for r in plan(written(first, other, last), stop_event()).ask] == [last, other]


@pytest.mark.parametrize(
    "make",
    [
        lambda **when: CommandHook("check", **when),
        lambda **when: PromptHook("Is it done?", **when),
        lambda **when: AgentHook("Is it done?", **when),
        lambda **when: HttpHook("https://example.com/", **when),
    ],
    ids=["command", "prompt", "agent", "http"],
)
def test_another_condition_or_outcome_makes_another_hook(make: Callable[..., Hook]) -> None:
    hooks = [
        make(),
        make(condition="Bash(git *)"),
        make(condition="Bash(npm *)"),
        make(outcomes=("ok", "error")),
        make(),
    ]
    assert [r.hook for r in plan(written(*hooks), stop_event()).ask] == [hooks[4], *hooks[1:4]]


def test_other_arguments_make_another_hook_and_callbacks_are_never_the_same() -> None:
    callback = CallbackHook(print)
    hooks = (
        CommandHook("x", args=("1",)),
        CommandHook("x", args=("2",)),
        callback,
        callback,
        PromptHook("p"),
        PromptHook("p"),
    )
    assert [r.hook for r in plan(written(*hooks), stop_event()).ask] == [*hooks[:4], hooks[5]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CommandHook("x", id="a"), CommandHook("x", id="b", mode="observe")),
        (CommandHook("x", env={"A": "1"}), CommandHook("x")),
        (CommandHook("x", outcomes=("ok", "error")), CommandHook("x")),
        (PromptHook("p", id="gate"), PromptHook("p", id="look", mode="observe")),
        (PromptHook("p"), PromptHook("p", transcript="digest")),
        (PromptHook("p", model="small"), PromptHook("p", model="large")),
        (AgentHook("p", model="small"), AgentHook("p")),
        (HttpHook("https://x", headers={"A": "1"}), HttpHook("https://x", headers={"A": "2"})),
    ],
)
def test_hooks_that_would_answer_otherwise_are_both_asked(one: Hook, other: Hook) -> None:
    assert [r.hook for r in plan(written(one, other), stop_event()).ask] == [one, other]


def test_a_family_that_is_switched_off_takes_the_same_hook_of_another_with_it_no_more() -> None:
    rules = tuple(rule("x", source="project", family=family) for family in ("claude", "turngate"))
    said = Settings(rules=rules, switched_off={"turngate": ".turngate/settings.json"})
    assert [each.family for each in plan(said, stop_event()).ask] == ["claude"]
    off = Settings(
        rules=(rule(CommandHook("x", enabled=False), source="project", family="claude"), rules[0], rules[0]),
        switched_off={"claude": "x.json"},
    )
    assert [why for _, why in plan(off, stop_event()).skip] == [
        Skipped("disableAllHooks in x.json switches it off", is_change=True),
        Skipped("it is switched off by its own `enabled`", on_purpose=True),
    ]


def test_what_a_program_lists_twice_is_asked_twice() -> None:
    hooks = (CommandHook("x"), CommandHook("x"), PromptHook("p"), PromptHook("p"))
    assert [r.hook for r in plan(settings(*hooks), stop_event()).ask] == [*hooks]


def test_a_hook_that_is_left_out_says_why() -> None:
    rules = (
        rule(CommandHook("off", enabled=False), "SubagentStop"),
        rule(CommandHook("family"), "SubagentStop", family="mux"),
        rule(CommandHook("other"), "SubagentStop", matcher="Explore"),
        rule(CommandHook("ends"), "SubagentStop"),
        rule(CommandHook("errors", outcomes=("error",)), "SubagentStop"),
    )
    said = Settings(rules=rules, switched_off={"mux": "~/.mux/settings.json"})
    planned = plan(said, subagent_stop("general-purpose", outcome="error"))
    assert (commands(planned.ask), [why for _, why in planned.skip]) == (
        ["errors"],
        [
            Skipped("disableAllHooks in ~/.mux/settings.json switches it off", is_change=True),
            Skipped("it is switched off by its own `enabled`", on_purpose=True),
            Skipped("it does not run when a subagent ends with error", on_purpose=True),
            Skipped("its matcher 'Explore' does not match 'general-purpose'", on_purpose=True),
        ],
    )


def test_a_condition_is_ignored_at_a_stop_but_in_claude_the_hook_does_not_run() -> None:
    hook = CommandHook("x", condition="Bash(git *)")
    asked = [len(plan(settings(hook, dialect=dialect), stop_event()).ask) for dialect in (TURNGATE, CLAUDE)]
    assert asked == [1, 0]


@pytest.mark.req("X-14")
def test_the_last_definition_counts_also_when_it_switches_the_hook_off() -> None:
    off = written(CommandHook("make test"), CommandHook("make test", enabled=False))
    assert plan(off, stop_event()).ask == ()


def test_everything_is_switched_off_where_turngates_own_file_says_so() -> None:
    said = Settings(rules=(rule(CallbackHook(print)),), switched_off={"python": ".turngate/settings.json"})
    assert [why for _, why in plan(said, stop_event()).skip] == [
        Skipped("disableAllHooks in .turngate/settings.json switches it off", is_change=True)
    ]


INVALID = "its matcher '(' is not a valid regular expression"


@pytest.mark.parametrize(
    ("dialect", "why"),
    [(TURNGATE, HookFailed(INVALID)), (MUX, HookFailed(INVALID)), (CLAUDE, Skipped(INVALID))],
)
def test_an_invalid_matcher_is_a_failure_but_in_claude_it_never_matches(
    dialect: Dialect, why: HookFailed | Skipped
) -> None:
    invalid = rule(CommandHook("x"), "SubagentStop", matcher="(")
    said = Settings(rules=(invalid,), dialect=dialect)
    assert plan(said, subagent_stop()) == Plan((), ((invalid, why),))


def test_a_hook_with_an_invalid_matcher_is_left_out_for_the_usual_reasons() -> None:
    rules = (
        rule(CommandHook("off", enabled=False), "SubagentStop", matcher="("),
        rule(CommandHook("family"), "SubagentStop", matcher="(", family="mux"),
        rule(CommandHook("errors", outcomes=("error",)), "SubagentStop", matcher="("),
    )
    said = Settings(rules=rules, switched_off={"mux": "x.json"})
    assert [why for _, why in plan(said, subagent_stop()).skip] == [
        Skipped("it is switched off by its own `enabled`", on_purpose=True),
        Skipped("disableAllHooks in x.json switches it off", is_change=True),
        Skipped("it does not run when a subagent ends with ok", on_purpose=True),
    ]
