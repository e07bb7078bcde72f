"""`turngate run`: run an agent on a task under the project's stop hooks."""

import argparse
import os

from turngate.cli.arguments import (
    EXIT_ALL_SIGNALS,
    EXIT_CODES_OF_TURN,
    EXIT_INTERNAL,
    Parser,
    add_hook_options,
    add_place_options,
)
from turngate.cli.console.questions import read_prompt_from_stdin
from turngate.core.conversation.checkpoints import parse_answer
from turngate.errors import UsageError

PERMISSION_MODES = ["default", "acceptEdits", "plan", "bypassPermissions"]
OUTPUT_FORMATS = ["text", "json", "stream-json"]
MODEL_HELP = (
    "scripted:FILE or PROVIDER:NAME, where PROVIDER is anthropic, openai, openai-chat, gemini or google, openrouter, ollama, deepseek, "
    "groq, mistral, xai, or pydantic-ai:PROVIDER; prompt hooks use a small model of the same provider"
)


def declare(parser: Parser) -> None:
    parser.description = """\
Run an agent on a task in a project. When the agent wants to stop, the project's hooks run.
Without -p, have a conversation at the terminal."""
    parser.epilog = f"""\
Examples:
  turngate run                                    a conversation
  turngate run -p 'fix the failing test'          one turn, the answer on stdout
  turngate run -p 'fix it' --allow Write          let the agent write files; with -p there is no one to ask
  turngate run -p - --output-format json          the prompt from stdin, one JSON object
  turngate run --resume                           continue the newest conversation of this project
  turngate run --ssh me@build:src/app             the project, its tools and its hooks are on another machine
  turngate run -p hello --model scripted:s.json   a model that replays a script

Exit codes:
  {EXIT_CODES_OF_TURN}
  13  with --strict: the agent stopped, but a hook was not enforced, could not be loaded or blocks a subagent
  20  the agent or the model failed, or the turn reached its request limit
  64  wrong usage
  {EXIT_INTERNAL}
  74  the answer could not be written to stdout
  {EXIT_ALL_SIGNALS}"""
    add = parser.add_argument
    add("prompt", nargs="?", metavar="PROMPT", help="the task; - reads stdin")
    add("-p", "--print", action="store_true", help="run one turn, print the answer and exit")
    add("--model", metavar="M", help=MODEL_HELP)
    add_place_options(parser)
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
        help="continue the newest session of this project, or the session that --session names",
    )
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
    add(
        "--subagents",
        choices=["here", "workers", "git"],
        default="here",
        help="where subagents run, unless their agent type says where: in this process (default), on `turngate worker`s "
        "with the same project, or on workers with a clone of its git remote",
    )
    add_hook_options(parser)
    add("--no-hooks", action="store_true", help="run no hooks at all")
    add(
        "--output-format",
        choices=OUTPUT_FORMATS,
        default="text",
        metavar="F",
        help="text, json or stream-json (default: text)",
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.run.session import session_opener  # noqa: PLC0415 # lazy: --help needs no agent

    prompt = read_prompt_from_stdin() if options.prompt == "-" else options.prompt
    if options.print and not (prompt or "").strip():
        raise UsageError("-p needs a prompt; give it as an argument, or - to read it from stdin")
    if (options.resume or options.session) and parse_answer(prompt or "") == "yes":
        from turngate.cli.review import check_person  # noqa: PLC0415 # lazy: few answers need it

        check_person(os.environ, does="answers yes at a checkpoint")
    open_session = session_opener(options)
    if options.print:
        from turngate.cli.commands.run.one_turn import run_print  # noqa: PLC0415 # lazy: as above

        return run_print(open_session, prompt, options.output_format)
    from turngate.cli.commands.run.chat import run_interactive  # noqa: PLC0415 # lazy: not for -p

    return run_interactive(open_session, prompt, options.output_format)
