"""All programs that `make hosts` runs."""

from bench.hosts.claude import CLAUDE
from bench.hosts.codex import CODEX
from bench.hosts.program import Program

PROGRAMS: tuple[Program, ...] = (CLAUDE, CODEX)
