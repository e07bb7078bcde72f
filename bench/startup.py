"""Start of the whole process, and loading of settings."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from unittest.mock import patch

from bench.measure import Row, interleaved
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers
from turngate.trust.review import Reviewer, review_project

# What pip makes of `[project.scripts]` since 2025 and before; the latter imports re, which takes as long as Python's start.
SCRIPTS = {
    "with the script of pip since 2025": "import sys",
    "with the script of an older pip, which imports re": "import re\nimport sys\nre.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])",
}


def fire_without_hooks() -> list[Row]:
    """Compare with Python's own start, and with its start with site-packages, which every script has."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            _fire(folder, which, lines, ["-I", "-S"], max_ratio)
            for (which, lines), max_ratio in zip(SCRIPTS.items(), (2.5, 3.5), strict=True)
        ]
        which, lines = next(iter(SCRIPTS.items()))
        return [*rows, _fire(folder, which, lines, [], 1.8)]


def _fire(folder: str, which: str, lines: str, flags: list[str], max_ratio: float) -> Row:
    env = {**os.environ, "HOME": folder, "TURNGATE_STATE": folder}
    script = os.path.join(folder, "turngate")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"{lines}\nfrom turngate.__main__ import main\nsys.exit(main())\n")
    command = [sys.executable, script, "fire", "Stop", "--trust"]

    def ours() -> None:
        subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)

    def floor() -> None:
        subprocess.run([sys.executable, *flags, "-c", "pass"], check=True)

    a, b = interleaved(ours, floor, rounds=41)
    python = " ".join(["python", *flags, "-c pass"])
    return Row(f"turngate fire with no hook, whole process, {which} / {python}", a, b, max_ratio=max_ratio)


def load_many_hooks() -> Row:
    hooks = [{"type": "command", "command": f"make check-{n}", "timeout": 30} for n in range(1000)]
    data = json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}, indent=2).encode()
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, ".turngate"))
        with open(os.path.join(folder, ".turngate", "settings.json"), "wb") as file:
            file.write(data)

        def ours() -> None:
            layers = load_layers(folder, dialect="turngate", home="/nonexistent", files=LOCAL)
            assert len(layers.merge().rules) == 1000

        a, b = interleaved(ours, lambda: json.loads(data), rounds=101)
    return Row("loading settings with 1,000 hooks / json.loads of the same bytes", a, b, max_ratio=15)


def review_hooks() -> Row:
    """What trust adds to the start of a session when nothing has changed: the words of each command are looked up."""
    commands = [f"sh hooks/{number}.sh" for number in range(50)]
    hooks = [{"type": "command", "command": command} for command in commands]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(folder, ".turngate"))
        os.mkdir(os.path.join(folder, "hooks"))
        scripts = [os.path.join(folder, "hooks", f"{number}.sh") for number in range(50)]
        for path in scripts:
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + f"# {path}\n" * 40 + "exit 0\n")
        with open(os.path.join(folder, ".turngate", "settings.json"), "w", encoding="utf-8") as file:
            json.dump({"hooks": {"Stop": [{"hooks": hooks}]}}, file)

        def ours() -> None:
            reviewed = Reviewer(layers).review_settings()
            assert not any(rule.pending for rule in reviewed.rules)

        def floor() -> None:
            for path in scripts:
                with open(path, "rb") as file:
                    hashlib.sha256(file.read()).hexdigest()

        with patch.dict(os.environ, {"HOME": home, "TURNGATE_STATE": home}):
            review = review_project(folder, files=LOCAL)
            review.approve(review.hooks)
            layers = load_layers(folder, dialect="turngate", files=LOCAL)
            a, b = interleaved(ours, floor, rounds=101)
    return Row("trust check of 50 approved hooks with 50 scripts / hashing the scripts", a, b, max_ratio=15)
