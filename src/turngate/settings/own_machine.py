"""The settings of a project on another machine under those of this one.

Models are asked and http hooks are sent from here, with the keys of the user. So what the user and the administrator
have set here counts for them, and the home folder on the other machine is trusted no more than a project.
"""

from collections.abc import Sequence
from dataclasses import replace

from turngate.core.constants import COMMAND_LINE, MANAGED
from turngate.core.dialect import Dialect
from turngate.core.settings import AllowedUrls, Layer, Settings, merge
from turngate.settings import key_table as keys

# Fields that user and managed settings of the other machine do not set. A project does, within its limits.
_OWN_FIELDS = frozenset({"model", "judge", "hard_limit"})
_OWN_KEYS = (
    *("turngate.model", "turngate.judge", "turngate.hardLimit", "turngate.allowedUrls", "env"),
    *(*keys.RESTRICTIONS, "allowManagedHooksOnly"),
)
_OWNER_LEVELS = ("user", MANAGED)


def merge_with_own(layers: Sequence[Layer], own: Sequence[Layer], dialect: Dialect) -> Settings:
    """Return the settings of layers that were read on another machine, under the user and managed layers of this one."""
    settings = merge([*map(_as_remote, layers), *map(_as_own, own)], keys.MERGE_RULES, dialect)
    given = [layer for layer in layers if layer.level == COMMAND_LINE]
    here = merge([*own, *given], keys.MERGE_RULES, dialect)
    lists = [each for each in here.allowed_urls if each.level != COMMAND_LINE]
    urls, variables = here.http_hook_urls, here.http_hook_variables
    return replace(
        settings,
        user_env=here.user_env,
        allowed_urls=(*lists, *map(_narrowing, settings.allowed_urls)),
        http_hook_urls=settings.http_hook_urls if urls is None else urls,
        http_hook_variables=settings.http_hook_variables if variables is None else variables,
    )


def _as_remote(layer: Layer) -> Layer:
    if layer.level not in _OWNER_LEVELS or _OWN_FIELDS.isdisjoint(layer.scalars):
        return layer
    return replace(
        layer, scalars={name: value for name, value in layer.scalars.items() if name not in _OWN_FIELDS}
    )


def _as_own(layer: Layer) -> Layer:
    """Return what a layer of this machine says about all hooks. Its hooks and its `env` are not for another machine."""
    is_managed = layer.level == MANAGED
    file = f"{layer.file} of this machine"
    return Layer(
        file=file,
        level=layer.level,
        family=layer.family,
        disable_all=layer.disable_all if is_managed else None,
        managed_only=layer.managed_only,
        scalars={name: layer.scalars[name] for name in _OWN_FIELDS & layer.scalars.keys()},
        problems=tuple(
            replace(each, file=file) for each in layer.problems if _concerns_all(each.event, each.field)
        ),
    )


def _concerns_all(event: str | None, field: str | None) -> bool:
    """Return whether a problem is about the whole file, or about a key that counts for another machine."""
    return event is None and (field is None or field.startswith(_OWN_KEYS))


def _narrowing(allowed: AllowedUrls) -> AllowedUrls:
    """A list of the other machine allows nothing that is not allowed without it."""
    return replace(allowed, level="remote") if allowed.level in _OWNER_LEVELS else allowed
