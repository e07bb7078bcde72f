"""The models of tests/support/servers with a script for each agent: main, sub, and other requests."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.support.servers.anthropic import AnthropicServer, serve_script
from tests.support.servers.gemini import GeminiServer
from tests.support.servers.loopback import run_server
from tests.support.servers.model import plain
from tests.support.servers.openai import OpenAIServer
from tests.support.servers.openai_chat import ChatServer

from bench.hosts.program import SUBAGENT_PROMPT, Json, Reply, Script

AgentOf = Callable[[Json], str]  # the body of a request: main, sub, or other (a title, a check …)
OTHER: Reply = "ok"


def serve_anthropic(script: Script, who: AgentOf) -> AbstractContextManager[AnthropicServer]:
    return serve_script({"other": [OTHER], **fixed(script)}, who)


def serve_responses(script: Script, who: AgentOf) -> "AbstractContextManager[ResponsesByAgent]":
    return run_server(ResponsesByAgent(script, who))


def serve_chat(script: Script, who: AgentOf) -> "AbstractContextManager[ChatByAgent]":
    return run_server(ChatByAgent(script, who))


def serve_gemini(script: Script, who: AgentOf) -> "AbstractContextManager[GeminiByAgent]":
    return run_server(GeminiByAgent(script, who))


class ResponsesByAgent(OpenAIServer):
    def __init__(self, script: Script, who: AgentOf) -> None:
        super().__init__(())
        self.agents: list[str] = []
        self._who, self._script = who, script

    def scripted(self) -> Json:
        self.agents.append(self._who(self.requests[-1]))
        return next_reply(self._script, self.agents, self.requests[-1])


class ChatByAgent(ChatServer):
    def __init__(self, script: Script, who: AgentOf) -> None:
        super().__init__(())
        self.agents: list[str] = []
        self._who, self._script = who, script

    def scripted(self) -> Json:
        self.agents.append(self._who(self.requests[-1]))
        return next_reply(self._script, self.agents, self.requests[-1])


class GeminiByAgent(GeminiServer):
    def __init__(self, script: Script, who: AgentOf) -> None:
        super().__init__(())
        self.agents: list[str] = []
        self._who, self._script = who, script

    def scripted(self) -> Json:
        self.agents.append(self._who(self.requests[-1]))
        return next_reply(self._script, self.agents, self.requests[-1])


def next_reply(script: Script, agents: list[str], body: Json) -> Json:
    """Return the reply to the latest request."""
    agent = agents[-1]
    replies = script.get(agent) or [OTHER]
    reply = replies[min(agents.count(agent), len(replies)) - 1]
    return plain([reply(body) if callable(reply) else reply])[0]


def fixed(script: Script) -> dict[str, list[Reply]]:
    return {agent: [reply for reply in replies if not callable(reply)] for agent, replies in script.items()}


def is_subagent(heard: list[str]) -> bool:
    """Return whether the texts of a request's user messages are those of a subagent."""
    return any(SUBAGENT_PROMPT in text for text in heard)
