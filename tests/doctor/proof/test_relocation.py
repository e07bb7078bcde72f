from pathlib import Path

from tests.support.builders import rule, settings
from turngate.core.hooks.kinds import CommandHook
from turngate.doctor.proof.project_copy import ProjectCopy, Relocation


def relocation(project: Path, copy: Path) -> Relocation:
    return Relocation(str(project), ProjectCopy(str(copy), str(project), str(copy), (), {}))


def test_the_path_of_the_project_becomes_that_of_the_copy(tmp_path: Path) -> None:
    project, copy = tmp_path / "shop", tmp_path / "copy" / "shop"
    moved = relocation(project, copy)
    texts = [f"cd {project} && x", f"{project}/a:{project}/b", f"{project}-old", f"/x{project}", "shop"]
    assert [moved.text(text) for text in texts] == [
        f"cd {copy} && x",
        f"{copy}/a:{copy}/b",
        f"{project}-old",
        f"/x{project}",
        "shop",
    ]


def test_a_hook_its_settings_and_its_environment_lead_into_the_copy(tmp_path: Path) -> None:
    project, copy = tmp_path / "shop", tmp_path / "copy" / "shop"
    moved = relocation(project, copy)
    hook = CommandHook(f"{project}/check", args=(f"--root={project}",), env={"ROOT": str(project)})
    of_copy = moved.rule(rule(hook))
    assert of_copy.hook == CommandHook(f"{copy}/check", args=(f"--root={copy}",), env={"ROOT": str(copy)})
    assert moved.settings(settings(env={"A": f"{project}/a"}, stop_budget=3.0), [of_copy]) == settings(
        of_copy.hook, env={"A": f"{copy}/a"}
    )
    assert moved.environ({"PWD": str(project), "GIT_DIR": f"{project}/.git"}) == {
        "PWD": str(copy),
        "GIT_CEILING_DIRECTORIES": str(tmp_path / "copy"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TURNGATE_STATE": str(tmp_path / "copy" / "state"),
    }
