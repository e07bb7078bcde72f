"""Argument declarations of every command; loads nothing heavy."""

import argparse
from collections.abc import Sequence
from importlib import import_module

from turngate.core.constants import EVENTS, FAMILIES
from turngate.errors import UsageError

USAGE = 64


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)  # a fixed width: asking the terminal is slow


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override] # NoReturn, but typing is slow to load
        raise UsageError(f"{message}; `{self.prog} --help` shows how to call it")


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="turngate",
        description="Decides whether an AI agent may stop: asks the project's hooks.",
        epilog="Each command explains itself: turngate fire --help",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser, prog="turngate"
    )
    builders = {
        "run": _run,
        "demo": _demo,
        "fire": _fire,
        "check": _check,
        "schema": _schema,
        "sessions": _sessions,
        "log": _log,
        "runs": _runs,
    }
    wanted = builders.get(words[0]) if words else None
    for build in (wanted,) if wanted else builders.values():  # one parser is quicker made than all
        build(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        print(f"turngate {import_module('importlib.metadata').version('turngate')}")
        raise SystemExit(0)


def _run(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "run",
        "run an agent on a task under its stop hooks",
        "Runs an agent on a task in a project. When it says that it is done, the project's hooks are asked.\n\n"
        "  turngate run                                  a conversation at the terminal\n"
        "  turngate run -p 'fix the failing test'        one turn, the answer on stdout\n"
        "  turngate run -p - --output-format json        the prompt from stdin, one JSON object\n"
        "  turngate run -p hello --model scripted:s.json a model that replays a script",
        "Exit codes: 0 it stopped and no gate objects, 10 capped or stalled (a gate still refuses), 11 halted by a hook,\n"
        "12 it waits for the user, 13 with --strict: a gate failed, timed out or was skipped, 20 the agent, the model or\n"
        "its turn limit failed, 64 wrong usage, 70 our own fault, 74 the answer could not be written to stdout,\n"
        "129 hung up, 130 interrupted, 131 quit, 143 terminated.",
    )
    add = parser.add_argument
    add("prompt", nargs="?", metavar="PROMPT", help="what to do; - reads stdin")
    add("-p", "--print", action="store_true", help="one turn, no conversation")
    add(
        "--model",
        metavar="M",
        help="PROVIDER:NAME, or scripted:FILE; prompt hooks ask a small one of that provider",
    )
    _project_options(parser)
    add(
        "--add-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder outside of the project that the tools may use too; may be given again",
    )
    add("--session", metavar="ID", help="the session to go on with, or the name of a new one")
    add(
        "--resume",
        action="store_true",
        help="go on with the newest session, or with the one that --session names",
    )
    add("--limit", type=_count, metavar="N", help="how often hooks may send the agent on in one turn")
    add("--max-turns", type=_count, metavar="N", help="how often the model may be asked in one turn")
    modes = ["default", "acceptEdits", "plan", "bypassPermissions"]
    add("--permission-mode", choices=modes, default="default", metavar="MODE", help=", ".join(modes))
    add(
        "--allow",
        action="append",
        default=[],
        metavar="TOOL",
        help="a tool that needs no permission; may be given again",
    )
    _hook_options(parser)
    add("--no-hooks", action="store_true", help="ask no hooks at all")
    forms = ["text", "json", "stream-json"]
    add("--output-format", choices=forms, default="text", metavar="F", help="text, json or stream-json")


def _demo(commands: "argparse._SubParsersAction[_Parser]") -> None:
    _command(
        commands,
        "demo",
        "the whole story, offline, in under a minute",
        "An agent says that it is done, is refused by a hook, repairs its work and is allowed to stop.",
    )


def _fire(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "fire",
        "ask the hooks of one event once and print the verdict",
        "Asks the hooks of one event, as if an agent had just said that it is done, and prints the verdict.\n\n"
        "  turngate fire Stop                     the hooks of the project in this folder\n"
        "  turngate fire Stop --input event.json  with an event of your own; - reads stdin\n"
        "  turngate fire SubagentStop --json      one JSON object for programs\n\n"
        "Prompt and agent hooks ask their `model`, the `judge` of the settings, or a small model of the provider whose\n"
        "key is in the environment.",
        "Exit codes: 0 the agent may stop, 10 it goes on (a hook refuses), 11 halted by a hook, 13 with --strict:\n"
        "it may stop, but a gate failed, timed out or was skipped, 64 wrong usage, 70 our own fault,\n"
        "130 interrupted, 143 terminated.",
    )
    add = parser.add_argument
    add("event", type=_event, choices=list(EVENTS), metavar="EVENT", help=", ".join(EVENTS))
    _project_options(parser)
    add("--input", metavar="FILE", help="the event as JSON; - reads stdin; what it leaves out is filled in")
    _hook_options(parser)
    add("--json", action="store_true", help="print one JSON object")


def _check(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "check",
        "every problem of the settings at once",
        "Shows every problem of the project's settings: file, event, position, field, what was expected; and notes where\n"
        "nobody would answer a prompt or agent hook.",
        "Exit codes: 0 clean, 1 problems, 64 wrong usage, 70 our own fault.",
    )
    _project_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _schema(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "schema",
        "the JSON Schemas of settings, hook input and hook output",
        "Prints a JSON Schema, for editors and validators; without a name all of them in one object.",
    )
    names = ["settings", "input", "output"]
    parser.add_argument("name", nargs="?", choices=names, metavar="NAME", help="settings, input or output")


def _sessions(commands: "argparse._SubParsersAction[_Parser]") -> None:
    add = _command(
        commands, "sessions", "earlier conversations", "Lists, shows or removes earlier conversations."
    ).add_argument
    actions = ["list", "show", "prune"]
    add("action", nargs="?", choices=actions, default="list", metavar="ACTION", help="list, show or prune")
    add("session", nargs="?", metavar="ID", help="the session to show")
    add("--days", type=float, help="prune: how long a session is kept (default: the settings', 30)")
    add("--json", action="store_true", help="print one JSON list")


def _runs(commands: "argparse._SubParsersAction[_Parser]") -> None:
    codes = "Exit codes: 0 done, 64 wrong usage (also a run that is not known or is finished already), 70 our own fault,\n"
    parser = _command(
        commands,
        "runs",
        "subagents: who works, steer, kill, recover",
        "Shows what subagents do and did, sends them on, ends them, and goes on with what a crash left.\n\n"
        "  turngate runs                           who works, since when, how often sent back and why\n"
        "  turngate runs show 3fa9                 everything about one; the beginning of its id is enough\n"
        "  turngate runs steer 3fa9 'only src/'    it drops what it does and goes on with this\n"
        "  turngate runs kill 3fa9                 ends it and everything that it has started\n"
        "  turngate runs recover                   goes on with what a process left that died",
        f"{codes}130 interrupted, 143 terminated. Each action explains itself: turngate runs recover --help",
    )
    _list_options(parser, default=False)
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=_Parser, prog="turngate runs", title="actions"
    )
    ends = f"{codes}130 interrupted, 143 terminated."
    listed = _command(
        actions,
        "list",
        "a table of all (as without an action)",
        "One line for each subagent, the newest last; * marks those that are not finished. BACK is how often hooks\n"
        "have sent it back, and of how many times at most. A finished one is forgotten after five minutes, but not\n"
        "before its parent has its report.",
        ends,
    )
    _list_options(listed, default=argparse.SUPPRESS)
    shown = _command(
        actions,
        "show",
        "everything about one",
        "The task, each run with its prompt, outcome, reason, seconds and tokens, the result, the transcript.",
        ends,
    )
    _id(shown)
    shown.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")
    steered = _command(
        actions,
        "steer",
        "give one a new prompt",
        "The subagent drops what it does and goes on in the same conversation with your prompt. It counts against\n"
        "no limit; at most 4000 characters, and not twice within two seconds.",
        ends,
    )
    _id(steered)
    steered.add_argument("prompt", metavar="PROMPT", help="what it is told; - reads stdin")
    killed = _command(
        actions,
        "kill",
        "end one, and everything that it has started",
        "Ends a subagent for good, with everything below it. No hook is asked; its parent is told that it was ended.",
        ends,
    )
    _id(killed, nargs="?")
    killed.add_argument(
        "--all",
        action="store_true",
        dest="every",
        help="every one that works; with an ID: every one of the session that begins so",
    )
    _recover(actions)


def _recover(actions: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        actions,
        "recover",
        "go on with what a process left that died",
        "Takes over the project's subagents whose process has died, exactly where they were, and works until none of\n"
        "them is open. What they report waits for the session that asked, and is handed over when it is resumed.\n"
        "Ctrl-C stops the work and leaves everything as it is, for the next time.",
        "Exit codes: 0 nothing is left open, however each one ended, 20 something could not be brought to an end,\n"
        "64 wrong usage, 70 our own fault, 129 hung up, 130 interrupted, 131 quit, 143 terminated.",
    )
    add = parser.add_argument
    add(
        "--project",
        metavar="DIR",
        default=".",
        help="whose subagents (default: of the project in this folder)",
    )
    add("--model", metavar="M", help="PROVIDER:NAME, or scripted:FILE (default: the model that each one had)")


def _list_options(parser: _Parser, *, default: object) -> None:
    add = parser.add_argument
    add("--json", action="store_true", default=default, help="print one JSON list")
    add("--all", action="store_true", default=default, help="every single run, also those that were sent on")


def _id(parser: _Parser, **how: str) -> None:
    parser.add_argument("id", metavar="ID", help="the beginning of its id", **how)  # type: ignore[arg-type]


def _log(commands: "argparse._SubParsersAction[_Parser]") -> None:
    add = _command(
        commands, "log", "what the hooks did", "Shows every hook run and every verdict of a session."
    ).add_argument
    add("--session", metavar="ID", help="which session (default: the newest)")
    add("--follow", action="store_true", help="go on as more comes")


def _command(
    commands: "argparse._SubParsersAction[_Parser]", name: str, about: str, description: str, epilog: str = ""
) -> _Parser:
    return commands.add_parser(
        name, help=about, description=description, epilog=epilog, formatter_class=_Help
    )


def _project_options(parser: _Parser) -> None:
    add = parser.add_argument
    add("--project", metavar="DIR", default=".", help="the project's folder (default: this one)")
    dialects = list(FAMILIES)
    add("--dialect", choices=dialects, default="turngate", help="whose manners count (default: turngate)")


def _hook_options(parser: _Parser) -> None:
    add = parser.add_argument
    add(
        "--trust",
        action="store_true",
        help="run the project's hooks without approval; nothing asks for one yet",
    )
    add(
        "--strict",
        action="store_true",
        help="exit with 13 when a gate failed, timed out, was skipped or can not be read",
    )


def _event(text: str) -> str:
    return next((name for name in EVENTS if name.lower() == text.lower()), text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, 0 or more")
    return int(text)
