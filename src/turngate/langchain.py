"""`StopGates` for LangChain."""

from turngate.adapters.langchain import StopGates as StopGates
