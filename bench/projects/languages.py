"""What a fault looks like in each language: how its tests are written, and texts that its tools complain about."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    """A text at the end of a source file, and a pattern of what the reason says of it."""

    text: str
    shows: str


@dataclass(frozen=True, kw_only=True)
class Language:
    suffixes: tuple[str, ...]
    test_file: str  # pattern of a path
    comment: str  # with {}
    blank: str  # lines before a comment at the end of a file, as formatters want it
    opening: str  # pattern of the line that opens a test, with the groups `indent` and `name`, and others for the texts below
    end: str  # pattern of the last line of a test; `{indent}` is that of its opening
    is_end_kept: bool = False  # the line that matches `end` belongs to what follows
    failing: str  # a failing test, before the line that `opening` matches
    skipped: tuple[str, str]  # pattern within the opening and its replacement, which skips the test
    assertion: str  # pattern of a line with an assertion
    no_assertion: str = ""  # what takes its place
    stub: Planted
    lint: Planted
    types: Planted
    format: Planted
    syntax: Planted


PYTHON = Language(
    suffixes=(".py",),
    test_file=r"(?:^|/)(?:tests?/.*|testing/.*|test_[^/]*|[^/]*_test|tests?)\.py$",
    comment="# {}",
    blank="\n\n",
    opening=r"(?m)(?<=\n\n)^(?P<indent> *)def (?P<name>test\w*)\((?P<self>self)?[^\n]*\)(?: -> None)?:$",
    end=r"(?m)^(?! *$)(?!{indent} )",
    is_end_kept=True,
    failing='{indent}def test_planted({self}):\n{indent}    assert 3 == 4, "planted"\n\n',
    skipped=(
        r"^( *)(def [\s\S]*)",
        r'\1import unittest\n\n\1@unittest.skip("does not work yet")\n\1\2',
    ),
    assertion=r"(?m)^( +)(?:assert [^(\n]* == [^(\n]*|assert \w+\([^()\n]*\) == [^(\n]*|self\.assert\w+\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\))$",
    no_assertion=r"\1pass",
    stub=Planted(
        "\n\ndef planted_stub(value):\n    raise NotImplementedError\n", "planted_stub|NotImplemented"
    ),
    lint=Planted("\nimport os as planted\n", r"F401|E402|imported but unused|planted"),
    types=Planted('\nplanted: int = "text"\n', r"(?i)incompatible|not assignable"),
    format=Planted("\nplanted = [  1,2 ]\n", r"(?i)would (?:be )?reformat|unformatted|planted"),
    syntax=Planted("\ndef planted(:\n    pass\n", r"(?i)syntax"),
)
JAVASCRIPT = Language(
    suffixes=(".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx"),
    test_file=r"(?:^|/)(?:tests?|__tests__|specs?)/|[.-](?:test|spec)\.\w+$|(?:^|/)test\.\w+$",
    comment="// {}",
    blank="\n",
    opening=r"(?m)^(?P<indent>[ \t]*)(?P<call>(?!describe|suite|context|before|after)\w+(?:\.(?:test|it))?)\((?P<name>['\"`][^'\"`\n]*['\"`]), (?:async )?(?:function ?\(|\(|\w+ ?=>)[^\n]*\{$",
    end=r"(?m)^{indent}\}}\);?\n",
    failing="{indent}{call}('planted', () => {{\n{indent}  throw new Error('planted: 3 is not 4');\n{indent}}});\n\n",
    skipped=(r"^(\s*[\w.]+)\(", r"\1.skip("),
    assertion=r"(?m)^[ \t]+(?:(?:await )?(?:assert|expect|t|is)\b[\w.]*\([^\n]*\)(?:\.[\w.]+\([^\n]*\))?;?)\n",
    stub=Planted(
        "\nexport function plantedStub(value) {\n  throw new Error('Not implemented')\n}\n",
        "(?i)not implemented|plantedStub",
    ),
    lint=Planted(
        "\nfunction planted () {\n  debugger\n  return undeclared\n}\n", r"(?i)debugger|undeclared|unused"
    ),
    types=Planted("\nconst planted: number = 'text'\n", r"TS2322|not assignable"),
    format=Planted("\nconst   planted = [  1,2 ]\n", r"(?i)planted|format|code style|spac"),
    syntax=Planted(
        "\nfunction planted( {\n", r"(?i)syntax|unexpected|expected|parse|error TS1|Transform failed"
    ),
)
LANGUAGES = {"python": PYTHON, "javascript": JAVASCRIPT}
