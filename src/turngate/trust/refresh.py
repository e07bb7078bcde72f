"""The hooks of a session after a person has reviewed them."""

from dataclasses import replace

from turngate.core.settings import Settings
from turngate.trust.review import place_of


def refreshed(settings: Settings, reviewed: Settings) -> Settings:
    """Return the settings of a session with the hooks that were approved or rejected since its start.

    A hook that has changed and is pending runs on as it was at the start, and so does one that is no longer configured.
    """
    running = {place_of(rule): rule for rule in settings.rules if not rule.pending}
    rules = [
        running.get(place_of(rule), rule) if rule.pending and not rule.rejected else rule
        for rule in reviewed.rules
    ]
    places = {place_of(rule) for rule in reviewed.rules}
    kept = [rule for rule in settings.rules if rule.source == "python" or place_of(rule) not in places]
    return replace(settings, rules=(*rules, *kept), env=reviewed.env, user_env=reviewed.user_env)
