"""The schema of a registry on PostgreSQL, and the rights of its two roles; `turngate registry init` creates them."""

from turngate.subagents.registry.store import LEASE_S
from turngate.subagents.registry.table import COLUMNS, INDEXES, IS_OPEN, SCHEMA_VERSION, column_definition

SESSION_ROLE, WORKER_ROLE = "turngate_session", "turngate_worker"
ROLES = {
    SESSION_ROLE: "it starts, steers and kills subagents, runs them, and reads those that its login has started",
    WORKER_ROLE: "it claims and runs the subagents that are for workers, of all logins, and starts none",
}
JOIN = """
WITH outdated AS (DELETE FROM turngate.owners WHERE seen < now() - make_interval(secs => $retention))
INSERT INTO turngate.owners (id, host, version, slots, labels)
VALUES ($owner, $host, $version, $slots, $labels) RETURNING id"""
NOT_DURABLE = "! synchronous_commit is off: after a crash, announced results can be lost or announced again; set it to on"
# The channels of notifications: for all, for workers, and of one login.
CHANGES, WAITING, LOGIN = "turngate", "turngate_waiting", "'turngate_' || md5({})"

# What no transition changes, and a run takes over from the one that it replaces.
_INHERITED = (
    *("chain", "agent_id", "agent_type", "parent", "parent_agent", "label", "task", "background", "depth"),
    *("begun", "transcript", "launch"),
)
_FIXED = {*_INHERITED, "id", "prompt", "by_hook", "created", "replaces", "spent", "earlier_tools"}
_CHANGED = ", ".join(name for name in COLUMNS if name not in _FIXED)

TABLES = f"""
CREATE SCHEMA IF NOT EXISTS turngate;
CREATE TABLE IF NOT EXISTS turngate.schema_version (version integer NOT NULL);
INSERT INTO turngate.schema_version SELECT {SCHEMA_VERSION} WHERE NOT EXISTS (SELECT FROM turngate.schema_version);
UPDATE turngate.schema_version SET version = {SCHEMA_VERSION} WHERE version < {SCHEMA_VERSION};
CREATE TABLE IF NOT EXISTS turngate.owners (
  id text PRIMARY KEY, login text NOT NULL DEFAULT session_user, host text NOT NULL, version text NOT NULL,
  slots integer NOT NULL DEFAULT 0, labels text NOT NULL DEFAULT '[]',
  joined timestamptz NOT NULL DEFAULT now(), seen timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS turngate.runs (
  id text PRIMARY KEY, {", ".join(column_definition(name) for name in COLUMNS if name != "id")},
  login text NOT NULL DEFAULT session_user, host text NOT NULL DEFAULT '',
  project text GENERATED ALWAYS AS (launch::jsonb ->> 'project') STORED,
  labels jsonb GENERATED ALWAYS AS (launch::jsonb -> 'workers' -> 'labels') STORED,
  -- That of its project. Conditions on JSON use no index for logins under row level security.
  first_label text GENERATED ALWAYS AS (coalesce(launch::jsonb #>> '{{workers,labels,0}}', '')) STORED,
  at_once integer GENERATED ALWAYS AS ((launch::jsonb -> 'workers' ->> 'at_once')::integer) STORED);
CREATE TABLE IF NOT EXISTS turngate.transcripts (
  chain text REFERENCES turngate.runs ON DELETE CASCADE, start bigint, part text NOT NULL, PRIMARY KEY (chain, start));
{"".join(f"ALTER TABLE turngate.runs ADD COLUMN IF NOT EXISTS {column_definition(name)};" for name in COLUMNS)}
{INDEXES.replace(" ON runs ", " ON turngate.runs ")}
CREATE INDEX IF NOT EXISTS to_claim ON turngate.runs (first_label, created, id) WHERE labels IS NOT NULL AND {IS_OPEN};
"""

# For each row: a trigger for each statement would also fire for one that changes nothing, such as an empty claim.
TRIGGERS = f"""
CREATE OR REPLACE FUNCTION turngate.insert_run() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE was turngate.runs;
BEGIN
  NEW.login := session_user;
  NEW.host := coalesce((SELECT host FROM turngate.owners WHERE id = NEW.owner), '');
  IF NEW.replaces != '' THEN
    UPDATE turngate.runs SET state = 'replaced', ended = coalesce(ended, NEW.created)
      WHERE id = NEW.replaces AND state = 'steering' AND owner = NEW.owner RETURNING * INTO was;
    IF NOT FOUND THEN
      RAISE insufficient_privilege USING MESSAGE = 'there is no run that this one may replace';
    END IF;
    NEW.id := was.next_id; NEW.prompt := was.next_prompt; NEW.by_hook := was.next_by_hook;
    {" ".join(f"NEW.{name} := was.{name};" for name in (*_INHERITED, "login", "host"))}
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER insert_run BEFORE INSERT ON turngate.runs
  FOR EACH ROW EXECUTE FUNCTION turngate.insert_run();

CREATE OR REPLACE FUNCTION turngate.check_claim() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NOT pg_has_role(session_user, '{WORKER_ROLE}', 'MEMBER') THEN
    RAISE insufficient_privilege USING MESSAGE = 'only a login with the role {WORKER_ROLE} may claim a run';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER check_claim AFTER INSERT OR UPDATE OF owner ON turngate.runs
  FOR EACH ROW WHEN (NEW.labels IS NOT NULL AND NEW.owner != '') EXECUTE FUNCTION turngate.check_claim();

CREATE OR REPLACE FUNCTION turngate.notify_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  PERFORM pg_notify(CASE WHEN NEW.state = 'waiting' AND NEW.error = '' THEN '{WAITING}'
    WHEN NEW.state = 'announced' THEN {LOGIN.format("NEW.login")} ELSE '{CHANGES}' END, '');
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER notify_change AFTER INSERT OR UPDATE ON turngate.runs
  FOR EACH ROW WHEN (NEW.owner = '' OR NEW.recoveries > 0
    OR NEW.state IN ('waiting', 'steering', 'killed', 'announced', 'given_up')) EXECUTE FUNCTION turngate.notify_change();
"""

_OWN = "owner IN (SELECT id FROM turngate.owners WHERE login = session_user)"
_LIVES = f"owner IN (SELECT id FROM turngate.owners WHERE seen > now() - interval '{LEASE_S:g} s')"
_CHAIN = "SELECT FROM turngate.runs WHERE runs.chain = transcripts.chain"
_LOGIN = "login = session_user"
_POLICIES = {
    # A login sees what it has registered; workers, what is for workers. Each login may see which owners live.
    "own_runs ON turngate.runs": f"TO {SESSION_ROLE} USING ({_LOGIN})",
    "read_for_workers ON turngate.runs": f"FOR SELECT TO {WORKER_ROLE} USING (labels IS NOT NULL)",
    # A worker changes open runs that it has or that no living owner has, and cannot give them to another worker.
    "change_for_workers ON turngate.runs": f"""FOR UPDATE TO {WORKER_ROLE}
      USING (labels IS NOT NULL AND {IS_OPEN} AND ({_OWN} OR NOT {_LIVES}))
      WITH CHECK (labels IS NOT NULL AND (owner = '' OR {_OWN}))""",
    "replace_for_workers ON turngate.runs": f"""FOR INSERT TO {WORKER_ROLE}
      WITH CHECK (labels IS NOT NULL AND replaces != '' AND {_OWN})""",
    "read_transcripts ON turngate.transcripts": f"""FOR SELECT TO {SESSION_ROLE}, {WORKER_ROLE}
      USING (EXISTS ({_CHAIN}))""",
    "add_transcripts ON turngate.transcripts": f"""FOR INSERT TO {WORKER_ROLE}
      WITH CHECK (EXISTS ({_CHAIN} AND {_OWN}))""",
    "read_owners ON turngate.owners": f"FOR SELECT TO {SESSION_ROLE}, {WORKER_ROLE} USING (true)",
    "own_sessions ON turngate.owners": f"""TO {SESSION_ROLE}
      USING ({_LOGIN} AND slots = 0) WITH CHECK ({_LOGIN} AND slots = 0 AND seen <= now())""",
    "own_workers ON turngate.owners": f"""TO {WORKER_ROLE}
      USING ({_LOGIN}) WITH CHECK ({_LOGIN} AND seen <= now())""",
}
RIGHTS = f"""
REVOKE ALL ON SCHEMA turngate FROM PUBLIC;
GRANT USAGE ON SCHEMA turngate TO {SESSION_ROLE}, {WORKER_ROLE};
GRANT SELECT ON ALL TABLES IN SCHEMA turngate TO {SESSION_ROLE}, {WORKER_ROLE};
GRANT INSERT ({", ".join(COLUMNS)}), UPDATE ({_CHANGED}) ON turngate.runs TO {SESSION_ROLE}, {WORKER_ROLE};
GRANT DELETE ON turngate.runs TO {SESSION_ROLE};
GRANT INSERT ON turngate.transcripts TO {WORKER_ROLE};
GRANT INSERT (id, host, version, slots, labels), UPDATE (seen), DELETE ON turngate.owners
  TO {SESSION_ROLE}, {WORKER_ROLE};
ALTER TABLE turngate.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE turngate.owners ENABLE ROW LEVEL SECURITY;
ALTER TABLE turngate.transcripts ENABLE ROW LEVEL SECURITY;
{"".join(f"DROP POLICY IF EXISTS {name}; CREATE POLICY {name} {text};" for name, text in _POLICIES.items())}
"""
