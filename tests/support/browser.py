"""A headless Chromium, driven with the DevTools protocol over a pipe. Where it is not installed, its tests are skipped."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = "Chromium is not installed; `apt-get install chromium` installs it"
FLAGS = """\
--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync
--disable-component-update --hide-scrollbars --force-device-scale-factor=1 --remote-debugging-pipe""".split()
# The protocol is spoken on the descriptors 3 and 4.
START = "import os, sys; ends = sys.argv[1:3]; [os.dup2(int(end), 10 + n) for n, end in enumerate(ends)]; "
START += (
    "[os.dup2(10 + n, 3 + n) for n in (0, 1)]; os.closerange(5, 100); os.execv(sys.argv[3], sys.argv[3:])"
)
KEYS = {"ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27, "Tab": 9}


class Browser:
    """One page. `errors` are what its console and its scripts have reported."""

    def __init__(self) -> None:
        assert PROGRAM is not None
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        flags = [*FLAGS, f"--user-data-dir={self._profile.name}"]
        words = [sys.executable, "-c", START, str(theirs_in), str(theirs_out), PROGRAM, *flags]
        self._process = subprocess.Popen(words, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self._data, self._number, self._session = b"", 0, ""
        self.errors = list[str]()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._data:
            assert select.select([self._in], [], [], HANG_TIMEOUT_S)[0], "Chromium does not answer"
            piece = os.read(self._in, 1 << 20)
            assert piece, "Chromium has ended"
            self._data += piece
        line, self._data = self._data.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(line)
        params = answer.get("params", {})
        match answer.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.errors.append(str(params["args"]))
            case "Log.entryAdded":
                self.errors.append(params["entry"]["text"])
            case _:
                pass
        return answer

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait_for("document.querySelector('#main')?.dataset.version")

    def evaluate(self, script: str) -> Any:
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, (script, found)
        return found["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Return as soon as the value of the script is true."""
        end = time.monotonic() + HANG_TIMEOUT_S
        while not self.evaluate(f"Boolean({script})"):
            assert time.monotonic() < end, (script, self.errors, self.text())
            time.sleep(POLL_INTERVAL_S)

    def text(self) -> str:
        return str(self.evaluate("document.body?.innerText ?? ''"))

    def press(self, key: str) -> None:
        fields = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, 0)}
        fields |= {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **fields)
        self.call("Input.dispatchKeyEvent", type="keyUp", **fields)

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def set_scheme(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def save_picture(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"]
        path.write_bytes(base64.b64decode(data))
