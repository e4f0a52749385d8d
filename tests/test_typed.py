"""Type checkers know every name that a package offers: it is shipped as typed."""
import subprocess
import sys
from pathlib import Path

import tilewright

# to mypy the top and `graph` have any name: both have a `__getattr__`
PACKAGES = ("te", "tir", "topi")


def test_every_name_is_there_for_mypy(tmp_path):
    """It reads the files of these packages alone, and runs nothing."""
    folder, probe = Path(tilewright.__file__).parent, tmp_path / "probe.py"
    lines = [f"import tilewright.{name} as {name}" for name in PACKAGES]
    lines += [f"{name}.{each}" for name in PACKAGES for each in [*getattr(tilewright, name).__all__, "absent"]]
    probe.write_text("\n".join(lines) + "\n")
    files = [str(f) for name in PACKAGES for f in (folder / name).glob("*.py")]
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--follow-imports=skip",
               f"--cache-dir={tmp_path}", str(probe), *files]
    said = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True).stdout
    errors = [line for line in said.splitlines() if line.startswith(str(probe))]
    assert len(errors) == len(PACKAGES) and all("absent" in line for line in errors), "\n".join(errors)
