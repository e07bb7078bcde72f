"""The cases of the gate `debug`. It runs no command of the user."""

from tests.support.gates import GateCase, blocked
from tests.support.git_projects import files, repository, steps, write_transcript

WORDS = ("debug",)
START = steps(repository({"src/a.py": "x = 1\n"}), write_transcript)


def found(*findings: str) -> dict[str, str]:
    listed = "\n".join(f"- {each}" for each in findings)
    return blocked(
        f"the added lines contain debugging code:\n{listed}\nRemove them, or write to the log that the project uses."
    )


CASES = [
    GateCase(
        "failed: prints and breakpoints",
        WORDS,
        steps(
            files(
                {
                    "src/a.py": "x = 1\nprint(x)\nbreakpoint()\n",
                    "src/b.ts": "console.log(a);\nconsole.error(b);\ndebugger;\n",
                    "src/c.rs": "let a = dbg!(b);\n",
                    "tests/test_a.py": "import pdb; pdb.set_trace()\n",
                }
            )
        ),
        found(
            "src/a.py:2: print: print(x)",
            "src/a.py:3: breakpoint: breakpoint()",
            "src/b.ts:1: print: console.log(a);",
            "src/b.ts:3: breakpoint: debugger;",
            "src/c.rs:1: breakpoint: let a = dbg!(b);",
            "tests/test_a.py:1: breakpoint: import pdb; pdb.set_trace()",
        ),
        START,
    ),
    GateCase(
        "passed: where output is meant",
        WORDS,
        steps(
            files(
                {
                    "scripts/run.py": "print(1)\n",
                    "src/cli.py": "print(1)\n",
                    "src/b.py": "import argparse\nprint(1)\n",
                    "src/c.py": "print(1, file=sys.stderr)\n",
                    "tests/test_a.py": "print(1)\n",
                    "main.go": "fmt.Println(1)\n",
                    "build.rs": 'println!("cargo:rerun-if-changed=a");\n',
                    "src/Main.java": "System.out.println(1);\n",
                }
            )
        ),
        {},
        START,
    ),
    GateCase(
        "passed: only these files",
        (*WORDS, "--files", "lib"),
        steps(files({"src/a.py": "print(1)\n"})),
        {},
        START,
    ),
]
