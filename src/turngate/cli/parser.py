"""The arguments of every command, declared without loading the commands."""

import argparse
from collections.abc import Sequence

from turngate.cli.arguments import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_SIGNALS,
    EXIT_USAGE,
    HelpFormatter,
    Parser,
    add_command,
    add_project_options,
    add_ssh_option,
    event_name,
)
from turngate.core.constants import EVENTS

PERMISSION_MODES = ["default", "acceptEdits", "plan", "bypassPermissions"]
OUTPUT_FORMATS = ["text", "json", "stream-json"]
MODEL_HELP = (
    "scripted:FILE or PROVIDER:NAME, with the provider anthropic, openai, openai-chat, gemini or google, openrouter, ollama, deepseek, "
    "groq, mistral, xai, or pydantic-ai:PROVIDER; prompt hooks use a small model of it"
)
SCHEMA_NAMES = ["settings", "input", "output"]
SUMMARIES = {
    "init": "write settings with gates for the checks of this project",
    "run": "run an agent on a task under its stop hooks",
    "demo": "see one blocked stop, offline, in a few seconds",
    "fire": "run the hooks of one event once and print the verdict",
    "check": "report every problem in the settings",
    "gate": "check a ready-made gate: tests, lint, a clean tree …",
    "hook": "hold the stop of another agent program, as a hook of it",
    "doctor": "say for each hook whether it will run, and prove that gates block",
    "hooks": "list hooks, see what changed, approve or reject them",
    "gates": "run a project's gates without an agent, as CI does",
    "install": "let another agent program run Turngate at every stop",
    "uninstall": "remove Turngate from the settings of another agent program",
    "schema": "print the JSON Schemas of settings, hook input and hook output",
    "sessions": "list, show or remove earlier conversations",
    "log": "show what the hooks did",
    "runs": "list, steer, kill and recover subagents",
}


def build_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for these arguments; it holds only the command that they name, which is faster."""
    parser = Parser(
        prog="turngate",
        description="Decide whether an AI agent may stop, by running the project's hooks.",
        epilog="First steps:\n"
        "  turngate demo          see it work, without a model and without settings\n"
        "  turngate init          write settings with gates for the checks of this project\n"
        "  turngate install       let Claude Code, Codex and other agent programs ask these gates\n"
        "  turngate check         is .turngate/settings.json (or .claude/settings.json) right?\n"
        "  turngate hooks         which hooks are there, and which wait for your approval?\n"
        "  turngate gates run     do the checks pass now? also for CI\n"
        "  turngate fire Stop     would my hooks let the agent stop now?\n"
        "  turngate doctor        will every hook run, and every gate hold?\n"
        "  turngate log           what did they do?\n\n"
        "`turngate COMMAND --help` explains a command, with examples and exit codes.",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        parser_class=Parser,
        prog="turngate",
        title="commands",
    )
    if not any(word in _COMMANDS for word in argv):  # help and mistakes need no command's module
        for name, summary in SUMMARIES.items():
            add_command(commands, name, summary=summary)
        return parser
    named = _COMMANDS.get(argv[0]) if argv else None
    for declare in (named,) if named else _COMMANDS.values():
        declare(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 # lazy: loads email and zipfile

        print(f"turngate {version('turngate')}")
        raise SystemExit(0)


def _add_run(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "run",
        summary="run an agent on a task under its stop hooks",
        description="Run an agent on a task in a project. When the agent wants to stop, the project's hooks run.\n"
        "Without -p it is a conversation at the terminal.",
        examples=(
            "turngate run                                    a conversation",
            "turngate run -p 'fix the failing test'          one turn, the answer on stdout",
            "turngate run -p 'fix it' --allow Write          let the agent write files; with -p there is no one to ask",
            "turngate run -p - --output-format json          the prompt from stdin, one JSON object",
            "turngate run --resume                           continue the newest conversation of this project",
            "turngate run --ssh me@build:src/app             the project, its tools and its hooks are on another machine",
            "turngate run -p hello --model scripted:s.json   a model that replays a script",
        ),
        exit_codes=(
            "0   the agent stopped, and no hook blocks",
            "10  a hook still blocks: the limit is reached, or nothing changed (capped, stalled)",
            "11  halted by a hook",
            "12  the agent waits for the user",
            "13  with --strict: the agent stopped, but a hook was not enforced, could not be loaded or blocks a subagent",
            "20  the agent or the model failed, or the turn reached its request limit",
            "64  wrong usage",
            EXIT_INTERNAL,
            "74  the answer could not be written to stdout",
            "128 + N  ended by signal N: 129 hung up, 130 interrupted, 131 quit, 143 terminated",
        ),
    )
    _add_task_options(parser)
    add_project_options(parser)
    add_ssh_option(parser)
    _add_session_options(parser)
    _add_limit_options(parser)
    _add_hook_options(parser)
    add = parser.add_argument
    add("--no-hooks", action="store_true", help="run no hooks at all")
    add(
        "--output-format",
        choices=OUTPUT_FORMATS,
        default="text",
        metavar="F",
        help="text, json or stream-json (default: text)",
    )


def _add_task_options(parser: Parser) -> None:
    add = parser.add_argument
    add("prompt", nargs="?", metavar="PROMPT", help="the task; - reads stdin")
    add("-p", "--print", action="store_true", help="run one turn, print the answer and exit")
    add("--model", metavar="M", help=MODEL_HELP)


def _add_session_options(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--add-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="let the tools use this folder too; may be repeated",
    )
    add(
        "--session",
        metavar="ID",
        help="continue this session, or name a new one; with --resume the beginning of its id is enough",
    )
    add(
        "--resume",
        action="store_true",
        help="continue the newest session of this project, or the one of --session",
    )


def _add_limit_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--limit", type=_count, metavar="N", help="maximum number of continuations by hooks in one turn")
    add("--max-turns", type=_count, metavar="N", help="maximum number of model requests in one turn")
    add(
        "--permission-mode",
        choices=PERMISSION_MODES,
        default="default",
        metavar="MODE",
        help="default (asks before every change), acceptEdits (asks only about commands), plan (changes nothing) "
        "or bypassPermissions (never asks)",
    )
    add(
        "--allow",
        action="append",
        default=[],
        metavar="TOOL",
        help="let the agent use this tool without asking; may be repeated",
    )


def _add_demo(commands: "argparse._SubParsersAction[Parser]") -> None:
    add_command(
        commands,
        "demo",
        summary="see one blocked stop, offline, in a few seconds",
        description="An agent says that it is done, a hook blocks, the agent fixes its work, and the hook passes.\n"
        "The model is scripted; the tools and the hook are real. Everything happens in a temporary folder.",
        examples=("turngate demo",),
        exit_codes=("0   it ended as it should", "1   it did not", EXIT_INTERNAL),
    )


def _add_fire(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "fire",
        summary="run the hooks of one event once and print the verdict",
        description="Run the hooks of one event, as if an agent had just said that it is done, and print the verdict.\n"
        "Prompt and agent hooks use their own `model`, the `judge` of the settings, or a small model of the\n"
        "provider whose key is in the environment.",
        examples=(
            "turngate fire Stop                      the hooks of this project",
            "turngate fire Stop --input event.json   with your own event: a file, - for stdin, or JSON",
            "turngate fire SubagentStop --json       one JSON object for programs",
        ),
        exit_codes=(
            "0   allowed",
            "10  blocked",
            "11  halted by a hook",
            "12  a PreToolUse hook leaves the decision to the user",
            "13  with --strict: allowed, but a hook was not enforced or could not be loaded",
            EXIT_USAGE,
            EXIT_INTERNAL,
            EXIT_OUTPUT,
            EXIT_SIGNALS,
        ),
    )
    add = parser.add_argument
    add("event", type=event_name, choices=list(EVENTS), metavar="EVENT", help=", ".join(EVENTS))
    add_project_options(parser)
    add(
        "--input",
        metavar="FILE|JSON",
        help="the event: a file with JSON, - for stdin, or a JSON object in braces; missing fields get defaults",
    )
    _add_hook_options(parser)
    add("--json", action="store_true", help="print one JSON object")


def _add_check(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "check",
        summary="report every problem in the settings",
        description="Report what will not work in the project's settings, with its file, event, position and field, and how\n"
        "to fix it: error (a hook does not run), warning (it does not do what it seems to), note (it works here).",
        examples=(
            "turngate check                     this project",
            "turngate check --dialect claude    as Claude Code reads its files",
            "turngate check --strict            for CI: notes fail it too",
        ),
        exit_codes=(
            "0   no errors and no warnings; there may be notes",
            "1   errors or warnings; with --strict also notes",
            EXIT_USAGE,
            EXIT_INTERNAL,
            EXIT_OUTPUT,
        ),
    )
    add_project_options(parser)
    parser.add_argument("--strict", action="store_true", help="exit with 1 for notes too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_gate(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the list of commands; it reads its own arguments, and has its own help."""
    add_command(commands, "gate", summary="check a ready-made gate: tests, lint, a clean tree …")


def _add_hook(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add it to the list of commands, as `gate`."""
    add_command(commands, "hook", summary="hold the stop of another agent program, as a hook of it")


def _add_doctor(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.commands.doctor import add_doctor  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_doctor(commands)


def _add_hooks(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.commands.hooks import add_hooks  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_hooks(commands)


def _add_init(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.commands.init import add_init  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_init(commands)


def _add_install(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.commands.install import add_install  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_install(commands)


def _add_uninstall(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.commands.install import add_uninstall  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_uninstall(commands)


def _add_gates(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.commands.gates import add_gates  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_gates(commands)


def _add_schema(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "schema",
        summary="print the JSON Schemas of settings, hook input and hook output",
        description="Print a JSON Schema, for editors and validators. Without NAME, print all of them in one object.",
        examples=(
            "turngate schema settings > settings.schema.json   name it in `$schema` of a settings file, and an",
            "                                                  editor completes and checks that file",
            "turngate schema output                            what a hook can answer with",
        ),
        exit_codes=("0   printed", EXIT_USAGE, EXIT_INTERNAL, EXIT_OUTPUT),
    )
    parser.add_argument(
        "name", nargs="?", choices=SCHEMA_NAMES, metavar="NAME", help="settings, input or output"
    )


def _add_sessions(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.sessions_parser import add_sessions  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_sessions(commands)


def _add_log(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.sessions_parser import add_log  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_log(commands)


def _add_runs(commands: "argparse._SubParsersAction[Parser]") -> None:
    from turngate.cli.commands.runs import add_runs  # noqa: PLC0415 # lazy: not needed by `turngate fire`

    add_runs(commands)


def _add_hook_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--trust", action="store_true", help="also run hooks that are not approved, as they are now")
    add(
        "--strict",
        action="store_true",
        help="exit with 13 if a hook was not enforced or could not be loaded, or if one still blocks a subagent",
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)


_COMMANDS = {
    "init": _add_init,
    "run": _add_run,
    "demo": _add_demo,
    "fire": _add_fire,
    "check": _add_check,
    "gate": _add_gate,
    "hook": _add_hook,
    "doctor": _add_doctor,
    "hooks": _add_hooks,
    "gates": _add_gates,
    "install": _add_install,
    "uninstall": _add_uninstall,
    "schema": _add_schema,
    "sessions": _add_sessions,
    "log": _add_log,
    "runs": _add_runs,
}
