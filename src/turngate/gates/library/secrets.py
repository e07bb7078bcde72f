"""The gate `secrets`: the added lines contain no key or token. Gitleaks looks for them too, if it is installed."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.decisions import Decision
from turngate.gates.added_lines import FILTERS, answer, counts, source_patches
from turngate.gates.gate import Finding, Gate, GateContext
from turngate.gates.git.output import FilePatch, Line
from turngate.gates.session_changes import find_patches, record_files

# Only formats that nothing else has.
KEYS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_\w{80,}",
    "a GitLab token": r"\bglpat-[\w-]{20,}",
    "a Slack token": r"\bxox[abeoprs]-[\w-]{20,}|hooks\.slack\.com/services/T\w+/B\w+/\w{20,}",
    "a Stripe key": r"\b[sr]k_live_[0-9A-Za-z]{20,}",
    "an Anthropic key": r"\bsk-ant-[\w-]{80,}",
    "an OpenAI key": r"\bsk-(?:proj-|svcacct-)?[\w-]{20,}T3BlbkFJ[\w-]{20,}",
    "a Google key": r"\bAIza[\w-]{35}\b",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "a PyPI token": r"\bpypi-AgEIcHlwaS5vcmc[\w-]{50,}",
    "a SendGrid key": r"\bSG\.[\w-]{22}\.[\w-]{43}\b",
    "a Hugging Face token": r"\bhf_[A-Za-z]{34}\b",
    "a DigitalOcean token": r"\bdop_v1_[0-9a-f]{64}\b",
}
_KEYS = re.compile("|".join(f"(?P<k{place}>{pattern})" for place, pattern in enumerate(KEYS.values())))
_IN_BASE64 = re.compile(r"[A-Za-z0-9+/]{40}")  # below the line that begins a private key
MAX_HEADERS = 6  # lines between both
_EXAMPLE = re.compile(r"EXAMPLE|(.)\1{9}|1234567890|x{6}", re.IGNORECASE)
GITLEAKS = CommandHook(
    command="gitleaks",
    args=tuple(
        "stdin --no-banner --redact --exit-code 3 --report-format json --report-path /dev/stdout".split()
    ),
)
FOUND = 3
ADVICE = "Remove them, also from this session's commits, and tell the user, who may have to revoke them."


async def check_secrets(context: GateContext) -> Decision:
    """What is found is named and never shown: the reason goes to a model and into logs."""
    patches = await find_patches(context) or await source_patches(context)
    lines = [(patch.path, line) for patch in patches.files for line in patch.added()]
    found = {*find_keys(patches.files), *await _ask_gitleaks(context, lines)}
    findings = sorted(
        (each for each in found if counts(context, each)), key=lambda each: (each.path, each.line)
    )
    return answer(findings, patches, "the added lines contain secrets", ADVICE)


def find_keys(patches: Iterable[FilePatch]) -> Iterator[Finding]:
    names = tuple(KEYS)
    for patch in patches:
        lines = [*patch.added()]
        for place, line in enumerate(lines):
            for match in _KEYS.finditer(line.text):
                below = "\n".join(each.text for each in lines[place + 1 : place + MAX_HEADERS])
                has_key = match.lastgroup != "k0" or _IN_BASE64.search(f"{line.text[match.end() :]}\n{below}")
                if has_key and not _EXAMPLE.search(match[0]):
                    yield Finding(patch.path, line.number, names[int((match.lastgroup or "k0")[1:])])


async def _ask_gitleaks(context: GateContext, lines: Sequence[tuple[str, Line]]) -> list[Finding]:
    """Return what gitleaks finds; nothing if it is not installed, or does not know how to read its input."""
    text = "\n".join(line.text for _, line in lines)
    report = await context.commands.run(GITLEAKS, stdin=text.encode("utf-8", "replace")) if text else None
    if not isinstance(report, Exited) or report.code != FOUND:
        return []
    try:
        leaks: list[dict[str, Any]] = json.loads(report.stdout)
        places = [(lines[int(leak["StartLine"]) - 1], str(leak["RuleID"])) for leak in leaks]
    except (ValueError, LookupError, TypeError):
        return []
    return [Finding(path, line.number, f"{rule} (gitleaks)") for (path, line), rule in places]


SECRETS = Gate(
    name="secrets",
    summary="the added lines contain no key or token",
    check=check_secrets,
    options=FILTERS,
    record=record_files,
)
