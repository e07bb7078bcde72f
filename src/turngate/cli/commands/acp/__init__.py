"""`turngate acp`: check the stops of any agent that speaks the Agent Client Protocol, between it and its editor."""

import argparse

from turngate.cli.arguments import EXIT_ALL_SIGNALS, EXIT_INTERNAL, PROJECT_HELP, Parser

KINDS = "read edit delete move search execute think fetch switch_mode other all".split()


def declare(parser: Parser) -> None:
    parser.ssh_hint = "it starts the agent here: run it there"
    parser.description = """\
Run an agent that speaks the Agent Client Protocol (ACP), and check its stops. An editor starts this command
instead of the agent's own. Every message passes through unchanged. When the agent has answered a prompt, the
hooks and gates of .turngate and .mux run as in `turngate hook`; if one blocks, the agent gets the reason as
its next prompt.

If `turngate hook` is installed in the agent program itself and will run, this command leaves the stops to it, and
says so on stderr."""
    parser.epilog = f"""\
Examples:
  turngate install zed --agent 'opencode acp'      let Zed start an agent behind this command
  turngate acp -- gemini --acp                     what an editor starts
  turngate acp --prompt 'fix the test' --allow edit -- opencode acp
                                                   one turn without an editor, for CI

Exit codes:
  0   with --prompt: the agent stopped, and no hook blocks;
      without it: the agent's own exit code, but 1 instead of 2
  10  with --prompt: a hook still blocks: the limit is reached, or nothing changed (capped, stalled)
  11  with --prompt: halted by a hook
  12  with --prompt: the agent waits for the user
  13  with --prompt and --strict: the agent stopped, but a hook was not enforced
  20  with --prompt: the agent failed, refused or reached a limit of its own
  64  wrong usage, or the agent cannot be started
  {EXIT_INTERNAL}
  {EXIT_ALL_SIGNALS}"""
    add = parser.add_argument
    add("command_line", nargs="+", metavar="CMD", help="the agent and its arguments, after --")
    add("--prompt", metavar="TEXT", help="run one turn without an editor, and print the last answer")
    add("--project", metavar="DIR", help=f"with --prompt: {PROJECT_HELP}")
    kinds = (
        f"with --prompt: permit this kind of tool when the agent asks: {', '.join(KINDS)}; may be repeated"
    )
    add("--allow", action="append", default=[], choices=KINDS, metavar="KIND", help=kinds)
    add("--strict", action="store_true", help="with --prompt: exit with 13 if a hook was not enforced")


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.acp.run_agent import run_agent  # noqa: PLC0415 # lazy: --help needs none of it

    return run_agent(options)
