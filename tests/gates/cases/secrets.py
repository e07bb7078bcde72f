"""The cases of the gate `secrets`; keys are put together here, so that no scanner finds them. Gitleaks: test_secrets."""

from tests.support.gates import GateCase, blocked
from tests.support.git_projects import commit, files, repository, steps, with_submodule, write_transcript

WORDS = ("secrets",)
START = steps(repository({"a.py": "x = 1\n"}), write_transcript)
WITH_SUBMODULE = steps(repository({"a.py": "x = 1\n"}), with_submodule, write_transcript)
AWS = "AKIA" + "QYLPMN5HFIQR7XYA"
GITHUB = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----"
ADVICE = "Remove them, also from this session's commits, and tell the user, who may have to revoke them."


def found(*findings: str) -> dict[str, str]:
    listed = "\n".join(f"- {each}" for each in findings)
    return blocked(f"the added lines contain secrets:\n{listed}\n{ADVICE}")


CASES = [
    GateCase("passed", WORDS, steps(files({"a.py": "x = 2\n"})), {}, START),
    GateCase(
        "failed: in any file, and what it is is not shown",
        WORDS,
        steps(
            files(
                {
                    "a.py": f"x = 1\nkey = '{AWS}'\n",
                    ".env": f"TOKEN={GITHUB}\n",
                    "docs/x.md": f"\n{KEY}\nProc-Type: 4\n\n{'aB1+' * 16}\n",
                }
            ),
            commit,
        ),
        found(".env:1: a GitHub token", "a.py:2: an AWS access key", "docs/x.md:2: a private key"),
        START,
    ),
    GateCase(
        "failed: attributes call the file binary",
        WORDS,
        steps(files({"a.py": f"key = '{AWS}'\n", ".gitattributes": "*.py binary\n"})),
        found("a.py:1: an AWS access key"),
        START,
    ),
    GateCase(
        "passed: a binary file",
        WORDS,
        steps(files({"a.bin": f"\0{AWS}\n"})),
        {},
        START,
    ),
    GateCase(
        "passed, with a note: a file of a submodule",
        WORDS,
        steps(files({"lib/m.py": f"key = '{AWS}'\n"})),
        {"systemMessage": 'gate "secrets": changes in a submodule are not checked: lib'},
        WITH_SUBMODULE,
    ),
    GateCase(
        "passed: the line before a private key, without one",
        WORDS,
        steps(
            files(
                {
                    "pem.py": f"if text.startswith('{KEY}'):\n    return read(text)\n",
                    ".env": f'KEY="{KEY}\\n<your key>"\n',
                }
            )
        ),
        {},
        START,
    ),
    GateCase(
        "failed: a private key on one line",
        WORDS,
        steps(files({"key.json": f'"{KEY}\\n{"aB1+" * 16}"\n'})),
        found("key.json:1: a private key"),
        START,
    ),
    GateCase(
        "passed: examples",
        WORDS,
        steps(files({"a.py": "x = 1\nkey = 'AKIA" + "IOSFODNN7EXAMPLE'\ntoken = 'ghp_" + "x" * 36 + "'\n"})),
        {},
        START,
    ),
    GateCase(
        "passed: allowed, by its name",
        (*WORDS, "--allow", "private key", "--files", "!.env"),
        steps(files({"test.pem": f"{KEY}\n{'aB1+' * 16}\n", ".env": f"{AWS}\n"})),
        {},
        START,
    ),
    GateCase(
        "recorded: no git, only new source files are read",
        WORDS,
        steps(files({"b.py": f"'{AWS}'\n"})),
        found("b.py:1: an AWS access key"),
        steps(files({"a.py": "x = 1\n"})),
    ),
]
