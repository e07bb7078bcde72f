"""`turngate hook --help`, written from the table of hosts."""

from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import OWN_TIMEOUT_S


def help_text() -> str:
    return f"""\
usage: turngate hook [--host HOST] [--project DIR] [--timeout SECONDS]

Hold the stop of an agent of another agent program. It is one line in the settings of that program, which
`turngate install HOST` writes. It reads the event as JSON on stdin, asks the hooks and gates of .turngate and
.mux, and answers so that the program understands it: the agent may stop, or continues with the reason. The
hooks of .claude are not asked: Claude Code, Copilot and Cursor run those themselves.

A hook sends the agent back at most as often as `limit` of the settings says (3 by default), whatever the
program itself allows. The count is kept for each agent of each session. It starts anew when the agent may
stop, with the next prompt, and after 30 minutes without a stop.

Options:
  --host HOST          the program: {", ".join(HOSTS)} (default: recognised from its input)
  --project DIR        the project's folder (default: the nearest one with settings, from the
                       folder that the program names upwards)
  --timeout SECONDS    for all hooks together (default: {OWN_TIMEOUT_S:g})

Examples:
  turngate install claude                   add the line to .claude/settings.json of this project
  turngate install codex --user             add it to ~/.codex/hooks.json, for all projects
  turngate doctor --host gemini             why does a hook not run, or not block, in Gemini CLI?
  echo '{{"hook_event_name":"Stop","prompt_id":"1"}}' | turngate hook     what would Claude Code get now?

Exit codes:
  0   there is an answer on stdout; an empty one means that the agent may stop
  1   wrong usage, no event on stdin, or an internal error: stdout is empty
  128 + N  ended by signal N: 130 interrupted, 143 terminated
"""
