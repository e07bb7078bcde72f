"""Counts what became of the subagents, from the registry, the inbox and the transcripts."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tests.support.crash.parents import ParentSpec, read_lines, runs_of
from tests.support.crash.workers import REDIRECTS, redirect_prompt
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.registry import Registry
from turngate.transcript.reader import read_records


@dataclass
class Totals:
    runs: int = 0
    kills: int = 0
    recoveries: int = 0  # of runs, by another process
    announced_once: int = 0
    lost: int = 0
    twice: int = 0
    above_limit: int = 0
    wrong: list[str] = field(default_factory=list)  # every other deviation
    seconds: float = 0.0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        )

    @property
    def is_correct(self) -> bool:
        faults = (self.lost, self.twice, self.above_limit, len(self.wrong))
        return self.announced_once == self.runs and not any(faults)

    def __str__(self) -> str:
        counts = {name.replace("_", " "): value for name, value in asdict(self).items()}
        counts |= {"seconds": f"{self.seconds:.1f}", "wrong": len(self.wrong)}
        return "; ".join(f"{name} {value}" for name, value in counts.items())


def count_recoveries(spec: ParentSpec) -> int:
    return len(read_lines(spec.recovery_log))


def check_subagents(spec: ParentSpec, totals: Totals) -> None:
    """Add what the registry, the inbox and the subagents' transcripts hold before the parent resumes."""
    registry = Registry(spec.state)
    try:
        runs_by_label: dict[str, list[SubagentRun]] = {}
        for run in runs_of(registry, spec):
            runs_by_label.setdefault(run.label, []).append(run)
        inbox = Counter(run.chain for run in registry.inbox(spec.session))
    finally:
        registry.close()
    totals.runs += spec.subagents
    for label in spec.labels:
        runs = runs_by_label.pop(label, [])
        announced = sum(run.announced is not None for run in runs)
        totals.announced_once += announced == 1
        totals.lost += announced == 0
        totals.twice += announced > 1
        if runs:
            last = runs[-1]
            totals.above_limit += last.steer_count > REDIRECTS
            totals.wrong += _check_chain(label, runs)
            waiting = inbox.pop(last.chain, 0)
            # A parent that waits for one subagent also takes the reports of the others.
            was_taken = spec.foreground_every and last.taken is not None and waiting == 0
            if waiting != 1 and not was_taken:
                totals.wrong.append(f"{label} is not in the inbox")
    totals.wrong += [f"{label} was never requested" for label in (*runs_by_label, *inbox)]


def _check_chain(label: str, runs: Sequence[SubagentRun]) -> list[str]:
    states = [(run.state, run.outcome, run.steer_count) for run in runs]
    expected: list[object] = [("replaced", "ok", number + 1) for number in range(REDIRECTS)]
    expected = [*expected, ("done", "ok", REDIRECTS)][-len(states) :]  # old runs may be pruned
    problems = [] if states == expected else [f"{label} has the runs {states}"]
    task = f"task {label}"
    prompts = [task, *(redirect_prompt(number + 1) for number in range(REDIRECTS))]
    texts = [text for n, prompt in enumerate(prompts, 1) for text in (prompt, f"answer {n} to {task}")]
    records = list(read_records(runs[-1].transcript))
    conversation = [_text_of(record) for record in records if "message" in record]
    # A redirect by a hook has a heading before its text.
    if len(conversation) != len(texts) or not all(map(str.endswith, conversation, texts)):
        problems.append(f"{label} has the conversation {conversation}")
    keys = Counter(record["key"] for record in records if "key" in record)
    if len(keys) != len(prompts) or set(keys.values()) != {1} or not {run.id for run in runs} <= set(keys):
        problems.append(f"{label} has the keys {keys}")
    return problems


def _text_of(record: dict[str, Any]) -> str:
    content = record["message"]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "?") for block in content)


def check_parent(spec: ParentSpec, totals: Totals) -> None:
    """Check that the parent's transcript has one message for each subagent and that its inbox is empty."""
    registry = Registry(spec.state)
    try:
        chains = {run.chain for run in runs_of(registry, spec)}
        waiting = registry.inbox(spec.session)
    finally:
        registry.close()
    path = os.path.join(spec.state, "sessions", spec.session, "chat.jsonl")
    keys = Counter(record["key"] for record in read_records(path) if "key" in record)
    if waiting or keys != Counter(chains):
        twice = [key for key, count in keys.items() if count > 1]
        totals.wrong.append(
            f"the transcript of {spec.session} has {keys.total()} of {len(chains)} reports, "
            f"{len(twice)} of them more than once; {len(waiting)} in the inbox"
        )
