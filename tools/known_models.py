"""Writes src/turngate/models/known_models.json: sizes and prices of models, from the tables of genai-prices.

python tools/known_models.py    (genai-prices comes with pydantic-ai)
"""

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from genai_prices import data
from genai_prices.types import ConditionalPrice, ModelInfo, ModelPrice, StartDateConstraint, TieredPrices

TARGET = Path(__file__).resolve().parents[1] / "src" / "turngate" / "models" / "known_models.json"
PROVIDERS = ("anthropic", "openai", "google", "deepseek", "groq", "mistral", "x-ai")
NAMES = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
# Anthropic's API demands the largest size of an answer, and older models reject a large one.
MAX_OUTPUT = (
    (r"claude-(opus|sonnet|haiku)-4-5", 64_000),
    (r"claude-(3|opus-4-[01]|sonnet-4-0|2|v|instant)", 4_096),
    (r"claude-", 128_000),
)
SCHEMAS = re.compile(r"claude-(fable|mythos|opus-4-[15678]|opus-5|sonnet-4-[56]|sonnet-5|haiku-4-5|haiku-5)")


def main() -> None:
    table = {
        provider.id: _rows(provider.models, provider.id)
        for provider in data.providers
        if provider.id in PROVIDERS
    }
    lines = [
        f'  "{provider}": {{\n'
        + ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        + "\n  }"
        for provider, rows in sorted(table.items())
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{TARGET.name}: {sum(map(len, table.values()))} models")


def _rows(models: list[ModelInfo], provider: str) -> dict[str, Any]:
    rows = {model.id: _row(model, provider) for model in models}
    return {name: row for name, row in sorted(rows.items()) if row}


def _row(model: ModelInfo, provider: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if model.context_window:
        row["context"] = model.context_window
    if provider == "anthropic":
        row["max_output"] = next(size for pattern, size in MAX_OUTPUT if re.match(pattern, model.id))
        if SCHEMAS.match(model.id):
            row["schemas"] = True
    return row | _prices(_current(model))


def _current(model: ModelInfo) -> ModelPrice:
    prices = model.prices
    if isinstance(prices, ModelPrice):
        return prices
    today = dt.datetime.now(dt.UTC).date()
    valid = [price for price in prices if _is_valid(price, today)]
    return valid[-1].prices


def _is_valid(price: ConditionalPrice, today: dt.date) -> bool:
    constraint = price.constraint
    return constraint is None or (
        isinstance(constraint, StartDateConstraint) and constraint.start_date <= today
    )


def _prices(price: ModelPrice) -> dict[str, Any]:
    given: list[Any] = [getattr(price, name, None) for name in NAMES]
    if given[0] is None or given[1] is None:
        return {}
    values = [given[0] if value is None else value for value in given]
    row: dict[str, Any] = {"price": [_number(getattr(value, "base", value)) for value in values]}
    tiers = [value.tiers[0] for value in values if isinstance(value, TieredPrices)]
    if tiers:
        row["long_from"] = tiers[0].start
        row["long_price"] = [
            _number(value.tiers[0].price if isinstance(value, TieredPrices) else value) for value in values
        ]
    return row


def _number(value: Decimal) -> float | int:
    return int(value) if value == int(value) else float(value)


if __name__ == "__main__":
    main()
