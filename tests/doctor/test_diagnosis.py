import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given

from tests.support.builders import rule, settings, write_settings
from tests.support.strategies import settings_values
from turngate.cli.main import main
from turngate.core.constants import EVENTS
from turngate.core.settings import Problem, Rule, Settings
from turngate.doctor.diagnosis import Diagnosis, Finding, HookDiagnosis, HookFacts, LastRun, diagnose


def facts(rule: Rule, last: LastRun | None = None) -> HookFacts:
    return HookFacts(rule, "Stop:1", "approved", "approve it", last)


def diagnosis(hooks: Settings, *problems: Problem, last: LastRun | None = None) -> Diagnosis:
    known = [facts(rule, last) for rule in hooks.rules]
    return diagnose(known, hooks, problems, project="/p", agent_types=("general-purpose",))


def problem(**fields: Any) -> Problem:
    return Problem(**{"file": "f", "message": "is wrong", "event": "Stop", "index": "[0].hooks[0]", **fields})


STOP = rule(event="Stop", file="f", index="[0].hooks[0]")


def test_a_problem_belongs_to_the_hook_at_its_place() -> None:
    other = rule("other", file="f", index="[0].hooks[1]")
    elsewhere = problem(file="g")
    found = diagnosis(Settings(rules=(STOP, other)), problem(), elsewhere)
    assert found == Diagnosis(
        (
            HookDiagnosis(facts(STOP), True, (Finding("will NOT run", "error", "is wrong"),)),
            HookDiagnosis(facts(other), True, ()),
        ),
        (elsewhere,),
    )


def test_a_problem_of_a_group_belongs_to_all_of_its_hooks() -> None:
    rules = tuple(rule(str(n), file="f", index=f"[{n // 2}].hooks[{n % 2}]") for n in range(4))
    of_group = problem(index="[1]", field="matcher", severity="warning")
    found = diagnosis(Settings(rules=rules), of_group)
    assert [hook.outlook for hook in found.hooks] == [
        "will run",
        "will run",
        "will run, but",
        "will run, but",
    ]


def test_a_problem_of_one_group_is_not_one_of_the_tenth() -> None:
    rules = (rule(file="f", index="[10].hooks[0]"),)
    assert diagnosis(Settings(rules=rules), problem(index="[1]")).hooks[0].findings == ()


@pytest.mark.parametrize(
    ("severity", "field", "outlook"),
    [
        ("error", "timeout", "will NOT run"),
        ("warning", "command", "will NOT hold"),
        ("warning", "onFailure", "will NOT hold"),
        ("warning", "timeout", "will run, but"),
        ("note", "command", "will run"),
    ],
)
def test_what_a_problem_means_for_a_gate(severity: str, field: str, outlook: str) -> None:
    [hook] = diagnosis(Settings(rules=(STOP,)), problem(severity=severity, field=field)).hooks
    assert hook.outlook == outlook


def test_the_worst_finding_is_the_first() -> None:
    problems = [problem(severity=each, message=each) for each in ("note", "warning", "error")]
    [hook] = diagnosis(Settings(rules=(STOP,)), *problems).hooks
    assert [finding.message for finding in hook.findings] == ["error", "warning", "note"]


@pytest.mark.parametrize("event", EVENTS)
def test_a_hook_of_every_event_can_run(event: str) -> None:
    [hook] = diagnosis(settings("check", event=event)).hooks
    assert hook.findings == ()


@pytest.mark.parametrize("outcome", ["allow", "block", "advise", "halt", "skipped", "would_block"])
def test_a_last_run_with_a_decision_is_not_a_finding(outcome: str) -> None:
    [hook] = diagnosis(settings("check"), last=LastRun(1.0, outcome, "x")).hooks
    assert (hook.findings, hook.facts.last_run) == ((), LastRun(1.0, outcome, "x"))


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@given(value=settings_values())
def test_any_settings_can_be_diagnosed(
    value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(tmp_path, "turngate", json.dumps(value))
    code = main(["doctor", "--project", str(tmp_path), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (code in (0, 1, 13), sorted(report)) == (True, ["hooks", "problems", "project", "turngate"])
