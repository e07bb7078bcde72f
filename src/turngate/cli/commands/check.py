"""`turngate check`: report every problem in the settings at once."""

import argparse
import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from turngate.cli.git_ignore import unignored_local_settings
from turngate.cli.main import EXIT_PROBLEMS
from turngate.cli.progress import show_if_slow
from turngate.cli.project import plugin_folders, project_folder, search_note
from turngate.cli.streams import paint
from turngate.cli.terminal.format import flat
from turngate.core.constants import FAMILIES
from turngate.core.plan import switched_off_by
from turngate.core.settings import Problem, Rule, Settings
from turngate.errors import UsageError
from turngate.models.resolve import JudgeModels
from turngate.plugins.entry_points import installed_plugins
from turngate.settings.json_file import MAX_FILE_BYTES
from turngate.settings.lint import lint
from turngate.settings.load import load_settings
from turngate.settings.paths import (
    FileTooLarge,
    NotARegularFile,
    read_bytes,
    script_files,
    settings_files,
    unread_files,
)
from turngate.settings.problem_log import rule_problem
from turngate.subagents.agent_files import check_agent_files

_MAX_BLANK_BYTES = 100  # a larger file is not taken for an empty one
_MAX_POSITIONS = 3  # of one finding
_MAX_MODELS = 20  # of hooks; each takes a while to open
_ORDER = {"error": 0, "warning": 1, "note": 2}
_STYLES = {"error": "alert", "warning": "notice", "note": "dim"}


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project, options.dialect)
    plugins = plugin_folders(options.plugin_dir)
    with show_if_slow("checking the settings"):
        settings = load_settings(
            project, dialect=options.dialect, plugin_dirs=plugins, extra=options.settings
        )
        in_agents, agent_problems = check_agent_files(settings, project)
        settings = settings.with_rules(*in_agents, problems=agent_problems)
        problems = (
            *settings.problems,
            *lint(settings, project),
            *_empty_files(project, options.dialect),
            *_switched_off(settings),
            *_without_model(settings),
            *_missing_plugins(settings, project, options.dialect),
            *unignored_local_settings(project, options.dialect),
        )
    files = _settings_files(project, settings, problems)
    if options.json:
        report = {
            "project": project,
            "files": files,
            "hooks": len(settings.rules),
            "problems": [asdict(p) for p in problems],
        }
        print(json.dumps(report, indent=2))
    else:
        if note := search_note(project, options.project):
            print(note)
        _print(files, len(settings.rules), problems, project, options.dialect, strict=options.strict)
    return EXIT_PROBLEMS if any(_counts(problem, strict=options.strict) for problem in problems) else 0


def _counts(problem: Problem, *, strict: bool) -> bool:
    return strict or problem.severity != "note"


def _settings_files(project: str, settings: Settings, problems: Iterable[Problem]) -> list[str]:
    """Return the existing settings files and hook scripts, then files of plugins and agent types, and of problems."""
    dialect = settings.dialect.name
    candidates = settings_files(project, dialect) + [file for _, file in script_files(project, dialect)]
    files = [file.display_name for file in candidates if os.path.lexists(file.path)]
    others = [
        rule.file for rule in settings.rules if rule.file and (rule.source == "plugin" or rule.agent_type)
    ]
    return files + sorted({*others, *(problem.file for problem in problems)} - set(files))


def _empty_files(project: str, dialect: str) -> Iterator[Problem]:
    for file in settings_files(project, dialect):
        with contextlib.suppress(OSError, NotARegularFile, FileTooLarge):
            if not read_bytes(file.path, _MAX_BLANK_BYTES).strip():
                message = "is empty, so it has no hooks"
                yield Problem(file=file.display_name, message=message, severity="note")


def _switched_off(settings: Settings) -> Iterator[Problem]:
    for rule in settings.rules:
        if setting := switched_off_by(rule, settings):
            yield _note(rule, f"{setting} switches it off")
        elif not rule.hook.enabled:
            yield _note(rule, "its own `enabled` switches it off")


def _without_model(settings: Settings) -> Iterator[Problem]:
    """Note hooks that ask a model and have none unless a session brings one."""
    judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
    why: dict[str | None, str | None] = {}
    for rule in settings.rules:
        if not rule.hook.asks_model or not rule.hook.enabled:
            continue
        model = getattr(rule.hook, "model", None)
        if model not in why and len(why) == _MAX_MODELS:
            yield _note(
                rule, f"names another model than the first {_MAX_MODELS}, so its model is not checked"
            )
            continue
        if model not in why:
            why[model] = _unusable(model, judges)
        if why[model]:
            yield _note(rule, f"has no model outside of a session: {why[model]}")


def _unusable(model: str | None, judges: JudgeModels) -> str | None:
    try:
        judges(model)
    except UsageError as error:
        return str(error)
    return None


def _missing_plugins(settings: Settings, project: str, dialect: str) -> Iterator[Problem]:
    installed = installed_plugins() if settings.plugins else ()
    for name in settings.plugins:
        if name not in installed:
            available = ", ".join(installed) or "none"
            message = f"enables the plugin {name!r}, which is not installed, so `turngate run` does not start"
            yield Problem(
                file=_naming_file(name, project, dialect),
                field="turngate.plugins",
                message=message,
                hint=f"install it, or remove the name; installed: {available}",
            )


def _naming_file(plugin: str, project: str, dialect: str) -> str:
    """Return the file that enables a plugin: the last one that names it, since the last list counts."""
    for file in reversed(settings_files(project, dialect)):
        with contextlib.suppress(OSError, NotARegularFile, FileTooLarge):
            if json.dumps(plugin).encode() in read_bytes(file.path, MAX_FILE_BYTES):
                return file.display_name
    return ""


def _note(rule: Rule, message: str) -> Problem:
    return rule_problem(rule, None, message, severity="note")


def _no_settings(project: str, dialect: str) -> str:
    where = f"in {flat(project)} and in your home folder"
    if dialect == "turngate":
        return f"no settings: looked for .claude, .mux and .turngate {where}"
    text = f"no settings for the {dialect} dialect: it reads .{FAMILIES[dialect][0]} {where}"
    return "; ".join(filter(None, (text, unread_files(project, dialect))))


def _print(
    files: list[str],
    hooks: int,
    problems: tuple[Problem, ...],
    project: str,
    dialect: str,
    *,
    strict: bool,
) -> None:
    if not files:
        print(_no_settings(project, dialect))
    for file in files:
        print(paint(flat(file), "bold"))
        for problem, positions in _group(problem for problem in problems if problem.file == file):
            severity = paint(f"{problem.severity}:", _STYLES[problem.severity])
            print(f"  {severity} {flat(': '.join(filter(None, (positions, problem.message))))}")
            if problem.hint:
                print(f"    → {flat(problem.hint)}")
    serious = sum(_counts(problem, strict=strict) for problem in problems)
    total = f"{hooks} hook{'s' * (hooks != 1)}, {serious or 'no'} problem{'s' * (serious != 1)}"
    print(paint(total, "alert" if serious else "good"))


def _group(problems: Iterable[Problem]) -> Iterator[tuple[Problem, str]]:
    """Yield each finding once, the errors first, with the positions of all hooks that have it."""
    groups: dict[tuple[str, str, str | None], list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: _ORDER[problem.severity]):
        groups.setdefault((problem.severity, problem.message, problem.hint), []).append(problem)
    for same in groups.values():
        positions = ", ".join(problem.position for problem in same[:_MAX_POSITIONS] if problem.position)
        more = len(same) - _MAX_POSITIONS
        yield same[0], positions + (f" and {more} more" if more > 0 else "")
