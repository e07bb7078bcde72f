"""The pages of the gates."""

import re

from tests.support.paths import ROOT
from turngate.gates.library import GATES


def test_every_gate_has_a_page_and_a_row_in_the_list_of_gates() -> None:
    listed = re.findall(
        r"^\| \[`([\w-]+)`\]\((.+?)\) \| (.+) \|$", (ROOT / "docs/gates.md").read_text(), re.MULTILINE
    )
    expected = {(gate.name, f"gates/{gate.name}.md", gate.summary) for gate in GATES.values()}
    assert set(listed) == expected
    assert {name for name in GATES if not (ROOT / f"docs/gates/{name}.md").is_file()} == set()
