#!/usr/bin/env python3
"""SessionStart: the session begins with the first 100 lines of docs/plans/*/MEMORY.md. A file with secrets is left out."""

from hook_support import inside, project_of, read_input

MAX_LINES = 100

project = project_of(read_input())
lines: list[str] = []
for path in sorted(project.glob("docs/plans/*/MEMORY.md")):
    name = str(path.relative_to(project))
    try:
        lines += inside(project, name).read_text("utf-8", "replace").splitlines()
    except ValueError as error:
        lines.append(f"(The memory is left out: {error}.)")
    except OSError as error:
        lines.append(f"(The memory {name} cannot be read: {error.strerror}.)")
print("\n".join(lines[:MAX_LINES]) or "No active plans")
