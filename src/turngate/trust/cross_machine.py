"""Hooks of another machine that act on this one, where the keys of the user are: they run only when they are approved."""

from dataclasses import replace

from turngate.core.constants import MANAGED
from turngate.core.hooks.kinds import GateHook, Hook, HttpHook
from turngate.core.settings import Rule
from turngate.trust.fingerprint import asks_judge
from turngate.trust.levels import owner_of


def without_first_sight(rule: Rule) -> Rule:
    """Return a rule of an administrator of another machine as one that has to be approved, if it acts on this machine."""
    is_managed = owner_of(rule) is None and MANAGED in (rule.level, rule.source)
    return replace(rule, level="user") if is_managed and acts_here(rule.hook) else rule


def acts_here(hook: Hook) -> bool:
    """Return whether a hook acts on this machine wherever the project is: it sends requests, or asks a model."""
    if isinstance(hook, GateHook):
        return hook.gate == "notify" or asks_judge(hook)
    return isinstance(hook, HttpHook) or hook.asks_model
