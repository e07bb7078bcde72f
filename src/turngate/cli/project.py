"""The project folder of a command: the one that is given, or the nearest one that holds settings. Imports little."""

import os
import sys

from turngate.core.constants import FAMILIES, SCRIPT_FAMILIES, SCRIPTS
from turngate.errors import UsageError
from turngate.project.checkouts import in_main_checkout
from turngate.project.files import LOCAL, Files
from turngate.project.safe_paths import real_path
from turngate.settings.paths import script_files, settings_files
from turngate.state.paths import approvals_path, state_folder


def project_folder(given: str | None, dialect: str = "turngate") -> str:
    """Return the absolute path of the folder of `--project`, or of the project that the current folder belongs to."""
    try:
        folder = os.path.abspath("." if given is None else given)
    except FileNotFoundError:
        raise UsageError(
            "the current folder no longer exists; change to another one, or give --project an absolute path"
        ) from None
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {given}; give the project's folder with --project")
    if given is not None:
        _warn_of_settings_folder(folder, FAMILIES[dialect])
    return find_project(folder, FAMILIES[dialect]) if given is None else folder


def recorded_project(given: str | None) -> str:
    """Return the project of `--project` as journals name it: a folder here, or the URL of one on another machine."""
    return given.rstrip("/") if given and given.startswith("ssh://") else project_folder(given)


def _warn_of_settings_folder(folder: str, families: tuple[str, ...]) -> None:
    """Warn if `--project` names the settings folder of a project: its settings would not be read."""
    parent, name = os.path.split(folder)
    is_settings_folder = name[:1] == "." and name[1:] in families and _holds_settings(folder)
    if is_settings_folder and not _settings_folders(folder, families):
        hint = f"did you mean --project {describe_path(parent)}?"
        print(
            f"! --project: {name} is the settings folder of a project, not a project; {hint}", file=sys.stderr
        )


def describe_path(path: str) -> str:
    """Return a path for a message, on one line and without terminal control characters."""
    if path.isprintable():
        return path
    from turngate.core.text import printable  # noqa: PLC0415 # lazy: a fire without hooks does not load typing

    return printable(path)


def search_note(project: str, given: str | None) -> str | None:
    """Return what to tell the user about the project's folder, or None if it is the current one or the given one."""
    if given is not None or project == os.getcwd():
        return None
    return f"project: {describe_path(project)} (found above the current folder)"


def with_place(text: str, location: str) -> str:
    """Return a hint whose commands work from the current folder, about the project at this location."""
    from turngate.core.verdict.hints import with_location, with_project  # noqa: PLC0415 # lazy: only for a hint

    if location.startswith("ssh://"):
        text = with_location(text, location)
    elif location != project_folder(None):
        text = with_project(text, _short(location))
    return with_program(text)


def with_program(text: str, *, anywhere: bool = False) -> str:
    """Return a hint whose commands name this program by its path if it is not on PATH, as in a virtual environment.

    `anywhere`: they work from any folder, and not only from the current one.
    """
    import shutil  # noqa: PLC0415 # lazy: only for a hint

    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) != "turngate" or shutil.which("turngate"):
        return text
    return text.replace("`turngate ", f"`{describe_path(program) if anywhere else _short(program)} ")


def _short(path: str) -> str:
    return describe_path(min(os.path.relpath(path), path, key=len))


def find_project(
    start: str, families: tuple[str, ...], *, home: str | None = None, owners: tuple[int, ...] | None = None
) -> str:
    """Return the nearest folder from `start` upward that holds settings or a script hook.

    If there is none, it is the nearest one with a settings folder; without such a folder, it is `start`.
    The search ends at the git root, and below home: `~/.claude` holds the user's settings, which every project has.
    The settings folders above `start` and the files in them must belong to this user or to root. Otherwise, anyone
    who can write to /tmp could add hooks to every project below it.
    """
    home = real_path(home or os.path.expanduser("~"))
    owners = (os.geteuid(), 0) if owners is None else owners
    folder, nearest = start, None
    while True:
        found = _settings_folders(folder, families)
        foreign = None if folder == start else _foreign_path(found, owners)
        if found and foreign is None:
            if any(map(_holds_settings, found)):
                return folder
            nearest = nearest or folder
        if foreign:
            name = describe_path(folder)
            hint = f"so {name} is not used as the project; to use it, add --project {name}"
            print(f"! {describe_path(foreign)} belongs to another user, {hint}", file=sys.stderr)
        parent = os.path.dirname(folder)
        is_home_or_above = f"{home}/".startswith(f"{parent.rstrip('/')}/")
        if is_home_or_above or os.path.lexists(os.path.join(folder, ".git")):
            return nearest or start
        folder = parent


def _settings_folders(folder: str, families: tuple[str, ...]) -> list[str]:
    paths = (os.path.join(folder, f".{family}") for family in families)
    return [path for path in paths if os.path.isdir(path)]


def _files_that_are_read(folder: str) -> list[str]:
    scripts = SCRIPTS.values() if os.path.basename(folder)[1:] in SCRIPT_FAMILIES else ()
    return [os.path.join(folder, name) for name in ("settings.json", "settings.local.json", *scripts)]


def _holds_settings(folder: str) -> bool:
    return any(map(os.path.lexists, _files_that_are_read(folder)))


def _foreign_path(folders: list[str], owners: tuple[int, ...]) -> str | None:
    """Return the first settings folder, or file in it, that belongs to another user."""
    for folder in folders:
        for path in (folder, os.path.join(folder, "hooks"), *_files_that_are_read(folder)):
            try:
                if os.lstat(path).st_uid not in owners:
                    return path
            except OSError:  # it does not exist, or cannot be read
                continue
    return None


def nothing_is_configured(project: str, dialect: str) -> bool:
    """Return whether there is no settings file, no script hook and no approval of a hook that is gone."""
    approvals = approvals_path(state_folder(), in_main_checkout(real_path(project), LOCAL))
    return all(map(_is_absent, (*configuration_files(project, dialect), approvals)))


def configuration_files(project: str, dialect: str) -> list[str]:
    scripts = (file for _, file in script_files(project, dialect))
    return [file.path for file in (*settings_files(project, dialect, files=LOCAL), *scripts)]


def _is_absent(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # it may exist
        pass
    return False


def check_one_project(project: str | None, ssh: str | None) -> None:
    """Raise UsageError if both `--project` and `--ssh` name a project."""
    if project is not None and ssh is not None:
        raise UsageError(
            "--project is a folder here, and --ssh names one on another machine; give one of them"
        )


def plugin_folders(given: list[str], files: Files = LOCAL) -> list[str]:
    """Return the absolute paths of the folders of `--plugin-dir`; of another machine, they stay as they are."""
    if files.machine:
        return given
    for folder in given:
        if not os.path.isdir(folder):
            raise UsageError(f"--plugin-dir {folder}: there is no such folder; give the folder of a plugin")
    return [os.path.abspath(folder) for folder in given]
