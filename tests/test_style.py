"""The rules of style that a machine can check."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT

MODULES = sorted((ROOT / "src").rglob("*.py"))
PROSE = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
WORDS = re.compile(r"\b(can not|whoever|nobody|somebody)\b", re.IGNORECASE)
BRITISH = re.compile(
    r"\b(behaviour|colour|favour|honour|neighbour|judgement|licence|misspelt|learnt)"
    r"|\b(recogni|normali|seriali|organi|initiali|optimi|summari)s(e|ing|ation)",
    re.IGNORECASE,
)

# Places where a rule does not hold.
LAZY_IMPORTERS = {
    "src/turngate/__init__.py",
    "src/turngate/cli/arguments.py",
    "src/turngate/cli/main.py",
    "src/turngate/gates/library/__init__.py",
}
OUR_IMPORT = re.compile(r"""import_module\(\s*f?["']turngate""")


def contains(pattern: str) -> Callable[[Path], bool]:
    compiled = re.compile(pattern)
    return lambda path: bool(compiled.search(path.read_text()))


def uses_other_words(path: Path) -> bool:
    return bool(WORDS.search(" ".join(path.read_text().split())))


def is_british(path: Path) -> bool:
    return bool(BRITISH.search(re.sub(r"`[^`\n]+`", "", path.read_text())))


def hides_an_import(path: Path) -> bool:
    return name(path) not in LAZY_IMPORTERS and bool(OUR_IMPORT.search(path.read_text()))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


RULES: dict[str, tuple[list[Path], Callable[[Path], bool]]] = {
    "conventional words": ([*MODULES, *PROSE], uses_other_words),
    "American spelling": (PROSE, is_british),
    "no fmt: skip": (MODULES, contains(r"#\s*fmt:\s*skip")),
    "no TYPE_CHECKING": (MODULES, contains(r"\bTYPE_CHECKING\b")),
    "no hidden imports": (MODULES, hides_an_import),
    "frozen, not dataclass(frozen=True)": (MODULES, contains(r"@dataclass\(frozen")),
}


@pytest.mark.parametrize("rule", RULES)
def test_every_file_follows_the_rule(rule: str) -> None:
    files, breaks = RULES[rule]
    assert [name(path) for path in files if breaks(path)] == []


def test_the_rules_look_at_the_sources() -> None:
    assert len(MODULES) > 100
    assert len(PROSE) > 5
