"""Script hooks: an executable `.mux/stop` is a Stop hook without any settings entry."""

import os

from turngate.core.hooks import CommandHook
from turngate.core.settings import Layer, Problem, Rule
from turngate.settings.paths import Place, script_places


def script_layers(project: str, dialect: str) -> list[Layer]:
    found = (
        _layer(event, place)
        for event, place in script_places(project, dialect)
        if os.path.lexists(place.path)
    )
    return list(found)


def _layer(event: str, place: Place) -> Layer:
    layer = Layer(file=place.shown, level=place.level, family=place.family)
    if not os.path.isfile(place.path):
        return _bad(
            layer,
            event,
            "is no file that could be run; it never runs",
            "make it an executable file, or remove it",
        )
    if not os.access(place.path, os.X_OK):
        return _bad(layer, event, "is not executable, so it never runs", f"chmod +x {place.shown}")
    hook = CommandHook(place.path, args=(), id=place.shown)
    rule = Rule(event, hook, source="script", file=place.shown, family=place.family)
    return Layer(**{**vars(layer), "rules": (rule,)})


def _bad(layer: Layer, event: str, message: str, hint: str) -> Layer:
    problem = Problem(file=layer.file, event=event, message=message, hint=hint)
    return Layer(**{**vars(layer), "problems": (problem,)})
