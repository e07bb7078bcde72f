"""What Qwen Code and Copilot CLI have in common: the chat completions of OpenAI."""

from contextlib import AbstractContextManager

from bench.hosts.models import is_subagent, serve_chat
from bench.hosts.program import Json, Model, Script


def serve(script: Script) -> AbstractContextManager[Model]:
    return serve_chat(script, who)


def who(body: Json) -> str:
    if not body.get("tools"):
        return "other"
    return "sub" if is_subagent(heard(body)) else "main"


def heard(body: Json) -> list[str]:
    return [
        text
        for message in body["messages"]
        if message["role"] == "user"
        for text in texts(message["content"])
    ]


def texts(content: str | list[Json]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]
