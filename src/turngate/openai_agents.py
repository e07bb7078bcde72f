"""`StopGates` for the OpenAI Agents SDK."""

from turngate.adapters.openai_agents import StopGates as StopGates
