"""The files of a project, on this machine or another one."""
