"""Find a session by the beginning of its id, as `turngate sessions` and `turngate runs` show it."""

from collections.abc import Iterable

from turngate.errors import UsageError

MAX_LISTED_IDS = 10


def find_session(given: str, ids: Iterable[str]) -> str | None:
    """Return the session with this id, or the only one whose id starts so. None: there is none.

    Raises UsageError, which lists them, if there are several.
    """
    matches = sorted({each for each in ids if each.startswith(given)})
    if given in matches:
        return given
    if len(matches) > 1:
        lines = "".join(f"\n  {each}" for each in matches[:MAX_LISTED_IDS])
        more = f"\n  and {len(matches) - MAX_LISTED_IDS} more" if len(matches) > MAX_LISTED_IDS else ""
        raise UsageError(f"{given} matches {len(matches)} sessions; there are{lines}{more}")
    return matches[0] if matches else None


def session_of_subagent(given: str) -> str:
    """Return the session of the one subagent whose id starts so. Raises UsageError if there is none."""
    return _find_subagent(given)[0]


def transcript_of_subagent(given: str) -> str:
    """Return the transcript of the one subagent whose id starts so. Raises UsageError if there is none."""
    return _find_subagent(given)[1]


def _find_subagent(given: str) -> tuple[str, str]:
    # lazy: loads the registry, which is needed only if no session has this id
    from turngate.cli.commands.runs.summary import open_registry, summarize  # noqa: PLC0415

    with open_registry() as registry:
        summaries = [each for each in summarize(registry) if each.matches(given)] if registry else []
    if len(summaries) == 1:
        return summaries[0].last.parent, summaries[0].last.transcript
    if summaries:
        lines = "".join(f"\n  {each.id}  {each.title}" for each in summaries[:MAX_LISTED_IDS])
        raise UsageError(f"{given} matches {len(summaries)} subagents; there are{lines}")
    raise UsageError(f"there is no session {given}; `turngate sessions` lists them")
