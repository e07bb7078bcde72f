"""The other agent programs that can run Turngate as a hook: their input, their answers, their settings files."""
