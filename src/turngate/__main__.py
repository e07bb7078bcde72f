"""Run the command line: `python -m turngate`."""

import sys

from turngate.cli.main import main

sys.exit(main())
