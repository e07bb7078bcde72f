"""`turngate registry`: create the registry of subagents in a PostgreSQL database."""

import argparse

from turngate.cli.arguments import EXIT_ERRORS, Parser


def declare(parser: Parser) -> None:
    parser.description = """\
Create or update the registry of subagents: the schema `turngate` and two roles, in the PostgreSQL database
that TURNGATE_REGISTRY or `registry` in your settings names. Run it as the owner of the database, who must
have the right to create roles."""
    parser.epilog = f"""\
Examples:
  turngate registry init      in the database of TURNGATE_REGISTRY

Exit codes:
  0   created or updated
  64  wrong usage, or the database cannot be used
  {EXIT_ERRORS}"""
    parser.add_argument("action", choices=["init"], help="create or update the schema and the roles")


def run(_: argparse.Namespace) -> int:
    # lazy: `--help` does not need it
    from turngate.cli.commands.runs.summary import registry_setting  # noqa: PLC0415
    from turngate.subagents.registry.registry import registry_url  # noqa: PLC0415

    url = registry_url(registry_setting(), needed_by="`turngate registry init`")
    from turngate.subagents.registry.postgres_store import create_schema  # noqa: PLC0415 # lazy: needs psycopg

    print("\n".join(create_schema(url)))
    print(
        "next: CREATE ROLE … LOGIN IN ROLE turngate_session, for each user; turngate_worker, for each worker"
    )
    return 0
