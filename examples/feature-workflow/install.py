"""Makes a project with the workflow: the files of `project`, and its hooks."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent


def install(project: Path) -> None:
    shutil.copytree(HERE / "project", project, dirs_exist_ok=True)
    for folder in (HERE.parent / "hooks" / "scripts", HERE / "hooks"):
        for file in folder.glob("*.py"):
            shutil.copy2(file, _made(project / ".turngate" / "hooks") / file.name)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    install(Path(sys.argv[1]))
