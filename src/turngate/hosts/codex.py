"""Codex: rejects an answer with a key that it does not know, and then the agent stops."""

from turngate.hosts.claude import write_answer
from turngate.hosts.host import SAME_NAMES, Host

CODEX = Host(
    name="codex",
    title="Codex",
    version="0.166.0",
    acp_programs=("codex-acp",),
    events=SAME_NAMES,
    files={"user": "~/.codex/hooks.json", "project": ".codex/hooks.json"},
    default_timeout_s=600,
    limit=None,
    folder_variable=("CODEX_HOME", "~/.codex"),
    agent_variable="CODEX_THREAD_ID",
    further_files=(("user", "~/.codex/config.toml"), ("project", ".codex/config.toml")),
    stop_types=("command", "mcp_tool"),
    has_async=True,
    reads_exit_codes=True,
    rejects_specific_output=True,
    switches={"features.hooks": False, "features.codex_hooks": False},
    only_keys=("description", "hooks"),
    has_plain_json=True,
    not_shown="with `codex exec`, which prints only that a hook ran",
    limitations=(
        "It silently skips a hook that is new or changed, until you trust it in `/hooks`.",
        "It discards an answer with a key that it does not know, and the agent stops.",
    ),
    documentation="https://developers.openai.com/codex/hooks",
    steps_by_hand={
        "user": "open Codex and trust the hook in `/hooks`: until then Codex skips it",
        "project": "open Codex in this project and trust the hook in `/hooks`: until then Codex skips it",
    },
    write_answer=write_answer,
)
