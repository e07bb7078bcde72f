"""The command line: `main` parses and exits, one file per command."""
