"""`StopGates` for Claude's Agent SDK."""

from turngate.adapters.claude_agent_sdk import StopGates as StopGates
