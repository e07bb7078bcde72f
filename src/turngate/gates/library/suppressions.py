"""The gate `suppressions`: the added lines silence no linter or type checker."""

import re

from turngate.gates.added_lines import line_gate
from turngate.gates.source_text import Source

_IN_COMMENTS = re.compile(
    r"\bnoqa\b|\b(?:type|pyright|ty|pyre|mypy): ?ignore|\bpylint: ?disable|\b(?:fmt|isort): ?(?:off|skip)|\bnosec\b|pragma: no cover"
    r"|@ts-(?:ignore|expect-error|nocheck)|\b(?:eslint|tslint|oxlint|stylelint|rubocop|swiftlint|shellcheck)[-: ]disable|\bbiome-ignore"
    r"|\b(?:istanbul|c8|v8) ignore|\bnolint|\bNOLINT|phpcs:(?:ignore|disable)|@phpstan-ignore|@psalm-suppress|\bnoinspection\b"
)
_IN_CODE = re.compile(
    r"\bas any\b|<any>|#!?\[allow\(|@SuppressWarnings\b|@Suppress\(|#pragma warning disable|@(?:typing\.)?no_type_check\b"
)


def find_suppression(_: str, source: Source, place: int) -> str | None:
    match = _IN_COMMENTS.search(source.comments[place]) or _IN_CODE.search(source.code[place])
    return match[0].rstrip("(") if match else None


SUPPRESSIONS = line_gate(
    "suppressions",
    "the added lines silence no linter or type checker",
    "silence a check",
    "Correct what the tool complains about, and remove them.",
    find_suppression,
)
