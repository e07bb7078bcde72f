"""`turngate schema`: print the JSON Schemas, which are generated from the tables that validate."""

import argparse
import json

from turngate.settings.json_schema import SCHEMAS


def run(options: argparse.Namespace) -> int:
    if options.name:
        schema = SCHEMAS[options.name]()
    else:
        schema = {name: build_schema() for name, build_schema in SCHEMAS.items()}
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
