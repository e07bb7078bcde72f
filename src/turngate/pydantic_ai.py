"""`StopGates` for pydantic-ai."""

from turngate.adapters.pydantic_ai import StopGates as StopGates
