"""docs/reference/hosts.md and the data of hosts."""

import re

from tools.hosts import PAGE, ROWS, with_written_part

from turngate.hosts.all_hosts import HOSTS


def test_the_page_about_hosts_agrees_with_the_data() -> None:
    page = PAGE.read_text()
    assert page == with_written_part(page), "run make hosts-table"


def test_every_host_has_a_column_and_a_section() -> None:
    page = PAGE.read_text()
    titles = [host.title for host in HOSTS.values()]
    assert f"| | {' | '.join(titles)} |" in page
    assert re.findall(r"^### (.+)$", page, re.MULTILINE) == titles
    assert [name for name in ROWS if f"\n| {name} |" not in page] == []


def test_a_host_that_was_not_run_says_so() -> None:
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith("| version that was run"))
    shown = [cell.strip() for cell in row.strip("|").split("|")][1:]
    assert shown == [host.version or "not run" for host in HOSTS.values()]
