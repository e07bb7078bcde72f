"""`turngate completion`: print the completion script for a shell, made from the parsers of all commands."""

import argparse
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from turngate.cli.arguments import EXIT_CODES_OF_OUTPUT, Parser, build_parser
from turngate.cli.main import COMMANDS

SHELLS = ["bash", "zsh", "fish"]
# These two read their words themselves.
_OWN_OPTIONS = {"hook": ("--host", "--project", "--timeout", "--exit-code", "--help"), "gate": ("--help",)}


class Node(NamedTuple):
    """A command, or an action of one: the words that lead to it, and what may follow them."""

    words: tuple[str, ...]
    names: dict[str, str]  # of commands, actions or values, with what they do
    options: dict[str, str]
    values: Mapping[str, tuple[str, ...]] = {}  # of the options that take a value; none for any value


def declare(parser: Parser) -> None:
    parser.description = """\
Print a script that lets a shell complete commands, actions and options. Nothing is written: load the script
from your shell's startup file."""
    parser.epilog = f"""\
Examples:
  eval "$(turngate completion bash)"           in ~/.bashrc
  eval "$(turngate completion zsh)"            in ~/.zshrc, after compinit
  turngate completion fish > ~/.config/fish/completions/turngate.fish

{EXIT_CODES_OF_OUTPUT}"""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    nodes = list(command_nodes())
    print(_fish(nodes) if options.shell == "fish" else _bash(nodes, is_zsh=options.shell == "zsh"))
    return 0


def command_nodes() -> Iterator[Node]:
    """Yield what can follow each command, and each action of one."""
    from turngate.gates.library import GATES  # noqa: PLC0415 # lazy: --help needs no gates

    yield Node(
        (), {name: summary for name, (_, summary) in COMMANDS.items()}, {"--help": "", "--version": ""}
    )
    for name in COMMANDS:
        if name in _OWN_OPTIONS:
            names = dict.fromkeys(GATES if name == "gate" else (), "")
            yield Node((name,), names, dict.fromkeys(_OWN_OPTIONS[name], ""))
        else:
            yield from _parser_nodes((name,), subparsers(build_parser([name], COMMANDS))[name])


def _parser_nodes(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[Node]:
    names, options, values = dict[str, str](), dict[str, str](), dict[str, tuple[str, ...]]()
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            names |= {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001 - as above
        elif action.option_strings:
            options[action.option_strings[-1]] = action.help or ""
            if action.nargs != 0:
                values[action.option_strings[-1]] = tuple(action.choices or ())
        elif action.choices:
            names |= dict.fromkeys(map(str, action.choices), "")
    yield Node(words, names, options, values)
    for name, child in subparsers(parser).items():
        yield from _parser_nodes((*words, name), child)


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands, or of the actions of a command, by name."""
    return {
        name: child
        for action in parser._actions  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
        for name, child in action.choices.items()
    }


def _bash(nodes: list[Node], *, is_zsh: bool) -> str:
    """Return the script for bash, which zsh can load too. A word that is not known completes to a file."""
    cases = "\n".join(
        f'    "{" ".join(node.words)}") words="{" ".join([*node.names, *node.options])}" ;;' for node in nodes
    )
    values = "\n".join(
        f'    "{" ".join([*node.words, option])}") words="{" ".join(choices)}" ;;'
        for node in nodes
        for option, choices in node.values.items()
    )
    known = "|".join(f'"{" ".join(node.words)}"' for node in nodes if node.words)
    head = "autoload -U +X bashcompinit && bashcompinit\n" if is_zsh else ""
    return f"""\
{head}_turngate() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="" next word words=""
  for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD - 1))}}"; do
    next="${{command:+$command }}$word"
    case "$next" in
      {known}) command="$next" ;;
    esac
  done
  case "$command" in
{cases}
  esac
  case "$command ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _turngate turngate"""


_FISH_HEAD = """\
function __turngate_at -d 'Is this the command and the action that were typed?'
  set -l at
  for word in (commandline -opc)[2..]
    contains -- (string join -- ' ' $at $word) {known}; and set -a at $word
  end
  test "$at" = "$argv"
end
complete -c turngate -f"""


def _fish(nodes: list[Node]) -> str:
    lines = [_FISH_HEAD.format(known=" ".join(f"'{' '.join(node.words)}'" for node in nodes if node.words))]
    for node in nodes:
        start = f"complete -c turngate -n '{' '.join(['__turngate_at', *node.words])}'"
        lines += [f"{start} -a {name} -d '{_quoted(summary)}'" for name, summary in node.names.items()]
        for option, summary in node.options.items():
            choices = node.values.get(option)
            value = f" -x -a '{' '.join(choices)}'" if choices else "" if choices is None else " -r -F"
            lines.append(f"{start} -l {option[2:]}{value} -d '{_quoted(summary)}'")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    first = text.partition(";")[0].replace("%%", "%")
    return first.replace("\\", "\\\\").replace("'", "\\'")
