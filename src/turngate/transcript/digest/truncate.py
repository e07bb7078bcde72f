"""Texts that may be only so long."""

from turngate.core.hook_output import replace_surrogates


def gap(size: int) -> str:
    return f"[… {size:,} bytes in the middle are left out …]"


def without_middle(text: str, most: int) -> str:
    """About so many bytes of UTF-8, a third of them from the beginning."""
    size = len(text.encode("utf-8", "replace"))
    if size <= most:
        return replace_surrogates(text)
    return f"{cut(text, most // 3)}\n\n{gap(size - most)}\n\n{end(text, most - most // 3)}"


def cut(text: str, most: int) -> str:
    """At most so many bytes of UTF-8; what is too long loses its end."""
    data = text[: most + 1].encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode("utf-8")
    return data[: max(0, most - 4)].decode("utf-8", "ignore") + " …"


def end(text: str, most: int) -> str:
    """The same from behind."""
    data = text[-most - 1 :].encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode("utf-8")
    return "… " + data[len(data) - max(0, most - 4) :].decode("utf-8", "ignore")


def indented(text: str) -> str:
    """What somebody said: nothing in it can pass for a heading or a record of ours."""
    return "\n".join("  " + line for line in text.splitlines())
