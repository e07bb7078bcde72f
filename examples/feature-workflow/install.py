"""Makes a project with the workflow: the files of `project`, and the hooks of the memory."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
HOOKS = ("hook_support.py", "load_memory.py", "safe_paths.py", "update_memory.py")


def install(project: Path) -> None:
    shutil.copytree(HERE / "project", project, dirs_exist_ok=True)
    folder = project / ".turngate" / "hooks"
    folder.mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy2(HERE.parent / "hooks" / "scripts" / name, folder / name)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
