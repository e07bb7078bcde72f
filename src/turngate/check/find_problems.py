"""Finds what is wrong with a project's settings and hooks; `turngate check` and `turngate doctor` report it."""

import contextlib
import json
import os
from collections.abc import Iterator

from turngate.check.lint import lint
from turngate.core.settings import Problem, Settings
from turngate.errors import UsageError
from turngate.models.resolve import JudgeModels
from turngate.plugins.handlers import installed_plugins
from turngate.project.files import LOCAL
from turngate.settings.json_file import MAX_FILE_BYTES
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes, settings_files
from turngate.settings.problem_log import rule_problem
from turngate.settings.slash_commands import load_commands

_MAX_MODELS = 20  # of hooks; each takes a while to open


def find_problems(settings: Settings, project: str) -> tuple[Problem, ...]:
    """Return the problems of the settings, of their hooks and of the files that hold them."""
    return (
        *settings.problems,
        *lint(settings, project),
        *(
            Problem(file=name, message="is empty, so it has no hooks", severity="note")
            for name, content in _contents(settings, project)
            if not content.strip()
        ),
        *_without_model(settings),
        *_missing_plugins(settings, project),
        *load_commands(project, settings.plugin_dirs, files=LOCAL).problems,
    )


def _contents(settings: Settings, project: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names of the settings files that can be read, with their contents."""
    for file in settings_files(project, settings.dialect.name, files=LOCAL):
        with contextlib.suppress(OSError, NotARegularFile, FileTooLarge):
            yield file.display_name, read_bytes(file.path, MAX_FILE_BYTES)


def _without_model(settings: Settings) -> Iterator[Problem]:
    """Note hooks that ask a model and have none unless a session brings one."""
    judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
    why: dict[str | None, str | None] = {}
    for rule in settings.rules:
        if rule.hook.asks != "model" or not rule.hook.enabled:
            continue
        model = getattr(rule.hook, "model", None)
        if model not in why and len(why) == _MAX_MODELS:
            message = f"names a model beyond the first {_MAX_MODELS}, so the model is not checked"
            yield rule_problem(rule, None, message, severity="note")
            continue
        if model not in why:
            why[model] = None
            try:
                judges(model)
            except UsageError as error:
                why[model] = f"has no model outside of a session: {error}"
        if reason := why[model]:
            yield rule_problem(rule, None, reason, severity="note")


def _missing_plugins(settings: Settings, project: str) -> Iterator[Problem]:
    installed = installed_plugins() if settings.plugins else ()
    for name in settings.plugins:
        if name not in installed:
            quoted = json.dumps(name).encode()
            files = [file for file, content in _contents(settings, project) if quoted in content]
            message = f"enables the plugin {name!r}, which is not installed, so `turngate run` does not start"
            hint = f"install it, or remove the name; installed: {', '.join(installed) or 'none'}"
            file = files[-1] if files else ""  # the last list counts
            yield Problem(file=file, field="turngate.plugins", message=message, hint=hint)
