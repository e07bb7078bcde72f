"""Pattern 1, a quality gate: lint, types and tests, each only if the one before passed.

Needs no network. Run it: python examples/hooks/quality_gate.py
"""

import asyncio
import tempfile

from turngate import (
    Block,
    CallbackHook,
    CommandHook,
    Options,
    ScriptedModel,
    Session,
    StopEvent,
    UnsafePath,
    is_sensitive,
    safe_path,
)


def no_secrets(event: StopEvent) -> Block | None:
    """The checks print lines of prices.py, and a model reads them: it must not be a link to a file with secrets."""
    try:
        path = safe_path(event.cwd, "prices.py")
    except UnsafePath as error:
        return Block(str(error))
    return Block("prices.py leads to a file with secrets. Replace it.") if is_sensitive(path) else None


def gate(name: str, command: str) -> CommandHook:
    """Return a hook that blocks on any failure, with the last lines of the output as its reason."""
    return CommandHook(
        f"({command}) > {name}.log 2>&1 || {{ tail -5 {name}.log >&2; exit 2; }}", id=name, timeout=120
    )


OPTIONS = Options(
    {
        "Stop": [
            CallbackHook(no_secrets),
            gate("lint", "! grep -n TODO prices.py"),
            gate("types", "python3 -m py_compile prices.py"),
            gate("tests", "python3 -c 'import prices; assert prices.total([1, 2]) == 3'"),
        ]
    },
    order="first_block",
)


def write(text: str) -> dict[str, object]:
    return {"tool": "Bash", "input": {"command": f"printf '%s\\n' '{text}' > prices.py"}}


MODEL = ScriptedModel(
    {
        "main": [
            write("def total(prices): return 0  # TODO"),
            "Done.",
            write("def total(prices): return 0"),
            "Done, without a TODO.",
            write("def total(prices): return sum(prices)"),
            "Done, and it adds up.",
        ]
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        settings = OPTIONS.settings()
        async with Session(project, MODEL, settings, state=f"{project}/state", allow=("Bash",)) as session:
            result = await session.send("Write total().")
    for output in result.hook_outputs:
        print(f"{output.hook}: {output.outcome} {(output.said or '').splitlines()[-1:]}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
