"""The files of another machine, read and written with scripts that a shell runs there."""
