"""`turngate acp` between an editor and an agent that are written with the TypeScript SDK of the protocol."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings

VERSION = "2.4.0"
PROGRAM = str(Path(__file__).with_name("sdk_session.mjs"))
GATE = (
    "if test -e wait; then touch started; sleep 86396; fi; test -e done.txt || { echo not yet >&2; exit 2; }"
)


@pytest.fixture(scope="session")
def sdk() -> Path:
    """The module of the SDK, from npm, in a folder that is kept."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not on PATH: the TypeScript SDK cannot run")
    folder = Path(tempfile.gettempdir(), f"turngate-acp-sdk-{VERSION}")
    module = folder / "node_modules" / "@agentclientprotocol" / "sdk" / "dist" / "v1" / "stable" / "acp.js"
    if not module.exists():
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
        done = subprocess.run(
            [*words, f"@agentclientprotocol/sdk@{VERSION}"], check=False, capture_output=True
        )
        if done.returncode or not module.exists():
            pytest.skip(f"npm could not install the TypeScript SDK: {done.stderr.decode()[-200:]}")
    return module


def test_a_session_of_the_typescript_sdk(sdk: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")
    monkeypatch.setenv("ACP_SDK", sdk.as_uri())
    write_settings(project, "turngate", stop_hooks(GATE))
    proxy = [sys.executable, "-m", "turngate", "acp", "--", "node", PROGRAM, "agent"]
    words = ["node", PROGRAM, "editor", str(project), *proxy]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    cards = [card for card in seen.pop("cards") if card[1] != "in_progress"]
    verdicts = [seen[name].pop("_meta")["turngate"] for name in ("blocked", "loaded")]
    assert seen == {
        "texts": ["waiting", "Done. yes text 0 hi", "Done.", "Done.", "Done."],
        "refused": {"stopReason": "refusal"},
        "cancelled": {"stopReason": "cancelled"},
        "extension": {"hello": "you"},
        "unknown": -32601,
        "blocked": {"stopReason": "end_turn"},
        "loaded": {"stopReason": "end_turn"},
        "cancelledGate": {"stopReason": "cancelled"},
    }
    assert [(each["outcome"], each["continuations"]) for each in verdicts] == [("allowed", 1), ("allowed", 0)]
    assert cards[:3] == [
        ["Turngate: blocked (1)", "failed"],
        ["Turngate: passed", "completed"],
        ["Turngate: passed", "completed"],
    ]
