"""A project's settings and environment for its copy: what names the folder of the project names the copy."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from turngate.core.hooks.kinds import CommandHook, GateHook, Hook
from turngate.core.settings import Rule, Settings
from turngate.doctor.proof.gate_text import read_text
from turngate.filesystem.content import content_id, has_id, names_id
from turngate.filesystem.project_copy import ProjectCopy, environment_in_copy
from turngate.filesystem.real_path import real_path
from turngate.trust.fingerprint import NO_SETTINGS, Surroundings, fingerprint


class Relocation:
    """From the folder of a project to its copy."""

    def __init__(self, project: str, copy: ProjectCopy) -> None:
        self.project, self.copy = project, copy.project
        self.private = os.path.dirname(copy.folder)  # the folder around the copy; nothing else is in it
        self._places = {project: copy.project, real_path(project): copy.project, copy.original: copy.folder}
        longest_first = sorted(self._places, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w.-])")

    def text(self, text: str) -> str:
        """Replace the folder of the project, and of its repository, by that of the copy."""
        return self._pattern.sub(lambda found: self._places[found[0]], text)

    def rule(self, rule: Rule) -> Rule:
        return replace(rule, hook=self._hook(rule.hook), files=self._files(rule.files))

    def settings(self, settings: Settings, rules: Iterable[Rule]) -> Settings:
        """Return the settings for these hooks. They have no common time limit: each is tried by itself."""
        env = {name: self.text(value) for name, value in settings.env.items()}
        guarded = {
            trust: {name: value for name, value in values.items() if name != "stop_budget"}
            for trust, values in settings.guarded.items()
        }
        return replace(settings, rules=tuple(rules), env=env, stop_budget=None, guarded=guarded)

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        moved = {name: self.text(value) for name, value in environment_in_copy(environ).items()}
        return {
            **moved,
            "GIT_CEILING_DIRECTORIES": self.private,
            "PYTHONDONTWRITEBYTECODE": "1",  # dependency folders are links to the original ones
            "TURNGATE_STATE": os.path.join(self.private, "state"),
        }

    def scripts(self, rule: Rule) -> list[str]:
        """Return the scripts that a hook runs, in the copy. There is no record of those that need no approval."""
        surroundings = Surroundings(self.project, os.path.expanduser("~"), os.environ)
        files = rule.files or fingerprint(rule, NO_SETTINGS, surroundings).files
        return [self.text(path) for path, content in files.items() if (content or "").startswith("sha256:")]

    def script_of_project(self, rule: Rule) -> str | None:
        """Return a script that holds the path of the project, which in the copy would still lead to the project."""
        for path in self.scripts(rule):
            text = read_text(path)
            if self.text(text) != text:
                return os.path.relpath(path, self.copy) if path.startswith(f"{self.copy}/") else path
        return None

    def _hook(self, hook: Hook) -> Hook:
        if not isinstance(hook, CommandHook | GateHook):
            return hook
        args = None if hook.args is None else tuple(map(self.text, hook.args))
        env = {name: self.text(value) for name, value in hook.env.items()}
        if isinstance(hook, GateHook):
            command = None if hook.command is None else self.text(hook.command)
            options = {name: self._value(value) for name, value in hook.options.items()}
            return replace(hook, command=command, args=args, env=env, options=options)
        return replace(hook, command=self.text(hook.command), args=args, env=env)

    def _value(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._value(each) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def _files(self, files: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the files that are compared before and after each run, at their places in the copy."""
        return {self.text(path): self._file_id(path, recorded) for path, recorded in files.items()}

    def _file_id(self, path: str, recorded: str | None) -> str | None:
        """Return the id of the file in the copy, where times and names are others, if the original has not changed."""
        moved = self.text(path)
        is_bound = (recorded or "").startswith(("stat:", "names:"))
        if recorded is None or moved == path or not is_bound or not has_id(path, recorded):
            return recorded
        return names_id(moved) if recorded.startswith("names:") else content_id(moved)
