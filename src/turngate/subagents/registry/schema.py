"""The table of runs. Databases of earlier versions must open, so columns are only ever added."""

from dataclasses import MISSING, fields

from turngate.core.conversation.subagent_run import SubagentRun

# In `PRAGMA user_version`; files without one have 0. Raise it for a change that an earlier version would misread.
SCHEMA_VERSION = 1
OLDEST_COLUMNS = ("id", "agent_id", "state", "owner")  # that every version had

COLUMNS = tuple(field.name for field in fields(SubagentRun))
_DEFAULTS = {field.name: None if field.default is MISSING else field.default for field in fields(SubagentRun)}


def column_definition(name: str) -> str:
    match _DEFAULTS[name]:
        case bool() | int() as number:
            return f"{name} INTEGER NOT NULL DEFAULT {int(number)}"
        case float():
            return f"{name} REAL NOT NULL DEFAULT 0"
        case str() as text:
            return f"{name} TEXT NOT NULL DEFAULT '{text}'"
        case _:
            return name  # without a type SQLite stores values as they are


# SQLite uses a partial index only for statements that repeat its condition word for word.
IS_OPEN = "state NOT IN ('done', 'replaced', 'given_up')"
IS_UNDELIVERED = "announced IS NOT NULL AND taken IS NULL"

_DEFINITIONS = ", ".join(column_definition(name) for name in COLUMNS if name != "id")
TABLE = f"CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, {_DEFINITIONS}) WITHOUT ROWID"
INDEXES = f"""
CREATE INDEX IF NOT EXISTS open_runs ON runs (state, owner) WHERE {IS_OPEN};
CREATE INDEX IF NOT EXISTS waited_for ON runs (parent, parent_agent) WHERE {IS_UNDELIVERED};
CREATE INDEX IF NOT EXISTS finished_runs ON runs (ended) WHERE state IN ('done', 'replaced');
CREATE INDEX IF NOT EXISTS children ON runs (parent, parent_agent);
CREATE INDEX IF NOT EXISTS by_agent ON runs (agent_id);
CREATE INDEX IF NOT EXISTS chains ON runs (chain);
CREATE INDEX IF NOT EXISTS agents ON runs (parent_agent) WHERE parent_agent != '';
CREATE TRIGGER IF NOT EXISTS replacement AFTER INSERT ON runs WHEN NEW.replaces != '' BEGIN
  UPDATE runs SET state = 'replaced', ended = coalesce(ended, NEW.created) WHERE id = NEW.replaces;
END;
"""
