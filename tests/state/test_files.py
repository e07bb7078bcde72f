import os
import subprocess
from pathlib import Path

from turngate.state.files import make_private_dir


def test_a_private_folder_may_have_a_thousand_parents(tmp_path: Path) -> None:
    folder = os.path.join(tmp_path, *["a"] * 1900)
    make_private_dir(folder)
    modes = [os.stat(path).st_mode & 0o777 for path in (tmp_path / "a", folder)]
    subprocess.run(["rm", "-r", tmp_path / "a"], check=True)  # pytest would remove it by recursion
    assert modes == [0o700, 0o700]
