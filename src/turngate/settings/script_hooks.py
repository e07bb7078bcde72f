"""Script hooks: an executable `.mux/stop` is a Stop hook without a settings entry."""

from dataclasses import replace

from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Layer, Problem, Rule
from turngate.filesystem import files
from turngate.settings.paths import SettingsFile, script_files


def script_layers(project: str, dialect: str) -> list[Layer]:
    return [
        _layer(event, script)
        for event, script in script_files(project, dialect)
        if files.lexists(script.path)
    ]


def _layer(event: str, script: SettingsFile) -> Layer:
    name = script.display_name
    layer = Layer(file=name, level=script.level, family=script.family)
    if not files.isfile(script.path):
        message = f"{name} is not an executable file, so it never runs"
        return _with_problem(layer, event, message, "make it an executable file, or remove it")
    if not files.is_executable(script.path):
        return _with_problem(layer, event, f"{name} is not executable, so it never runs", f"chmod +x {name}")
    hook = CommandHook(script.path, args=(), id=name)
    rule = Rule(event, hook, source="script", file=name, family=script.family, level=script.level)
    return replace(layer, rules=(rule,))


def _with_problem(layer: Layer, event: str, message: str, hint: str) -> Layer:
    problem = Problem(file=layer.file, event=event, message=message, hint=hint)
    return replace(layer, problems=(problem,))
