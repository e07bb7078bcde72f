"""The keys of an answer that only Turngate reads, from hooks that know it: `notEnforced`, `waits`, `continuations`."""

from collections.abc import Mapping
from typing import Any

from turngate.core.decisions import EXPECTED_CONTINUATIONS, is_continuations
from turngate.core.text import describe_json, replace_surrogates


def gate_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an `Answer` that these keys set; a value that is not valid sets none."""
    fields: dict[str, Any] = {}
    why = value.get("notEnforced")
    if isinstance(why, str) and why.strip():
        fields["not_enforced"] = replace_surrogates(why)
    if value.get("waits") is True and value.get("continue") is False:
        fields["waits"] = True
    if is_continuations(value.get("continuations")):
        fields["continuations"] = value["continuations"]
    return fields


def gate_problem(value: Mapping[str, Any]) -> str | None:
    """Return why `notEnforced` cannot be read. Such an answer is not consent, whatever was meant."""
    why = value.get("notEnforced")
    if why is None or (isinstance(why, str) and why.strip()):
        return None
    return f"`notEnforced` is {describe_json(why)}, expected a string that says why"


def gate_warnings(value: Mapping[str, Any]) -> list[str]:
    warnings = []
    waits, continuations = value.get("waits"), value.get("continuations")
    if not isinstance(waits, bool | None):
        warnings.append(f"`waits` is {describe_json(waits)}, expected true or false: ignored")
    elif waits and value.get("continue") is not False:
        warnings.append("`waits` has an effect only with `continue: false`: ignored")
    if continuations is not None and not is_continuations(continuations):
        warnings.append(
            f"`continuations` is {describe_json(continuations)}, expected {EXPECTED_CONTINUATIONS}: ignored"
        )
    return warnings
