"""`turngate check`: every problem of the settings at once."""

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace

from turngate.cli.project import project_folder
from turngate.core.hooks import AgentHook, PromptHook
from turngate.core.settings import Problem, Rule, Settings
from turngate.errors import UsageError
from turngate.models.resolve import JudgeModels
from turngate.settings.lint import lint
from turngate.settings.load import load_settings
from turngate.settings.paths import script_places, settings_places

CLEAN, PROBLEMS = 0, 1
_ORDER = {"error": 0, "warning": 1, "note": 2}


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project)
    settings = load_settings(project, dialect=options.dialect)
    problems = (
        *settings.problems,
        *lint(settings, project),
        *_switched_off(settings),
        *_unanswered(settings),
    )
    files = [
        place.shown for place in settings_places(project, options.dialect) if os.path.lexists(place.path)
    ]
    files += [
        place.shown for _, place in script_places(project, options.dialect) if os.path.lexists(place.path)
    ]
    files += sorted({problem.file for problem in problems} - set(files))
    if options.json:
        shown = {"files": files, "hooks": len(settings.rules), "problems": [asdict(p) for p in problems]}
        print(json.dumps(shown, indent=2))
    else:
        _print(files, len(settings.rules), problems, project)
    return PROBLEMS if any(problem.severity != "note" for problem in problems) else CLEAN


def _switched_off(settings: Settings) -> Iterator[Problem]:
    for rule in settings.rules:
        switch = settings.switched_off.get(rule.family or "")
        why = (
            f"disableAllHooks in {switch} switches it off" if switch else "its own `enabled` switches it off"
        )
        if switch or not rule.hook.enabled:
            yield _note(rule, why)


def _note(rule: Rule, message: str) -> Problem:
    return Problem(file=rule.file or "", message=message, severity="note", event=rule.event, index=rule.index)


def _unanswered(settings: Settings) -> Iterator[Problem]:
    """Prompt and agent hooks whose model is not there; whoever runs a session has another one."""
    judges = JudgeModels(settings.judge)
    for rule in settings.rules:
        if isinstance(rule.hook, PromptHook | AgentHook) and rule.hook.enabled:
            try:
                judges(rule.hook.model)
            except UsageError as error:
                yield _note(rule, f"without a session's model nobody answers it: {error}")


def _print(files: list[str], hooks: int, problems: tuple[Problem, ...], project: str) -> None:
    if not files:
        print(f"{project} has no settings; looked for .claude, .mux and .turngate here and in your home")
    for file in files:
        print(file)
        mine = sorted((p for p in problems if p.file == file), key=lambda p: _ORDER[p.severity])
        for problem in mine:
            print(f"  {problem.severity}: {replace(problem, file='')!s}")
            if problem.hint:
                print(f"    → {problem.hint}")
    serious = sum(problem.severity != "note" for problem in problems)
    print(f"{hooks} hook{'s' * (hooks != 1)}, {serious or 'no'} problem{'s' * (serious != 1)}")
