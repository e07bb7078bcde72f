"""The gate `dependencies`: what the project depends on changes only with the user's word."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turngate.core.globs import expand_braces, matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.conversation import read_wishes
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import FilePatch, show_path
from turngate.gates.session_changes import WHOLE_FILE, record_files, require_patches
from turngate.gates.source_text import FOREIGN_FILES

_JSON, _TOML = ("package.json", "composer.json"), ("pyproject.toml", "Cargo.toml", "Pipfile")
# The lines that name a dependency, and its version.
_LINES = {
    "requirements*.{txt,in}": r"^([A-Za-z0-9][\w.-]*)(.*?)(?:\s*[#;].*)?$",
    "go.mod": r"^\s*(?:require\s+)?([\w.-]+\.[\w.-]+/\S+)\s+(v\S+)",
    "{Gemfile,*.gemspec}": r"""^\s*(?:gem|\w+\.add_\w*dependency)[\s(]+["']([^"']+)["'](.*)""",
    "{build.gradle,build.gradle.kts}": r"""^\s*\w*(?:[iI]mplementation|[aA]pi|[cC]ompile\w*|[rR]untimeOnly)[\s(]+["']([^:"']+:[^:"']+):?([^"']*)""",
    "pom.xml": r"<artifactId>([^<]+)</artifactId>()",
    "{pubspec.yaml,environment.yml,environment.yaml}": r"^\s+-?\s*([a-z]\w[\w-]*)\s*[:=](.*)",
    "{*.csproj,Directory.Packages.props}": r'<Package(?:Reference|Version) Include="([^"]+)"(.*)',
    "{mix.exs,Package.swift}": r"""^\s*(?:\{:(\w+),|\.package\(url:\s*"([^"]+)")(.*)""",
}
_PATTERNS = {glob: re.compile(pattern) for glob, pattern in _LINES.items()}
MANIFESTS = (*_JSON, *_TOML, *_PATTERNS)
PATHSPECS = tuple(f":(glob)**/{each}" for glob in MANIFESTS for each in expand_braces(glob) or (glob,))
_SECTION = re.compile(
    r"(?:[a-z]+-?)?dependenc(?:ies|y-groups)|optional-dependencies|require(?:-dev|s)?|(?:dev-)?packages",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
# The user speaks of dependencies: each change of them may be meant.
_WORD = re.compile(
    r"\b(?:dependenc|packages?\b|(?<!standard )librar|crates?\b|gems?\b|upgrade|bump|(?:npm|pip|uv|cargo|go|yarn|pnpm|poetry|bundle) (?:install|add|get)\b)",
    re.IGNORECASE,
)
ADVICE = "Undo these changes, or ask the user first."


async def check_dependencies(context: GateContext) -> Decision:
    patches = await require_patches(
        context, "what the manifests were is", *PATHSPECS, context_lines=WHOLE_FILE
    )
    wanted = [patch for patch in patches.files if not matches_globs(FOREIGN_FILES, patch.path)]
    wishes = read_wishes(context.event) if wanted else ()
    if any(map(_WORD.search, wishes)):
        return Allow()
    said = " ".join(wishes).lower()
    found = [text for patch in wanted for name, text in find_changed(patch) if not _is_named(name, said)]
    if not found:
        return Allow()
    return Block(f"the user has not asked for these dependencies:\n{list_findings(found)}\n{ADVICE}")


def _is_named(name: str, said: str) -> bool:
    """Return whether the user has named a dependency: of `@scope/name` and `host/owner/name` the last part is enough."""
    short = re.split(r"[/:]", name.lower())[-1]
    return bool(re.search(rf"(?<![\w-]){re.escape(short)}(?![\w-])", said))


def find_changed(patch: FilePatch) -> Iterator[tuple[str, str]]:
    """Yield the dependencies that differ, each with what has happened. The patch has all lines of the manifest."""
    before, after = (
        read_dependencies(patch.path, [line.text for line in patch.lines if line.kind in ("kept", side)])
        for side in ("removed", "added")
    )
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            what = (
                "was added"
                if name not in before
                else "was removed"
                if name not in after
                else "has another version"
            )
            yield name, f"{show_path(patch.path)}: {name} {what}"


def read_dependencies(path: str, lines: Sequence[str]) -> Mapping[str, str]:
    """Return the names and versions in a manifest; nothing if it cannot be read."""
    try:
        if matches_globs(_JSON, path):
            return dict(_read_table(json.loads("\n".join(lines) or "{}")))
        if matches_globs(_TOML, path):
            return dict(_read_table(tomllib.loads("\n".join(lines))))
    except (ValueError, RecursionError):
        return {}
    pattern = next((each for glob, each in _PATTERNS.items() if matches_globs((glob,), path)), None)
    found = (
        [match for line in lines if (match := pattern.match(line) or pattern.search(line))] if pattern else []
    )
    return {next(filter(None, match.groups()), ""): str(match.groups()[-1]).strip() for match in found}


def _read_table(table: Mapping[str, Any], *, is_section: bool = False) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, list) and (is_section or _SECTION.fullmatch(key)):
            texts = (each for each in value if isinstance(each, str))
            yield from ((match[0].lower(), text) for text in texts if (match := _NAME.match(text)))
        elif isinstance(value, dict) and (_SECTION.fullmatch(key) or not is_section):
            yield from _read_table(value, is_section=bool(_SECTION.fullmatch(key)))
        elif is_section:
            yield key, json.dumps(value, default=str)


DEPENDENCIES = Gate(
    name="dependencies",
    summary="dependencies change only if the user asked for it",
    check=check_dependencies,
    options=(GateOption("files", "texts", "check only these manifests; `!GLOB` is an exception", "GLOB"),),
    record=record_files,
)
