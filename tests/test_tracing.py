"""Spans in the trace of the program that runs hooks, recorded by the SDK of OpenTelemetry."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import claude_agent_sdk
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.adapters.test_claude_sdk import fake_program
from tests.support.builders import stop_hooks, write_settings
from tests.support.sessions import block_first, scripted_session
from turngate import Block, CallbackHook, CommandHook, Options, StopEvent

_SPANS = InMemorySpanExporter()
_PROVIDER = TracerProvider()
_PROVIDER.add_span_processor(SimpleSpanProcessor(_SPANS))


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", _PROVIDER)
    _SPANS.clear()
    yield _SPANS
    _SPANS.clear()


def refuse(event: StopEvent) -> Block:
    return Block(f"{event.name}: red")


def tree(finished: tuple[ReadableSpan, ...]) -> list[tuple[str, str | None, object]]:
    """Return the name of each span, that of its parent, and the outcome."""
    names = {each.context.span_id: each.name for each in finished if each.context}
    return [
        (
            each.name,
            each.parent and names[each.parent.span_id],
            (each.attributes or {}).get("turngate.outcome"),
        )
        for each in finished
    ]


def test_a_turn_and_its_hooks_join_the_trace_of_the_program(
    project: Path, spans: InMemorySpanExporter
) -> None:
    hook = CommandHook(block_first(1), id="tests")
    session = scripted_session(project, "done", "done again", stop=hook)
    with trace.get_tracer("mine").start_as_current_span("my request"):
        session.play("go")
    found = spans.get_finished_spans()
    assert tree(found) == [
        ("turngate.gate tests", "invoke_agent", "blocked"),
        ("turngate.gate tests", "invoke_agent", "passed"),
        ("invoke_agent", "my request", None),
        ("my request", None, None),
    ]
    about = found[0].attributes or {}
    assert (about["turngate.event"], about["gen_ai.conversation.id"]) == (
        "Stop",
        (found[2].attributes or {})["gen_ai.conversation.id"],
    )


def test_the_callbacks_of_an_adapter_join_the_trace_of_the_program(
    project: Path, spans: InMemorySpanExporter
) -> None:
    async def ask() -> None:
        options = Options({"Stop": [CallbackHook(refuse)]}).for_claude(
            claude_agent_sdk.ClaudeAgentOptions(cli_path=fake_program(project), cwd=project)
        )
        with trace.get_tracer("mine").start_as_current_span("my request"):
            async for _ in claude_agent_sdk.query(prompt="go", options=options):
                pass

    asyncio.run(ask())
    assert ("turngate.gate refuse", "my request", "blocked") in tree(spans.get_finished_spans())


def test_a_program_without_opentelemetry_does_not_load_it(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    code = "import sys, turngate.cli.main as m; m.main(['fire', 'Stop']); print('opentelemetry' in str(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"
