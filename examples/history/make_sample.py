"""Makes `sample.jsonl`, the history that `turngate serve --demo` shows: three projects over five weeks, one session a line.

    python examples/history/make_sample.py > examples/history/sample.jsonl

In a mark, `block` is the place of the block among the records of its session.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

SEED, DAYS, DAY_S = 7, 35, 86_400
HOSTS = ("claude", "claude", "codex", "gemini", "turngate")
SUBAGENTS = ("explore", "implement")
PROJECTS = {
    "/home/ada/shop": ("Add gift cards", "Round prices to cents", "Speed up the search", "Sort the cart"),
    "/home/ada/api": ("Paginate /orders", "Return 404, not 500", "Rotate the signing key"),
    "/home/ada/docs": ("Rewrite the tutorial", "Fix dead links"),
}
# By gate: how often it blocks, how long it usually takes, and what it says.
GATES = {
    "tests": (
        0.3,
        14.0,
        "`pytest -q`: exit code 1\nE       assert Decimal('12.49') == Decimal('12.50')\n\ntests/test_cart.py:41: AssertionError",
    ),
    "lint": (0.12, 0.6, "`ruff check .`: exit code 1\nsrc/cart.py:8:5: F841 `rate` is never used"),
    "types": (0.15, 4.0, '`mypy`: exit code 1\nsrc/cart.py:17: error: got "float", expected "Decimal"'),
    "changelog": (0.2, 0.02, "`git diff --quiet main -- CHANGELOG.md`: exit code 1"),
    "judge": (0.1, 6.0, "The agent says that all tests pass, but it has run only two of them."),
}
ANSWERS = ("Done. All tests pass.", "I have fixed it and added a test.", "The change is complete.")

Record = dict[str, Any]


def sessions() -> Iterator[Record]:
    """Yield the sessions, the oldest first; times are seconds before now, and the last stop was a minute ago."""
    rng = random.Random(SEED)
    for age in range(DAYS)[::-1]:
        for number in range(rng.randint(1, 3) if age % 7 not in (3, 4) else 0)[::-1]:
            end = -60 - age * DAY_S - number * rng.uniform(3600, 5400)
            project = rng.choices([*PROJECTS], (5, 3, 1))[0]
            yield _session(rng, f"{rng.getrandbits(64):016x}", project, end)


def _session(rng: random.Random, name: str, project: str, end: float) -> Record:
    records = list(_turns(rng, project))
    begin = end - records[-1]["time"]
    for record in records:
        record["time"] = round(begin + record["time"], 2)
    blocks = [
        place
        for place, each in enumerate(records)
        if each["kind"] == "hook" and each["hook"]["id"] == "changelog" and each["outcome"] == "block"
    ]
    mark = {"time": end, "kind": "mark", "wrong": True, "why": "nothing was released"}
    records += [{**mark, "block": place} for place in blocks[: rng.randint(0, 1)]]
    if records[-1].get("kind") == "turn_end" and rng.random() < 0.5:
        records.append({"time": end, "kind": "accepted", "why": "the release does not need it"})
    title = rng.choice(PROJECTS[project])
    return {
        "session": name,
        "project": project,
        "host": rng.choice(HOSTS),
        "title": title,
        "records": records,
    }


def _turns(rng: random.Random, project: str) -> Iterator[Record]:
    """Yield the records of one to three turns, some with subagents, with times from 0 on."""
    when = 0.0
    for _ in range(rng.randint(1, 3)):
        agents = [{"event": "Stop"}]
        for name in SUBAGENTS if rng.random() < 0.25 else ():
            subagent = {"agent_id": f"{rng.getrandbits(32):08x}", "agent_type": name}
            agents.insert(-1, {"event": "SubagentStop", **subagent})
        for agent in agents:
            names = [name for name in GATES if name != "judge" or project.endswith("shop")]
            for attempt in range(4):
                when += rng.uniform(40, 400)
                runs = [_run(rng, name, attempt) for name in names[: 2 if "agent_id" in agent else 5]]
                yield from ({**run, **agent, "time": when + run["seconds"]} for run in runs)
                when += max(run["seconds"] for run in runs)
                blocks = [run for run in runs if run["outcome"] == "block"]
                answer = {"kind": "verdict", **agent, "time": when, "answer": rng.choice(ANSWERS)}
                if not blocks:
                    yield {**answer, "verdict": "stop", "ended_by": "allowed"}
                    break
                blocked_by = [run["hook"]["id"] for run in blocks]
                prompt = "\n\n".join(run["reason"] for run in blocks)
                yield {**answer, "verdict": "continue", "blocked_by": blocked_by, "prompt": prompt}
            else:
                reason = f"Turn ended after 3 continuations (the limit). Still blocked by: {', '.join(blocked_by)}."
                yield {"kind": "turn_end", **agent, "time": when, "ended_by": "capped", "reason": reason}


def _run(rng: random.Random, name: str, attempt: int) -> Record:
    chance, usual, reason = GATES[name]
    run: Record = {"kind": "hook", "hook": {"type": "gate", "gate": name, "id": name}, "outcome": "allow"}
    run["seconds"] = round(usual * rng.lognormvariate(0, 0.35), 2)
    if rng.random() < chance / (1 + attempt / 3):
        run |= {"outcome": "block", "reason": reason}
    elif name == "judge" and rng.random() < 0.03:
        run |= {"outcome": "timeout", "reason": "the model did not answer within 30 s"}
    if name == "judge":
        run["evaluation"] = {"input_tokens": 2100, "output_tokens": 90, "cost_usd": 0.008}
    return run


if __name__ == "__main__":
    for each in sessions():
        print(json.dumps(each, separators=(",", ":")))
