"""`turngate schema`: the JSON Schemas, generated from the tables that validate."""

import argparse
import json

from turngate.settings.json_schema import SCHEMAS


def run(options: argparse.Namespace) -> int:
    shown = SCHEMAS[options.name]() if options.name else {name: make() for name, make in SCHEMAS.items()}
    print(json.dumps(shown, indent=2, ensure_ascii=False))
    return 0
