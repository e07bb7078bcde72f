"""`turngate schema`: print the JSON Schemas, which are generated from the tables that validate."""

import argparse
import json

from turngate.cli.arguments import EXIT_CODES_OF_OUTPUT, Parser

SCHEMA_NAMES = ["settings", "input", "output"]


def declare(parser: Parser) -> None:
    parser.description = (
        "Print a JSON Schema, for editors and validators. Without NAME, print all of them in one object."
    )
    parser.epilog = f"""\
Examples:
  turngate schema settings > settings.schema.json   name it in `$schema` of a settings file, and an
                                                    editor completes and checks that file
  turngate schema output                            what a hook can answer with

{EXIT_CODES_OF_OUTPUT}"""
    parser.add_argument(
        "name", nargs="?", choices=SCHEMA_NAMES, metavar="NAME", help="settings, input or output"
    )


def run(options: argparse.Namespace) -> int:
    from turngate.settings.json_schema import SCHEMAS  # noqa: PLC0415 # lazy: loads the tables of settings

    if options.name:
        schema = SCHEMAS[options.name]()
    else:
        schema = {name: build_schema() for name, build_schema in SCHEMAS.items()}
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
