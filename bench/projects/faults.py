"""Plants one fault after another in the files of a project, by simple rules for each language."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.projects.languages import Language, Planted

# In this order a project gets ten of them, as far as its gates can see them.
KINDS = {
    "broken function": ("tests",),
    "syntax error": ("tests", "lint", "types", "format", "build"),
    "lint error": ("lint",),
    "type error": ("types", "build"),
    "format error": ("format",),
    "failing test": ("tests",),
    "deleted test": ("untouched",),
    "skipped test": ("untouched", "no-stubs"),
    "stub body": ("no-stubs",),
    "TODO": ("no-stubs",),
    "uncommitted file": ("clean",),
    "weakened test": ("untouched",),
    "placeholder": ("no-stubs",),
    "FIXME": ("no-stubs",),
    "emptied file": ("tests",),
}
FAULTS = 10
CANDIDATES = 12  # of broken functions, until one is seen by a test
_NO_SOURCE = (
    r"(?:^|/)(?:docs?|examples?|bench\w*|benchmarks?|scripts?|tools?|ci|build|dist|node_modules|website|vendor|setup\.py|noxfile\.py|conftest\.py)(?:/|$)"
    r"|(?:^|/)\.|\.config\.\w+$|\.d\.ts$|\.min\.js$"
)
_OPERATORS = (
    *((" == ", " != "), (" != ", " == "), (" === ", " !== "), (" !== ", " === "), (" not in ", " in ")),
    *((" is not ", " is "), (" is ", " is not "), (" < ", " >= "), (" > ", " <= "), (" <= ", " > ")),
    *(
        (" >= ", " < "),
        (" + ", " - "),
        (" && ", " || "),
        (" || ", " && "),
        (" and ", " or "),
        (" or ", " and "),
    ),
)
_NO_CODE = r"\s*(?:#|//|/?\*|import|from|@|\"|'|>>>|\.\.\.)"


@dataclass(frozen=True)
class Fault:
    kind: str
    edits: Mapping[str, str]  # a file and its new text
    shows: tuple[str, ...]  # patterns of what the reason has to name
    is_committed: bool = True

    @property
    def gates(self) -> tuple[str, ...]:
        return KINDS[self.kind]


@dataclass(frozen=True)
class Sources:
    """The files of a project: paths that git tracks and their texts."""

    texts: Mapping[str, str]
    language: Language

    @property
    def code(self) -> list[str]:
        """Return the files that are neither tests nor tools, the longest first."""
        found = [name for name in self._own if not self._is_test(name) and not re.search(_NO_SOURCE, name)]
        return sorted(found, key=lambda name: -len(self.texts[name]))

    @property
    def tests(self) -> list[str]:
        """Return the files of tests, but not those of benchmarks and examples, which do not run with them.

        If there are none, those that hold tests beside the code.
        """
        ours = (name for name in self._own if not re.search(rf"{_NO_SOURCE}|bench", name))
        found = sorted(name for name in ours if self._is_test(name))
        return found or [name for name in self.code if re.search(self.language.opening, self.texts[name])]

    @property
    def _own(self) -> list[str]:
        return [name for name in self.texts if name.endswith(self.language.suffixes)]

    def _is_test(self, name: str) -> bool:
        return re.search(self.language.test_file, name) is not None


def broken_functions(sources: Sources) -> Iterator[Fault]:
    """Yield what may break a function, from places all over the project: another operator in one line."""
    found = [
        (name, at, line.replace(old, new, 1))
        for name in sources.code
        for at, line in enumerate(sources.texts[name].split("\n"))
        if re.search(r"\b(?:return|if|while|elif|unless)\b", line) and not re.match(_NO_CODE, line)
        for old, new in _OPERATORS
        if old in line
    ]
    # TypeScript fails as what it is compiled to.
    tests = "|".join(re.sub(r"\\\.[cm]?tsx?$", r"\\.", _file(name)) for name in sources.tests)
    for name, at, line in found[:: max(1, len(found) // CANDIDATES)][:CANDIDATES]:
        lines = sources.texts[name].split("\n")
        edits = {name: "\n".join((*lines[:at], line, *lines[at + 1 :]))}
        yield Fault(
            "broken function", edits, (f"{tests}|{_file(name)}", r"(?i)assert|expect|error|fail|panic")
        )


def plant(kind: str, sources: Sources, source: str, own: Mapping[str, Mapping[str, str]]) -> Fault | None:
    """Return a fault, or None if the files have no place for it.

    `source`: a file whose code the tests run. `own`: of this project, by kind: `shows`, a pattern of what the reason shows; `file`; and
    `text` for its end, or `old` and `new`.
    """
    language, code = sources.language, sources.texts[source]
    if kind in own:
        given = own[kind]
        name = given.get("file", source)
        before = sources.texts.get(name, "")
        text = before.replace(given["old"], given["new"], 1) if "old" in given else before + given["text"]
        return Fault(kind, {name: text}, (given["shows"],))
    appended = {
        "syntax error": language.syntax,
        "lint error": language.lint,
        "type error": language.types,
        "format error": language.format,
        "stub body": language.stub,
        "TODO": Planted("\n" + language.comment.format("TODO: handle the other cases") + "\n", "TODO"),
        "placeholder": Planted(
            "\n" + language.comment.format("In a real implementation this would check the input.") + "\n",
            "real implementation",
        ),
        "FIXME": Planted("\n" + language.comment.format("FIXME: fails for empty values") + "\n", "FIXME"),
    }
    if kind in appended:
        planted = appended[kind]
        return Fault(kind, {source: code + planted.text}, (_file(source), planted.shows))
    if kind == "emptied file":
        return Fault(kind, {source: ""}, (r"(?i)error|fail|undefined|cannot|expected",))
    if kind == "uncommitted file":
        name = "planted" + language.suffixes[0]
        return Fault(kind, {name: language.comment.format("Tries it.") + "\n"}, (re.escape(name),), False)
    return next((fault for name in sources.tests if (fault := _plant_in_test(kind, sources, name))), None)


def _plant_in_test(kind: str, sources: Sources, name: str) -> Fault | None:
    language, text = sources.language, sources.texts[name]
    if kind == "weakened test":
        found = re.search(language.assertion, text)
        if not found or not re.search(language.opening, text):
            return None
        weak = text[: found.start()] + found.expand(language.no_assertion) + text[found.end() :]
        return Fault(kind, {name: weak}, (_file(name), "(?i)assert"))
    opening = re.search(language.opening, text)
    if opening is None:
        return None
    groups = {key: value or "" for key, value in opening.groupdict().items()}
    before, line, rest = text[: opening.start()], opening[0], text[opening.end() :]
    shown = re.escape(groups["name"].strip("'\"`"))
    if kind == "failing test":
        planted = language.failing.format(**groups)
        planted = planted if ";\n" in text else planted.replace(";\n", "\n")
        new = before + (planted.replace("  ", "\t") if "\n\t" in text else planted) + line + rest
        return Fault(kind, {name: new}, ("planted", r"(?i)3 == 4|3 is not 4|planted"))
    if kind == "skipped test":
        return Fault(kind, {name: before + re.sub(*language.skipped, line) + rest}, (_file(name), "(?i)skip"))
    end = re.search(language.end.format(indent=groups["indent"]), rest)
    after = rest[end.start() if language.is_end_kept else end.end() :] if end else ""
    return Fault(kind, {name: before + after}, (_file(name), shown))


def _file(name: str) -> str:
    return re.escape(name.rpartition("/")[2])
