"""HTTP hook: an endpoint receives the event and answers as a command would.

Needs the extra `http` (pip install '.[http]' in a clone), but no network. Run it: python examples/hooks/http_hook.py
"""

import asyncio
import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from turngate import HttpHook, Options, ScriptedModel, Session

os.environ["REVIEW_TOKEN"] = "secret"


class Review(BaseHTTPRequestHandler):
    """The endpoint; usually it runs on another machine."""

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = (
            {} if event["stop_hook_active"] else {"decision": "block", "reason": "It is not reviewed yet."}
        )
        body = json.dumps(answer if self.headers["Authorization"] == "Bearer secret" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


server = ThreadingHTTPServer(("127.0.0.1", 0), Review)
threading.Thread(target=server.serve_forever, daemon=True).start()

OPTIONS = Options(
    {
        "Stop": [
            HttpHook(
                f"http://127.0.0.1:{server.server_port}/review",
                headers={"Authorization": "Bearer $REVIEW_TOKEN"},
                allowed_env_vars=("REVIEW_TOKEN",),  # only these may be used in headers
                timeout=10,
            )
        ]
    }
)
MODEL = ScriptedModel({"main": ["Done.", "Done, and reviewed."]})


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(project, MODEL, OPTIONS.settings(), state=f"{project}/state") as session:
            result = await session.send("Add a discount to the prices.")
    if result.unenforced:
        raise SystemExit("the hook was not enforced; does this Python have the extra `http`?")
    for output in result.hook_outputs:
        print(f"{output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
