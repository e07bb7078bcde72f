"""Text from a provider for a message: one short line without keys."""

import os
import re

from turngate.core.redaction import secret_values
from turngate.core.text import one_line, replace_surrogates, truncate

MAX_MESSAGE_CHARS = 200


def safe_line(text: str, *secrets: str) -> str:
    """Return one short line without these secrets, those of the environment, and what looks like a key."""
    for value in (*secrets, *secret_values(os.environ)):
        if len(value) > 7:
            text = text.replace(value, "…")
    text = re.sub(r"\b((sk|pk|gsk|xai)[-_]|AIza)[\w*-]{6,}", "…", text)
    return truncate(one_line(replace_surrogates(text)).rstrip("."), MAX_MESSAGE_CHARS)
