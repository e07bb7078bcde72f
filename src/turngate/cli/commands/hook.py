"""`turngate hook`: ask the hooks and gates of `.turngate` and `.mux` at a stop of another agent program."""

import os
import re
import sys

from turngate.cli.hook_input import EXIT_NOT_PASSED, read_object_from_stdin, refuse_command
from turngate.cli.project import find_project, nothing_is_configured, project_folder
from turngate.cli.stop_cache import read_stamp, record_cached_stop, settings_state, stamp_path, write_stamp
from turngate.core.constants import (
    FAMILIES,
    GATES_BASE,
    IN_ACP,
    IN_HOOK,
    IN_TOOL,
    STOP_EVENTS,
    STOPS_OF_START,
)
from turngate.errors import UsageError
from turngate.gates.session_goal import Goal, goal_at
from turngate.hosts.input_fields import PROJECT_VARIABLES, normalize, recognize, variable_of_command
from turngate.hosts.stop_count import count_path, forget_count
from turngate.project.checkouts import in_checkout_of, up_to_top
from turngate.project.files import LOCAL
from turngate.state.paths import state_folder
from turngate.trust.session_record import (
    SessionRecord,
    files_states,
    forget_record,
    projects_below,
    read_record,
    record_path,
    write_record,
)

EVENTS = (*STOP_EVENTS, *STOPS_OF_START)  # that it answers
UNKNOWN_HOST = (
    "this is not the input of an agent program that Turngate knows, so the answer is the one that most programs "
    "understand; name the program with --host if it is one of them, or use --exit-code if its agent stops even if a gate blocks"
)


def run(words: list[str]) -> int:
    if "--help" in words or "-h" in words:
        print(_help_text())
        sys.exit()
    answers_by_exit_code = "--exit-code" in words
    given_host, given_project, timeout = _read_options([each for each in words if each != "--exit-code"])
    fields, note = read_object_from_stdin()
    if fields is None:  # for a person
        text = "an agent program runs this command as a hook, with the event as JSON on stdin"
        tell = "`turngate install` adds it to the settings of one; `turngate fire Stop` checks a stop now"
        print(f"turngate hook: {f'{note}; ' if note else ''}{text}: {tell}", file=sys.stderr)
        return EXIT_NOT_PASSED
    known = normalize(fields)
    name, event = given_host or recognize(fields), str(known["hook_event_name"])
    os.environ.pop(GATES_BASE, None)  # for `turngate gates run`
    given = map(os.environ.get, PROJECT_VARIABLES.values())
    _drop_variables_of_the_project(known.get("cwd"), *given)
    session, state = str(known.get("session_id") or ""), state_folder()
    path = record_path(state, session)
    record = read_record(path)
    _drop_variables_of_the_project(record and record.project)  # the agent may be elsewhere
    if by := variable_of_command(name, known.get("session_id")):
        return refuse_command("turngate hook", by)
    if event not in EVENTS or os.environ.get(IN_HOOK):
        why = (
            f"{IN_HOOK} is set, which is for processes of a hook" if event else "not an event that it answers"
        )
        print(f"turngate hook: {why}, so nothing was checked", file=sys.stderr)
        return 0
    if event == "SessionStart" and known.get("source") != "compact":  # the user has started or resumed it
        forget_record(path)
        record = None
    # A session keeps its project: another folder above or below it would have other gates. A worktree may be removed.
    kept = record.project if record and os.path.isdir(record.project) else None
    own = kept or _project(given_project, PROJECT_VARIABLES.get(name or ""), known)
    project = own if given_project else in_checkout_of(str(known.get("cwd") or "/"), own)
    others = projects_below(state, project)
    if record and project != own and event == "Stop":  # the agent may have worked in both
        others += [own, *projects_below(state, own)]
    others = [at for at in others if os.path.isdir(at) or read_record(record_path(state, session, at))]
    count = count_path(state, event, known)
    goal = goal_at(state, session, (own, project), event)
    stamp = None if others or goal else stamp_path(known, ["turngate hook", project])
    is_empty = not (record or others or goal) and nothing_is_configured(project, "host")
    is_cached = not is_empty and stamp is not None and read_stamp(stamp) is not None
    if is_empty or is_cached:
        if is_cached:
            record_cached_stop(project, known)
        if event in STOP_EVENTS:
            forget_count(count)
        return 0
    folders = (own if record else project, project, *others)
    return _answer_event(
        name, timeout, fields, known, folders, record, count, stamp, goal, by_exit_code=answers_by_exit_code
    )


def _read_options(words: list[str]) -> tuple[str | None, str | None, str | None]:
    """Return the host, the project and the timeout that are given."""
    options, rest = dict[str, str](), iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in ("--host", "--project", "--timeout"):
            expected = "expected --host, --project, --timeout or --exit-code"
            raise UsageError(f"unrecognized argument: {word}, {expected}")
        options[name] = value if equals else next(rest, "")
        if not options[name]:
            raise UsageError(f"{name} needs a value")
    if host := options.get("--host"):
        from turngate.hosts.all_hosts import find_host  # noqa: PLC0415 # lazy: it loads all hosts

        find_host(host)
    return host, options.get("--project"), options.get("--timeout")


def _project(given: str | None, variable: str | None, known: dict[str, object]) -> str:
    """Return the project's folder: the given one, or from that of the host's variable or of the event upward.

    A program that runs inside another one inherits its variables, so that of another host says nothing.
    """
    if given is not None:
        return project_folder(given, "host")
    for folder in (os.environ.get(variable) if variable else None, known.get("cwd")):
        if isinstance(folder, str) and os.path.isdir(folder):
            return find_project(os.path.abspath(folder), FAMILIES["host"])
    return project_folder(None, "host")


# With which agent programs set variables for hooks, below a folder of the project.
_FILES_WITH_VARIABLES = (
    *(".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".codex/hooks.json"),
    *(".gemini/settings.json", ".gemini/.env", ".qwen/settings.json", ".qwen/.env", ".cursor/hooks.json"),
    *(".github/hooks/turngate.json", ".factory/settings.json", ".env"),
)
_MAX_BYTES = 8 * 1024 * 1024
_ESCAPE = rb"\\(?:u00|U000000|x)([0-9a-fA-F]{2})"  # of a character in JSON and TOML


def _drop_variables_of_the_project(*starts: object) -> None:
    """Remove variables that switch gates off if a repository of these folders may have set them: only the user may."""
    further = ("TURNGATE_TRUST", "TURNGATE_STATE", "XDG_STATE_HOME")
    names = [name for name in (IN_ACP, IN_HOOK, IN_TOOL, *further) if os.environ.get(name)]
    home = os.path.expanduser("~")
    above = (up_to_top(str(start)) for start in starts if names and str(start or "").startswith("/"))
    # Not the user's home folder, nor what is above it.
    folders = (way[: way.index(home)] if home in way else way for way in above)
    for folder in dict.fromkeys(each for way in folders for each in way):
        for file in _FILES_WITH_VARIABLES:
            try:
                text = LOCAL.read(os.path.join(folder, file), _MAX_BYTES)
            except OSError:
                continue
            plain = re.sub(_ESCAPE, lambda found: bytes([int(found[1], 16)]), text)
            for name in [name for name in names if name.encode() in plain]:
                del os.environ[name]
                names.remove(name)
                print(f"turngate hook: {name} has no effect, because {file} names it", file=sys.stderr)


def _answer_event(
    name: str | None,
    timeout: str | None,
    fields: dict[str, object],
    known: dict[str, object],
    folders: tuple[str, ...],
    record: SessionRecord | None,
    count: str,
    stamp: str | None,
    goal: Goal | None,
    *,
    by_exit_code: bool,
) -> int:
    """Ask the hooks and print the answer in the language of the host. `count`, `stamp`: files kept for this agent.

    `folders`: the project of the session, that of the stop, and others, which are asked if the session has changed them.
    """
    # lazy: the engine, and all that it needs
    from dataclasses import replace  # noqa: PLC0415

    from turngate.cli.console.signals import run_to_end  # noqa: PLC0415
    from turngate.core.events.events import Event  # noqa: PLC0415
    from turngate.core.verdict.decisions import Block  # noqa: PLC0415
    from turngate.core.verdict.hook_run import HookRun  # noqa: PLC0415
    from turngate.engine import ask_hooks  # noqa: PLC0415
    from turngate.gates.goal_rule import with_goal  # noqa: PLC0415
    from turngate.hosts.all_hosts import PORTABLE, find_host  # noqa: PLC0415
    from turngate.hosts.host import write_exit_code  # noqa: PLC0415
    from turngate.hosts.stop import HostStop, answer_host_event, held_pass, rules_at  # noqa: PLC0415
    from turngate.ports import World  # noqa: PLC0415
    from turngate.stop_hooks import open_world, trouble_of  # noqa: PLC0415
    from turngate.trust.load import load_held  # noqa: PLC0415

    host = find_host(name) if name else PORTABLE
    is_unknown = host is PORTABLE and not by_exit_code
    limit = _time_limit(timeout, host.own_timeout_s)
    own, project, *others = folders
    state = settings_state(project) if stamp else None  # before they are read
    is_start, session = known["hook_event_name"] not in STOP_EVENTS, str(known.get("session_id") or "")
    path = record_path(state_folder(), session)
    now_there = files_states(others if record or not is_start else (project, *others), state_folder())
    settings, now = load_held(project, record, now_there.get(project, ""))
    if session and own == project and now.gates != (record.gates if record else None if others else ()):
        write_record(path, now)
    changed = []
    for folder in others:
        file = path if folder == own else record_path(state_folder(), session, folder)
        before = read_record(file) if record else None
        files = now_there[folder] if before or is_start else ""
        if not before or before.files != files:  # at a start, their gates record what is there
            held, kept = load_held(folder, before, files, own_only=folder != own)
            changed.append((folder if os.path.isdir(folder) else project, held, file, kept))
            if session and folder != own:
                write_record(file, kept)

    async def ask_others(event: Event) -> tuple[HookRun, ...]:
        """Ask the hooks of the other projects that the session has changed."""
        runs: tuple[HookRun, ...] = ()
        for folder, held, file, kept in changed:
            async with open_world(folder, held) as world:
                world.logs, world.time_limit = False, limit
                asked = await ask_hooks(replace(event, cwd=folder), rules_at(event, held), world)
            runs += asked.runs
            if any(isinstance(run.decision, Block) for run in asked.runs):
                ask_again(file, kept)
        return runs

    def ask_again(file: str, kept: SessionRecord) -> None:
        """Let gates that have blocked be asked at the next stop too, if the work was stashed or the agent is elsewhere then."""
        if session and kept.files:
            kept.files = ""
            write_record(file, kept)

    async def ask() -> tuple[HostStop | None, World]:
        async with open_world(project, settings) as world:
            world.logs, world.time_limit, world.records_trees, world.host = False, limit, True, name or ""
            asked = with_goal(settings, goal)
            stop = await answer_host_event(host, fields, known, asked, world, count, ask_others)
            if is_unknown and world.store and stop and stop.answer.decision == "block":
                program = str(fields.get("client_type") or f"its input has {', '.join(fields)}")[:500]
                entry = {"kind": "notice", "event": known["hook_event_name"], "unknown_program": program}
                world.store.record(session, {**entry, "text": f"{program}: {UNKNOWN_HOST}"})
            return stop, world

    stop, world = run_to_end(ask(), " before an answer", for_host=True)
    if stop is None:
        return 0
    if own == project and stop.answer.decision == "block":
        ask_again(path, now)
    if stamp and not settings.record_trees:  # otherwise each stop has its tree
        write_stamp(stamp, state, held_pass(stop, settings, world), project)
    trouble = [*trouble_of(world), *([UNKNOWN_HOST] if is_unknown else [])]
    write_answer = write_exit_code if by_exit_code else host.write_answer
    output = write_answer(replace(stop.answer, notices=(*stop.answer.notices, *trouble)))
    for text, stream in ((output.stderr, sys.stderr), (output.stdout, sys.stdout)):
        if text:
            print(text, file=stream)
    return output.code


def _time_limit(given: str | None, default: float) -> float:
    try:
        seconds = default if given is None else float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise UsageError(f"--timeout {given}: expected a number of seconds")
    return seconds


def _help_text() -> str:
    # lazy: only for --help
    from turngate.hosts.all_hosts import HOSTS  # noqa: PLC0415
    from turngate.hosts.host import OWN_TIMEOUT_S  # noqa: PLC0415

    return f"""\
usage: turngate hook [--host HOST] [--project DIR] [--timeout SECONDS] [--exit-code]

Runs as a stop hook inside another agent program. `turngate install HOST` adds it to that program's settings.
It reads the event as JSON on stdin, runs the hooks and gates of .turngate and .mux, and answers in the
program's own format: the agent may stop, or it continues with the reason. It does not run the hooks of
.claude: Claude Code, Copilot and Cursor run those themselves.

A hook can send the agent back at most `limit` times (default 3), however many the program itself allows.
Each agent of each session has its own count, which resets when the agent is allowed to stop, on the next
prompt, or after 30 idle minutes.

Options:
  --host HOST          the program (default: recognized from its input):
                       {", ".join(HOSTS)}
  --project DIR        the project's folder (default: the nearest one with settings, upward
                       from the folder that the program names)
  --timeout SECONDS    time limit for all hooks together (default: {OWN_TIMEOUT_S:g}; in Qwen Code: 55)
  --exit-code          block with exit code 2 and the reason on stderr: for a program that
                       is not in this list, and whose agent stops even if a gate blocks

Examples:
  turngate install claude                   add the line to ~/.claude/settings.json, for all projects
  turngate install codex --project          add it to .codex/hooks.json of this project
  turngate doctor --host gemini             why does a hook not run, or not block, in Gemini CLI?
  turngate hook < event.json                what would the agent program be told now?

Exit codes:
  0   there is an answer on stdout; an empty one means that the agent may stop
  1   wrong usage, no event on stdin, or an internal error: stdout is empty
  2   with --exit-code, and in Kimi Code: the agent must not stop; the reason is on stderr
  64  the event on stdin came from a command that the agent ran, so nothing was checked or counted
  128 + N  ended by signal N: 130 interrupted, 143 terminated
"""
