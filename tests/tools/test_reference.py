"""What is generated from the parsers is what they say now."""

import re
import shutil
import subprocess

import pytest
from tools.reference import EXIT_CODES, MAN, PAGE, exit_codes_page, help_texts, man, page
from tools.tables import DECISIONS, REFERENCE, decisions_page, gates_page, settings_page


def test_the_pages_and_the_manual_are_those_of_the_parsers() -> None:
    texts = help_texts()
    written = (PAGE.read_text(), EXIT_CODES.read_text(), MAN.read_text())
    assert written == (page(texts), exit_codes_page(texts), man(texts)), "run `make reference`"


def test_the_page_of_exit_codes_has_every_command_that_names_some() -> None:
    named = {name for name, text in help_texts().items() if "Exit codes:" in text}
    assert named == set(re.findall("^## (turngate.*)$", EXIT_CODES.read_text(), re.MULTILINE))


def test_the_tables_of_settings_gates_and_decisions_are_those_of_the_data() -> None:
    pages = [
        path.read_text() for path in (REFERENCE / "settings.md", REFERENCE / "gate-options.md", DECISIONS)
    ]
    assert pages == [settings_page(pages[0]), gates_page(), decisions_page()], "run `make reference`"


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_manual_is_valid_roff() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z", str(MAN)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
