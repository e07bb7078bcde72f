"""`turngate check`: report every problem in the settings at once."""

import argparse
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from turngate.check.misplaced_files import find_misplaced_files
from turngate.cli.arguments import EXIT_ERRORS, EXIT_USAGE, Parser, add_json_option, add_project_options
from turngate.cli.console.conversation_text import counted, flat
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_PROBLEMS
from turngate.cli.project import plugin_folders, project_folder, search_note, with_place
from turngate.core.constants import FAMILIES
from turngate.core.hooks.selection import switched_off_by
from turngate.core.settings import Problem, Settings
from turngate.project.files import LOCAL
from turngate.project.git import run_git
from turngate.settings.agent_types import check_agent_files
from turngate.settings.load import load_layers, project_path
from turngate.settings.paths import script_files, settings_files, unread_files
from turngate.settings.problem_log import rule_problem

_MAX_POSITIONS = 3  # of one finding
_ORDER = {"error": 0, "warning": 1, "note": 2}
_STYLES = {"error": "alert", "warning": "notice", "note": "dim"}


def declare(parser: Parser) -> None:
    parser.ssh_hint = (
        "it looks for programs and scripts here: run it there, or read what `turngate hooks --ssh` reports"
    )
    parser.description = """\
Report what will not work in the project's settings, with file, event, position and field, and how to fix it.
A problem is an error (a hook does not run), a warning (it does not do what it seems to) or a note (it works
here, but perhaps not elsewhere). Hooks that are not approved are listed too; they do not change the exit
code."""
    parser.epilog = f"""\
Examples:
  turngate check                     this project
  turngate check --dialect claude    as Claude Code reads its files
  turngate check --strict            for CI: notes cause a failure too

Exit codes:
  0   no errors and no warnings; there may be notes
  1   errors or warnings; with --strict also notes
  {EXIT_USAGE}
  {EXIT_ERRORS}"""
    add_project_options(parser)
    parser.add_argument("--strict", action="store_true", help="exit with 1 for notes too")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    # lazy: loads asyncio, which --help does not need
    from turngate.cli.review import pending_hooks  # noqa: PLC0415
    from turngate.cli.review.entries import shown_key  # noqa: PLC0415
    from turngate.trust.review import accepts_all, review_project  # noqa: PLC0415

    project = project_folder(options.project, options.dialect)
    plugins = plugin_folders(options.plugin_dir)
    given = {"dialect": options.dialect, "plugin_dirs": plugins, "extra": options.settings}
    with show_if_slow("checking the settings"):
        settings, problems = find_all_problems(project, given)
        hooks = () if accepts_all() else pending_hooks(review_project(project, **given, files=LOCAL))
        pending = [shown_key(hook.key) for hook in hooks]
    files = _settings_files(project, settings, problems)
    count = sum(options.strict or problem.severity != "note" for problem in problems)
    if options.json:
        found = [asdict(problem) for problem in problems]
        report = {
            "project": project,
            "files": files,
            "hooks": len(settings.rules),
            "problems": found,
            "pending": pending,
        }
        print(json.dumps(report, indent=2))
    else:
        if note := search_note(project, options.project):
            print(note)
        where, dialect = f"in {flat(project)} and in your home folder", options.dialect
        if not files and dialect == "turngate":
            print(f"no settings: looked for .claude, .mux and .turngate {where}")
        elif not files:
            text = f"no settings for the {dialect} dialect: it reads .{FAMILIES[dialect][0]} {where}"
            print("; ".join(filter(None, (text, unread_files(project, dialect, LOCAL)))))
        _print_problems(files, problems, project)
        total = f"{counted(len(settings.rules), 'hook')}, {count or 'no'} problem{'s' * (count != 1)}"
        print(paint(total, "alert" if count else "good"))
        if pending:
            names = f"{', '.join(pending[:_MAX_POSITIONS])}{' …' if len(pending) > _MAX_POSITIONS else ''}"
            hint = with_place("`turngate hooks approve --all` shows it and asks you", project)
            print(paint(f"not approved, so Turngate skips it: {names}", "notice"), f"→ {hint}", sep="\n")
    return EXIT_PROBLEMS if count else 0


def find_all_problems(project: str, given: Mapping[str, Any]) -> tuple[Settings, tuple[Problem, ...]]:
    from turngate.check.lint import find_problems  # noqa: PLC0415 # lazy: as above

    layers = load_layers(project_path(project, LOCAL), **given, files=LOCAL)
    settings = layers.merge()
    in_agents, agent_problems = check_agent_files(settings, project)
    settings = settings.with_rules(*in_agents, problems=(*find_misplaced_files(layers), *agent_problems))
    return settings, (
        *find_problems(settings, project),
        *_switched_off(settings),
        *unignored_local_settings(project, given["dialect"]),
    )


def _settings_files(project: str, settings: Settings, problems: Iterable[Problem]) -> list[str]:
    """Return the existing settings files and hook scripts, then files of plugins and agent types, and of problems."""
    dialect = settings.dialect.name
    scripts = [file for _, file in script_files(project, dialect)]
    candidates = settings_files(project, dialect, files=LOCAL) + scripts
    files = [file.display_name for file in candidates if os.path.lexists(file.path)]
    others = [
        rule.file for rule in settings.rules if rule.file and (rule.source == "plugin" or rule.agent_type)
    ]
    return files + sorted({*others, *(problem.file for problem in problems)} - set(files))


def _switched_off(settings: Settings) -> Iterator[Problem]:
    for rule in settings.rules:
        if setting := switched_off_by(rule, settings):
            yield rule_problem(rule, None, f"{setting} switches it off", severity="note")
        elif not rule.hook.enabled:
            yield rule_problem(rule, None, "its own `enabled` switches it off", severity="note")


def _print_problems(files: list[str], problems: Iterable[Problem], project: str) -> None:
    for file in files:
        print(paint(flat(file), "bold"))
        for problem, positions in _group(problem for problem in problems if problem.file == file):
            severity = paint(f"{problem.severity}:", _STYLES[problem.severity])
            print(f"  {severity} {flat(': '.join(filter(None, (positions, problem.message))))}")
            if problem.hint:
                print(f"    → {with_place(flat(problem.hint), project)}")


def _group(problems: Iterable[Problem]) -> Iterator[tuple[Problem, str]]:
    """Yield each finding once, the errors first, with the positions of all hooks that have it."""
    groups: dict[tuple[str, str, str | None], list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: _ORDER[problem.severity]):
        groups.setdefault((problem.severity, problem.message, problem.hint), []).append(problem)
    for same in groups.values():
        positions = ", ".join(problem.position for problem in same[:_MAX_POSITIONS] if problem.position)
        more = len(same) - _MAX_POSITIONS
        yield same[0], positions + (f" and {more} more" if more > 0 else "")


GIT_TIMEOUT_S = 10.0
NOT_IGNORED = 1  # exit code of `git check-ignore`; 128 outside of a repository


def unignored_local_settings(project: str, dialect: str) -> Iterator[Problem]:
    """Report each `settings.local.json` of a git repository that is tracked or not ignored."""
    files = [file for file in settings_files(project, dialect, files=LOCAL) if file.level == "local"]
    for file in files:
        if os.path.lexists(file.path) and check_ignore(project, file.path) == NOT_IGNORED:
            yield Problem(
                file=file.display_name,
                message="is for this machine only, but git does not ignore it",
                hint=f"echo {file.display_name} >> .gitignore",
                severity="note",
            )


def check_ignore(project: str, path: str) -> int | None:
    """Return the exit code of `git check-ignore`; None if git cannot answer."""
    try:
        return run_git(project, "check-ignore", "--quiet", "--", path, timeout=GIT_TIMEOUT_S).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None
