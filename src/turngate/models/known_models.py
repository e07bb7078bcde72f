"""What is known about models: the size of their context and answers, and their prices.

`known_models.json` is written by `tools/known_models.py`. A model that is not in it can be used too; its
context is taken to be 200,000 tokens and its price is not shown.
"""

import functools
import json
import os
import re
from typing import Any, NamedTuple

from turngate.core.conversation.messages import Usage

DEFAULT_CONTEXT_TOKENS = 200_000
_VERSION = re.compile(r"(-20\d{6}|-\d{4}|-latest|-preview.*|@.*)$")


class Price(NamedTuple):
    """US dollars for a million tokens; a long request has other prices."""

    input: float
    output: float
    cache_read: float
    cache_write: float


class KnownModel(NamedTuple):
    context: int = DEFAULT_CONTEXT_TOKENS
    max_output: int | None = None
    schemas: bool = False  # whether the model can be given the JSON Schema of its answer
    price: Price | None = None
    long_from: int | None = None  # above so many input tokens the price of a long request counts
    long_price: Price | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return the price of a request in US dollars, or None if it is not known."""
        is_long = self.long_from is not None and usage.total_input > self.long_from
        price = self.long_price if is_long else self.price
        if price is None:
            return None
        dollars = usage.input_tokens * price.input + usage.output_tokens * price.output
        dollars += usage.cache_read_input_tokens * price.cache_read
        dollars += usage.cache_creation_input_tokens * price.cache_write
        return dollars / 1_000_000


def known_model(provider: str, name: str) -> KnownModel:
    """Return what is known about a model; a date or version at the end of its name does not count."""
    table = _table().get(provider, {})
    row = table.get(name) or table.get(_VERSION.sub("", name)) or {}
    prices: dict[str, Any] = {each: Price(*row[each]) for each in ("price", "long_price") if each in row}
    return KnownModel(**(row | prices))


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    path = os.path.join(os.path.dirname(__file__), "known_models.json")
    with open(path, encoding="utf-8") as file:
        table: dict[str, dict[str, Any]] = json.load(file)
    return table
