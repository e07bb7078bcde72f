"""The goal of a session among the hooks of its stop, and its end when it is met."""

from collections.abc import Iterable

from turngate.core.hooks.kinds import GateHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.decisions import Allow
from turngate.core.verdict.hook_run import HookRun
from turngate.gates.session_goal import GOAL_SOURCE, Goal, change_goal, read_goals


def with_goal(settings: Settings, goal: Goal | None) -> Settings:
    """Add the gate of a goal. No settings switch it off or change its mode."""
    if goal is None:
        return settings
    options = {"goal": goal.text, "since": goal.since}
    hook = GateHook("goal", goal.proof, options=options, id="goal", mode="gate")
    return settings.with_rules(Rule("Stop", hook, source=GOAL_SOURCE, family=GOAL_SOURCE, level="user"))


def clear_met(runs: Iterable[HookRun], state: str) -> list[str]:
    """Clear the goal if one of these runs has shown that it is met; return what the user is told."""
    rules = [run.rule for run in runs if run.rule.source == GOAL_SOURCE and isinstance(run.decision, Allow)]
    met = [rule.hook.options for rule in rules if isinstance(rule.hook, GateHook)]
    return [
        f"the goal is met, and cleared: {each['goal']}"
        for each in met
        if any(goal.status == "active" for goal in read_goals(state, each["since"]))
        and change_goal(state, each["since"], None)
    ]
