"""`StopGates` for Strands Agents."""

from turngate.adapters.strands import StopGates as StopGates
