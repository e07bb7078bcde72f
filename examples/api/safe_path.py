from pathlib import Path

from turngate import Block, CallbackHook, Options, StopEvent, UnsafePath, is_sensitive, safe_path


def check_report(event: StopEvent) -> Block | None:
    """The last word of the agent is the name of a report, which it may have made up."""
    name = event.last_text.split()[-1]
    try:
        path = safe_path(event.cwd, name)
    except UnsafePath as error:
        return Block(str(error))
    if is_sensitive(path):
        return Block(f"{name} is not a report.")
    return None if Path(path).exists() else Block(f"{name} is missing.")


OPTIONS = Options({"Stop": [CallbackHook(check_report)]})

for answer in ("It is in report.md", "It is in ../../etc/passwd", "It is in .env"):
    event = StopEvent(session_id="s-1", transcript_path="", cwd="/tmp", last_assistant_message=answer)
    print(check_report(event))
