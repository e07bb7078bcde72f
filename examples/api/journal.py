import json
from pathlib import Path

from turngate import Journal, read_last_assistant_message

journal = Journal("state")
journal.record("s-1", {"kind": "note", "text": "deployed"})
journal.close()
entry = json.loads(Path("state/sessions/s-1/journal.jsonl").read_text())
print(entry["kind"], entry["text"])

message = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
Path("chat.jsonl").write_text(json.dumps({"type": "assistant", "message": message}) + "\n")
print(read_last_assistant_message("chat.jsonl"))
