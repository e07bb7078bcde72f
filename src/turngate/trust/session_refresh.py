"""The hooks of a session after a person has reviewed them."""

from collections.abc import Iterable
from dataclasses import replace

from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.hints import GONE
from turngate.trust.fingerprint import definition_of
from turngate.trust.levels import place_of


def refreshed(settings: Settings, reviewed: Settings) -> Settings:
    """Return the settings of a session with the hooks that were approved or rejected since its start.

    A hook that has changed and is pending runs on as it was at the start, and so does one that is no longer configured:
    no person has decided about it.
    """
    running = [rule for rule in settings.rules if not rule.pending]
    lost = _undecided(running, reviewed.rules)
    rules = []
    for rule in reviewed.rules:
        if not rule.pending or rule.rejected:
            rules.append(rule)
            continue
        what, place = _what(rule), place_of(rule)
        old = next((each for each in running if _what(each) == what), None)
        old = old or next((each for each in lost if place_of(each) == place or _is_gone(each, rule)), None)
        lost = [each for each in lost if each is not old]
        rules.append(old or rule)
    return replace(settings, rules=(*rules, *lost), env=reviewed.env, user_env=reviewed.user_env)


def _undecided(running: Iterable[Rule], reviewed: Iterable[Rule]) -> list[Rule]:
    """Return the hooks of the session that are configured no longer, and that no approved hook has replaced."""
    reviewed, running = tuple(reviewed), tuple(running)
    configured, known = set(map(_what, reviewed)), set(map(_what, running))
    approved = [rule for rule in reviewed if not rule.pending]
    places = {place_of(rule) for rule in approved if _what(rule) not in known}
    ids = {(rule.event, rule.hook.id) for rule in approved if rule.hook.id}
    return [
        rule
        for rule in running
        if rule.source == "python"
        or (
            _what(rule) not in configured
            and place_of(rule) not in places
            and (rule.event, rule.hook.id) not in ids
        )
    ]


def _is_gone(rule: Rule, reported: Rule) -> bool:
    """Return whether a hook of the session is the one that is reported as no longer configured."""
    return reported.pending == GONE and (rule.event, rule.file, hook_text(rule.hook)) == (
        reported.event,
        reported.file,
        hook_text(reported.hook),
    )


def _what(rule: Rule) -> tuple[str | None, str]:
    """Return what a hook is, wherever it is in its file."""
    return rule.file, definition_of(rule)
