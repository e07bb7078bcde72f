"""The gate `suppressions`: the added lines silence no linter or type checker."""

import re

from turngate.core.verdict.decisions import Decision
from turngate.gates.added_lines import FILTERS, answer, each_line, find_added
from turngate.gates.gate import Gate, GateContext
from turngate.gates.session_changes import record_files
from turngate.gates.source_text import Source

_IN_COMMENTS = re.compile(
    r"\bnoqa\b|\b(?:type|pyright|ty|pyre|mypy): ?ignore|\bpylint: ?disable|\b(?:fmt|isort): ?(?:off|skip)|\bnosec\b|pragma: no cover"
    r"|@ts-(?:ignore|expect-error|nocheck)|\b(?:eslint|tslint|oxlint|stylelint|rubocop|swiftlint|shellcheck)[-: ]disable|\bbiome-ignore"
    r"|\b(?:istanbul|c8|v8) ignore|\bnolint|\bNOLINT|phpcs:(?:ignore|disable)|@phpstan-ignore|@psalm-suppress|\bnoinspection\b"
)
_IN_CODE = re.compile(
    r"\bas any\b|<any>|#!?\[allow\(|@SuppressWarnings\b|@Suppress\(|#pragma warning disable|@(?:typing\.)?no_type_check\b"
)
ADVICE = "Correct what the tool complains about, and remove them."


def find_suppression(_: str, source: Source, place: int) -> str | None:
    match = _IN_COMMENTS.search(source.comments[place]) or _IN_CODE.search(source.code[place])
    return match[0].rstrip("(") if match else None


async def check_suppressions(context: GateContext) -> Decision:
    findings, patches = await find_added(context, each_line(find_suppression))
    return answer(findings, patches, "the added lines silence a check", ADVICE)


SUPPRESSIONS = Gate(
    name="suppressions",
    summary="the added lines silence no linter or type checker",
    check=check_suppressions,
    options=FILTERS,
    record=record_files,
    needs_start=True,
)
