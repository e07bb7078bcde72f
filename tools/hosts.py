"""Writes the part of docs/reference/hosts.md that is made from the data in `turngate.hosts`."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host, HostAnswer

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "hosts.md"
BEGIN = "<!-- written by `make hosts-table` from src/turngate/hosts -->\n"
END = "<!-- end of the written part -->\n"
UNITS = {"s": 1, "ms": 1000}

BLOCK = HostAnswer(decision="block", reason="…")
HALT = HostAnswer(decision="halt", reason="…")
NOTICE = HostAnswer(decision="allow", notices=("…",))


def code(text: str) -> str:
    return f"`{text}`"


def event(host: Host, name: str) -> str:
    return code(host.events[name]) if name in host.events else "none"


def answer(host: Host, given: HostAnswer) -> str:
    output = host.write_answer(given)
    if output.code:
        return f"exit code {output.code}, {code(output.stderr)} on stderr"
    return code(output.stdout.replace("\\u2026", "…")) if output.stdout else "nothing"


def timeout(host: Host) -> str:
    if host.timeout_key not in str(host.entry("")):
        return "none"
    installed = f"{host.timeout_key}: {host.installed_timeout_s * UNITS[host.timeout_unit]:g}"
    default = "not documented" if host.default_timeout_s is None else f"{host.default_timeout_s:g} s"
    return f"{default}; `{installed}`"


ROWS: dict[str, Callable[[Host], str]] = {
    "name": lambda host: code(host.name),
    "version that was run": lambda host: host.version or "not run",
    "stop of the agent": lambda host: event(host, "Stop"),
    "stop of a subagent": lambda host: event(host, "SubagentStop"),
    "file of `--user`": lambda host: code(host.files["user"]),
    "file of `--project`": lambda host: code(host.files["project"]) if "project" in host.files else "none",
    "also reads the files of": lambda host: (
        ", ".join(HOSTS[name].title for name in host.reads_files_of) or "–"
    ),
    "timeout of a hook; installed": timeout,
    "its own limit of continuations": lambda host: "none" if host.limit is None else str(host.limit),
    "a block is": lambda host: answer(host, BLOCK),
    "a notice is": lambda host: answer(host, NOTICE),
    "a hook that halts": lambda host: (
        "ends the turn" if '"continue":false' in host.write_answer(HALT).stdout else "allows the stop"
    ),
}


def matrix() -> Iterable[str]:
    hosts = HOSTS.values()
    yield f"| | {' | '.join(host.title for host in hosts)} |"
    yield "|---" * (len(HOSTS) + 1) + "|"
    for name, cell in ROWS.items():
        yield f"| {name} | {' | '.join(map(cell, hosts))} |"


def section(host: Host) -> Iterable[str]:
    source = (
        "run by `make hosts`: [results](hosts-results.md)"
        if host.version
        else "from its documentation, not run"
    )
    yield f"### {host.title}"
    yield ""
    yield f"`turngate install {host.name}`; {source}. [Its page about hooks]({host.documentation})."
    yield ""
    if host.limit is None:
        yield "- It has no limit of its own: only that of Turngate ends a loop."
    if host.not_shown:
        yield f"- Notices are not shown {host.not_shown}. They are in the journal: `turngate log`."
    yield from (f"- {sentence}" for sentence in host.limitations)
    for step in dict.fromkeys(host.steps_by_hand.values()):
        levels = [f"`--{level}`" for level in host.steps_by_hand if host.steps_by_hand[level] == step]
        where = f" ({levels[0]})" if len(levels) == 1 else ""
        yield f"- By hand{where}: {step}."


def written_part() -> str:
    sections = (line for host in HOSTS.values() for line in ("", *section(host)))
    return "\n".join([*matrix(), "", "## What each host does differently", *sections, ""])


def with_written_part(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE.name} does not have the two marks {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{written_part()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_written_part(PAGE.read_text()))
