"""Journals as spans and events of OpenTelemetry."""

from typing import Any

import pytest

from tests.history.test_stats import TESTS, run, verdict
from turngate.cli.commands.log.otlp import request_body, turn_entries, turns_of
from turngate.history.journals import Record, read_stops

Entries = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def entries(*records: Record) -> Entries:
    """Return the spans and the events of the turns of a session."""
    return turn_entries("s", turns_of(read_stops([{"project": "/p", **each} for each in records])))


def plain(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a span or event with its attributes as a mapping and without ids."""
    attributes = {
        each["key"]: int(each["value"]["intValue"])
        if "intValue" in each["value"]
        else each["value"]["stringValue"]
        for each in entry["attributes"]
    }
    return {
        **{key: value for key, value in entry.items() if not key.endswith("Id")},
        "attributes": attributes,
    }


SHARED = {"gen_ai.conversation.id": "s", "turngate.project": "/p", "turngate.event": "Stop"}
BLOCKED = run("block", 10, reason="red", exit_code=2)


def test_a_turn_is_a_span_with_one_below_it_for_each_run() -> None:
    spans, _ = entries(
        BLOCKED, verdict("tests", verdict="continue"), run("allow", 20), verdict(verdict="stop", time=21)
    )
    assert [plain(span) for span in spans] == [
        {
            "name": "turngate.gate tests",
            "kind": 1,
            "startTimeUnixNano": "9000000000",
            "endTimeUnixNano": "10000000000",
            "attributes": {
                **SHARED,
                "turngate.event": "Stop",
                "turngate.hook": "tests",
                "turngate.outcome": "blocked",
                "process.exit.code": 2,
            },
        },
        {
            "name": "turngate.gate tests",
            "kind": 1,
            "startTimeUnixNano": "19000000000",
            "endTimeUnixNano": "20000000000",
            "attributes": {
                **SHARED,
                "turngate.event": "Stop",
                "turngate.hook": "tests",
                "turngate.outcome": "passed",
            },
        },
        {
            "name": "invoke_agent",
            "kind": 1,
            "startTimeUnixNano": "9000000000",
            "endTimeUnixNano": "21000000000",
            "attributes": {
                **SHARED,
                "gen_ai.operation.name": "invoke_agent",
                "turngate.event": "Stop",
                "turngate.ended_by": "allowed",
                "turngate.continuations": 1,
            },
        },
    ]
    (first, second, turn) = spans
    assert {first["traceId"], second["traceId"]} == {turn["traceId"]}
    assert (first["parentSpanId"], second["parentSpanId"], "parentSpanId" in turn) == (
        turn["spanId"],
    ) * 2 + (False,)


@pytest.mark.parametrize(
    ("record", "severity", "about"),
    [
        (run("allow", 10), 9, {"gen_ai.evaluation.score.label": "passed"}),
        (BLOCKED, 13, {"gen_ai.evaluation.score.label": "blocked", "gen_ai.evaluation.explanation": "red"}),
        (run("timeout", 10), 13, {"gen_ai.evaluation.score.label": "not_enforced", "error.type": "timeout"}),
    ],
    ids=["passed", "blocked", "not enforced"],
)
def test_a_decision_is_an_evaluation_result(record: Record, severity: int, about: dict[str, str]) -> None:
    spans, events = entries(record, verdict(verdict="stop", time=11))
    assert [plain(event) for event in events] == [
        {
            "timeUnixNano": "10000000000",
            "eventName": "gen_ai.evaluation.result",
            "severityNumber": severity,
            "attributes": {"gen_ai.evaluation.name": "tests", **about, **SHARED},
        }
    ]
    assert events[0]["spanId"] == spans[0]["spanId"]


def test_a_turn_at_the_limit_ends_there_and_one_that_goes_on_is_not_sent() -> None:
    end = {"kind": "turn_end", "event": "Stop", "time": 12, "ended_by": "capped"}
    spans, _ = entries(
        BLOCKED,
        verdict("tests", verdict="continue"),
        end,
        run("block", 20),
        {**run("block"), "event": "PreToolUse"},
    )
    assert [plain(span)["attributes"].get("turngate.ended_by") for span in spans] == [None, "capped"]


def test_the_same_records_give_the_same_ids() -> None:
    records = (run("allow", 10, {**TESTS}), verdict(verdict="stop", time=11))
    assert entries(*records) == entries(*records)


def test_requests_name_the_service() -> None:
    resource = {
        "attributes": [
            {"key": "service.name", "value": {"stringValue": "turngate"}},
            {"key": "service.version", "value": {"stringValue": "1.2"}},
        ]
    }
    scope = {"name": "turngate"}
    assert request_body("traces", [{"a": 1}], "1.2") == {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [{"a": 1}]}]}]
    }
    assert request_body("logs", [{"a": 1}], "1.2") == {
        "resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": [{"a": 1}]}]}]
    }
