"""One driver for each framework: it runs a scripted agent that `StopGates` holds, with the framework's own model for tests."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INPUT_TOKENS, OUTPUT_TOKENS = 10, 1  # of each request
QUESTION = "go"


@dataclass(frozen=True)
class Say:
    """One reply of the model. `touch`: a file that exists from then on, as if the agent had made it with a tool."""

    text: str = ""
    touch: Path | None = None
    remove: Path | None = None
    tool: str = ""  # a tool that is called instead
    arguments: Mapping[str, Any] = field(default_factory=dict)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


class Script:
    """The replies of a model, in order; the last one is repeated."""

    def __init__(self, *replies: Say | str) -> None:
        self.replies = [Say(each) if isinstance(each, str) else each for each in replies]
        self.asked: list[str] = []  # the user's last text in each request

    def reply(self, asked: str) -> Say:
        say = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(asked)
        if say.touch:
            say.touch.write_text("")
        if say.remove:
            remove(say.remove)
        return say


@dataclass(frozen=True)
class Ran:
    """What the caller of the framework gets."""

    answer: str
    texts: Sequence[str] = ()  # of the user and the agent, in the history
    output_tokens: int | None = None  # by the framework's own count; None: it does not count
    streamed: str = ""
