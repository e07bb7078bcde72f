"""All programs that `make hosts` runs."""

from bench.hosts.claude import CLAUDE
from bench.hosts.codex import CODEX
from bench.hosts.copilot import COPILOT
from bench.hosts.gemini import GEMINI
from bench.hosts.kimi import KIMI
from bench.hosts.opencode import OPENCODE
from bench.hosts.program import Program
from bench.hosts.qwen import QWEN

PROGRAMS: tuple[Program, ...] = (CLAUDE, CODEX, GEMINI, QWEN, COPILOT, OPENCODE, KIMI)
