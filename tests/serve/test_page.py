"""The page of `turngate serve` in a real browser."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import browser
from tests.support.browser import Browser
from tests.support.cli import turngate
from tests.support.journals import append_records, append_stop, hook_record, verdict_record
from tests.support.page_server import PageServer

pytestmark = pytest.mark.skipif(browser.PROGRAM is None, reason=browser.MISSING)

HOSTILE = (
    "<img src=x onerror=window.broken=1><script>window.broken=1</script>\"'&\u202e javascript:window.broken=1"
)
PHONE = (360, 640)


@pytest.fixture(scope="module")
def shared_browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture
def page(shared_browser: Browser) -> Iterator[Browser]:
    """A page whose console stays empty."""
    shared_browser.errors.clear()
    shared_browser.resize(1100, 900)
    yield shared_browser
    assert shared_browser.errors == []
    shared_browser.call("Page.navigate", url="about:blank")  # or it tries to reach the server, which ends


@pytest.fixture
def demo(tmp_path: Path) -> str:
    code, _, err = turngate("serve", "--demo", "--html", str(tmp_path / "demo.html"))
    assert (code, err) == (0, f"written   {tmp_path}/demo.html\n")
    return f"file://{tmp_path}/demo.html"


def test_the_page_shows_gates_and_sessions_and_leaves_no_token_in_its_address(
    server: PageServer, page: Browser, state: Path
) -> None:
    append_stop(state, "s-1", "block", answer="All tests pass.")
    page.open(server.address)
    page.wait_for("document.querySelector('.rows a')")
    assert page.evaluate("location.href") == f"http://127.0.0.1:{server.port}/"
    text = page.text()
    assert [each in text for each in ("stops\n1", "blocked\n1", "1 (100 %)", "All tests pass.")] == [True] * 4


def test_damage_is_named(server: PageServer, state: Path, page: Browser) -> None:
    append_stop(state, "s-1")
    with (state / "sessions" / "s-1" / "journal.jsonl").open("a") as file:
        file.write('{"time": \n[]\n')
    page.open(server.address)
    page.wait_for("document.body.innerText.includes('2 lines of the journals could not be read.')")


def test_a_new_stop_appears_by_itself(server: PageServer, page: Browser, state: Path) -> None:
    append_stop(state, "s-1", answer="First.")
    page.open(server.address)
    page.wait_for("document.body.innerText.includes('First.') && document.body.innerText.includes('● live')")
    append_stop(state, "s-2", answer="Second.")
    page.wait_for("document.body.innerText.includes('Second.')")
    append_stop(state, "s-2", "block", answer="Third.")
    page.wait_for("document.body.innerText.includes('Third.')")


def test_a_gate_that_runs_is_shown_until_it_ends(server: PageServer, page: Browser, state: Path) -> None:
    from turngate.state.process_stat import this_process  # noqa: PLC0415

    start = {
        "kind": "start",
        "event": "Stop",
        "run": "1",
        "hook": {"type": "gate", "gate": "tests", "timeout": 60},
    }
    append_records(state, "s-1", {**start, "time": time.time(), "process": list(this_process())})
    page.open(server.address)
    page.wait_for("document.querySelector('.rows a')")
    page.evaluate("location.hash = '#/session/s-1'")
    page.wait_for(
        "document.querySelector('.track .busy') && document.body.innerText.includes('The gates are running')"
    )
    append_records(state, "s-1", hook_record("allow", time.time(), run="1"), verdict_record(when=time.time()))
    page.wait_for("document.body.innerText.includes('The agent may stop')")
    page.wait_for("!document.querySelector('.busy')")


def test_names_reasons_and_titles_are_text(server: PageServer, page: Browser, state: Path) -> None:
    now = time.time()
    gate = {"type": "gate", "gate": "tests", "id": HOSTILE}
    agent = {"agent_id": HOSTILE, "agent_type": HOSTILE, "event": "SubagentStop"}
    for about in ({}, agent):
        hook = hook_record("block", now, gate, reason=HOSTILE, file=HOSTILE, source=HOSTILE)
        verdict = verdict_record(HOSTILE, when=now, prompt=HOSTILE, answer=HOSTILE)
        append_records(state, "s-1", {**hook, **about}, {**verdict, **about}, project=HOSTILE)
    append_records(
        state,
        "s-1",
        {"kind": "turn_end", "time": now, "ended_by": "capped", "reason": HOSTILE},
        project=HOSTILE,
    )
    page.open(server.address)
    page.wait_for("document.querySelector('.rows a')")
    links = page.evaluate("[...document.querySelectorAll('main a')].map(each => each.getAttribute('href'))")
    assert {each[:2] for each in links} == {"#/"}
    for link in links:
        page.evaluate(f"location.hash = {link!r}")
        page.wait_for(
            f"!{link!r}.startsWith('#/g') && !{link!r}.startsWith('#/s') || document.querySelector('.back')"
        )
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert HOSTILE in page.evaluate("document.body.textContent")
        assert page.evaluate(
            "[document.querySelectorAll('img, script[src], iframe').length, window.broken ?? 0]"
        ) == [0, 0]


def test_it_can_be_used_with_the_keyboard(page: Browser, demo: str) -> None:
    page.open(demo)
    first = page.evaluate("document.querySelectorAll('[data-row]')[1].getAttribute('href')")
    for key in ("ArrowDown", "j", "j", "ArrowUp"):
        page.press(key)
    assert page.evaluate("document.activeElement.getAttribute('href')") == first
    page.press("Enter")
    page.wait_for("document.querySelector('h1')")
    page.press("Escape")
    page.wait_for("!document.querySelector('h1') && location.hash === '#/'")


def test_a_stop_can_be_opened_with_the_keyboard_and_is_in_the_address(page: Browser, demo: str) -> None:
    page.open(demo)
    rows = "[...document.querySelectorAll('.rows a')].filter(each => each.innerText.includes('subagents'))"
    page.evaluate(f"location.hash = {rows}[0].getAttribute('href')")
    page.wait_for("document.querySelectorAll('details').length > 1")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait_for("document.querySelector('details').open && /\\/\\d+\\.\\d+$/.test(location.hash)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, (1100, 900)], ids=["small", "large"])
def test_every_view_fits_and_is_legible(page: Browser, demo: str, scheme: str, size: tuple[int, int]) -> None:
    page.resize(*size)
    page.set_scheme(scheme)
    page.open(demo)
    links = page.evaluate("[...document.querySelectorAll('main a')].map(each => each.getAttribute('href'))")
    session = next(each for each in links if each.startswith("#/session/"))
    for link in ("#/", session, "#/gate/tests"):
        page.evaluate(f"location.hash = {link!r}")
        page.wait_for("document.querySelector('.legend')")
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0], link
        assert min(page.evaluate(CONTRASTS)) >= 4.5, link


# Of every text with its background, as WCAG counts it.
CONTRASTS = """(() => {
  const light = color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number)
    .map(each => each / 255).map(each => each <= .04045 ? each / 12.92 : ((each + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = node => { while (node) { const color = getComputedStyle(node).backgroundColor;
    if (color !== 'rgba(0, 0, 0, 0)') return color; node = node.parentElement; } return 'rgb(255, 255, 255)'; };
  return [...document.querySelectorAll('body *')].filter(each => [...each.childNodes].some(child => child.nodeType === 3 && child.data.trim()))
    .filter(each => each.getClientRects().length && !each.closest('svg, script, style, option')).map(each => {
      const [one, other] = [light(getComputedStyle(each).color), light(behind(each))].sort((a, b) => b - a);
      return (one + .05) / (other + .05); });
})()"""


def test_a_file_needs_no_server_and_loads_nothing(page: Browser, demo: str) -> None:
    text = Path(demo.removeprefix("file://")).read_text()
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*""", text) == []
    page.open(demo)
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0
    assert page.evaluate("document.querySelectorAll('table tbody tr').length") == 5


def test_a_reader_without_the_token_learns_what_to_do(server: PageServer, page: Browser) -> None:
    page.open(f"http://localhost:{server.port}/")
    page.wait_for("document.body.innerText.includes('Open the address that `turngate serve` has printed.')")
    assert all("403" in each for each in page.errors)
    page.errors.clear()
