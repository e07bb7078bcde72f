"""The output of `turngate doctor`: lines for people, and one JSON object."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from turngate.cli.console.conversation_text import flat
from turngate.cli.console.streams import paint
from turngate.core.hooks.kinds import label
from turngate.core.settings import Problem
from turngate.core.text import quote_name
from turngate.core.verdict.json_output import hook_json
from turngate.doctor.diagnosis import Diagnosis, Finding, HookDiagnosis, position
from turngate.doctor.environment import Fact
from turngate.doctor.hosts.diagnosis import HostDiagnosis, HostHookDiagnosis
from turngate.doctor.proof.proof import Proof

LABEL_WIDTH = len("will NOT hold")
_STYLES = {
    "will run": "good",
    "will run, but": "notice",
    "will NOT hold": "alert",
    "will NOT run": "alert",
    "proved": "good",
    "NOT PROVED": "alert",
    "cannot prove": "notice",
}
_RESULTS = ("proved", "NOT PROVED", "cannot prove")


def print_facts(facts: Iterable[Fact]) -> None:
    for fact in facts:
        text = f"{fact.name}: {fact.text}"
        print(paint(flat(f"! {text}"), "alert") if fact.is_problem else flat(text))
        _print_hint(fact.hint, "  ")


def print_diagnosis(diagnosis: Diagnosis) -> None:
    files = [*(hook.rule.file or "Python" for hook in diagnosis.hooks), *(p.file for p in diagnosis.problems)]
    for file in dict.fromkeys(files):
        print(paint(flat(file or "settings"), "bold"))
        for hook in diagnosis.hooks:
            if (hook.rule.file or "Python") == file:
                _print_hook(_name(hook), hook)
        for problem in diagnosis.problems:
            if problem.file == file:
                _print_problem(problem)


def print_host(diagnosis: HostDiagnosis) -> None:
    """Print the settings files of a host, with their stop hooks."""
    files = [*(hook.hook.file.name for hook in diagnosis.hooks), *(p.file for p in diagnosis.problems)]
    for file in dict.fromkeys(files):
        print(paint(flat(f"{file} of {diagnosis.host.title}"), "bold"))
        for places, hook in _lines_of(file, diagnosis):
            _print_hook(f"{places} {hook.name}", hook)
        for problem in diagnosis.problems:
            if problem.file == file:
                _print_problem(problem)


def _lines_of(file: str, diagnosis: HostDiagnosis) -> Iterator[tuple[str, HostHookDiagnosis]]:
    """Yield the hooks of a file and their positions; those of Turngate of which the same is known are one line."""
    groups: dict[object, list[HostHookDiagnosis]] = {}
    for hook in diagnosis.hooks:
        if hook.hook.file.name == file:
            key = hook.findings if hook.hook.is_turngate else hook.hook.position
            groups.setdefault(key, []).append(hook)
    for first, *others in groups.values():
        yield ", ".join(hook.hook.position for hook in (first, *others)), first


def _print_hook(name: str, hook: HookDiagnosis | HostHookDiagnosis) -> None:
    first, *others = hook.findings or (None,)
    is_named = first is not None and first.outlook != "will run"
    reason = f": {first.message}" if first and is_named else ""
    print(f"  {paint(f'{hook.outlook:<{LABEL_WIDTH}}', _STYLES[hook.outlook])}  {flat(name + reason)}")
    if first and is_named:
        _print_hint(first.hint, "    ")
    elif first:
        others.insert(0, first)
    for finding in others:
        if finding is not None:
            _print_further(finding)


def _print_further(finding: Finding) -> None:
    print(f"    {'note' if finding.severity == 'note' else 'also'}: {flat(finding.message)}")
    _print_hint(finding.hint, "      ")


def _print_problem(problem: Problem) -> None:
    text = ": ".join(filter(None, (problem.severity, problem.position, problem.message)))
    print(f"  {paint(flat(text), 'dim' if problem.severity == 'note' else 'alert')}")
    _print_hint(problem.hint, "    ")


def _print_hint(hint: str | None, indent: str) -> None:
    if hint:
        print(f"{indent}→ {flat(hint)}")


def print_proof(hook: HookDiagnosis, proof: Proof, *, is_first: bool) -> None:
    if is_first:
        print(paint("Proofs, each in a copy of the project", "bold"))
    text = f"{_name(hook)}: {proof.text}"
    print(f"  {paint(f'{proof.result:<{LABEL_WIDTH}}', _STYLES[proof.result])}  {flat(text)}")
    _print_hint(proof.hint, "    ")


def _name(hook: HookDiagnosis) -> str:
    return f"{position(hook.rule)} {quote_name(label(hook.rule.hook))}"


def host_summary(diagnosis: HostDiagnosis) -> str:
    title = diagnosis.host.title
    if diagnosis.runs_turngate:
        return paint(f"{title} asks Turngate at every stop", "good")
    return paint(f"{title} does NOT ask Turngate, so no hook of Turngate runs there", "alert")


def summary(diagnosis: Diagnosis, proofs: Iterable[Proof]) -> str:
    count = len(diagnosis.hooks)
    failing = sum(hook.fails_to_hold for hook in diagnosis.hooks)
    run = sum(hook.outlook != "will NOT run" for hook in diagnosis.hooks)
    parts = [f"{count} hook{'s' * (count != 1)}"]
    if count:
        parts.append(f"{run} will run" if run < count else "all will run" if count > 1 else "it will run")
    if failing:
        parts.append(f"{failing} gate{'s' * (failing != 1)} will NOT hold")
    results: Counter[str] = Counter(proof.result for proof in proofs)
    parts += [f"{results[result]} {result}" for result in _RESULTS if results[result]]
    return paint(", ".join(parts), "alert" if failing or results["NOT PROVED"] else "good")


def host_json(diagnosis: HostDiagnosis) -> dict[str, Any]:
    return {
        "name": diagnosis.host.name,
        "runs_turngate": diagnosis.runs_turngate,
        "facts": [fact._asdict() for fact in diagnosis.facts],
        "hooks": [
            {
                "event": hook.hook.event,
                "file": hook.hook.file.name,
                "position": hook.hook.position,
                "command": hook.hook.command,
                "is_turngate": hook.hook.is_turngate,
                "outlook": hook.outlook,
                "findings": [finding._asdict() for finding in hook.findings],
            }
            for hook in diagnosis.hooks
        ],
        "problems": [asdict(problem) for problem in diagnosis.problems],
    }


def report_json(
    diagnosis: Diagnosis, facts: Iterable[Fact], proofs: Mapping[int, Proof], project: str
) -> dict[str, Any]:
    return {
        "project": project,
        "turngate": [fact._asdict() for fact in facts],
        "hooks": [
            {
                "event": hook.rule.event,
                "file": hook.rule.file,
                "position": position(hook.rule),
                "hook": hook_json(hook.rule.hook),
                "gate": hook.is_gate,
                "key": hook.facts.key,
                "trust": hook.facts.trust,
                "outlook": hook.outlook,
                "findings": [finding._asdict() for finding in hook.findings],
                "last_run": hook.facts.last_run._asdict() if hook.facts.last_run else None,
                "proof": asdict(proofs[id(hook)]) if id(hook) in proofs else None,
            }
            for hook in diagnosis.hooks
        ],
        "problems": [asdict(problem) for problem in diagnosis.problems],
    }
