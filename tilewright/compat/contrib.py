"""`tvm.contrib.utils` and `tvm.contrib.cc`: temporary folders, and the linker for exported objects."""
from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from tilewright.runtime import export
from tilewright.runtime.loader import host_triple
from tilewright.support.errors import ArgumentError, CodegenError, described, with_hint


class TempDirectory:
    """A folder that goes away with this object, or at `remove`. `temp_dir` is its path."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool = False) -> None:
        if custom_path is not None:
            os.makedirs(custom_path, exist_ok=True)
        self.temp_dir = custom_path or tempfile.mkdtemp(prefix="tilewright-")
        keep = keep_for_debug or custom_path is not None
        self._gone = weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)
        if keep:
            self._gone.detach()

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.temp_dir)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        self._gone.detach()
        shutil.rmtree(self.temp_dir, ignore_errors=True)

    def relpath(self, name: str) -> str:
        """The path of the file `name` in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """The names of the files in the folder."""
        return os.listdir(self.temp_dir)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool = False) -> TempDirectory:
    """A new temporary folder; custom_path: a folder of that name, which stays."""
    return TempDirectory(custom_path, keep_for_debug)


def get_cc() -> str | None:
    """The command that links for this machine; None where there is none."""
    try:
        return " ".join(export.linker(host_triple()))
    except CodegenError:
        return None


def create_shared(output: str | Path, objects: str | Path | Sequence[str | Path],
                  options: Sequence[str] | None = None, cc: str | None = None, cwd: str | None = None,
                  ccache_env: object = None) -> None:
    """A shared library of object files (`Module.save`), static libraries and sources that the compiler knows.

    The linker is `cc`, else the system's compiler, else the one in the ziglang wheel (pip install
    'tilewright[export]'). Raises ArgumentError for an object that is not there, CodegenError where linking fails.
    """
    _compile("create_shared", [*export.shared_flags(host_triple()), "-fPIC"], output, objects, options, cc, cwd)


def create_executable(output: str | Path, objects: str | Path | Sequence[str | Path],
                      options: Sequence[str] | None = None, cc: str | None = None, cwd: str | None = None,
                      ccache_env: object = None) -> None:
    """An executable of object files and sources, by the same linker as `create_shared`."""
    _compile("create_executable", [], output, objects, options, cc, cwd)


def _compile(what: str, flags: Sequence[str], output: str | Path, objects: str | Path | Sequence[str | Path],
             options: Sequence[str] | None, cc: str | None, cwd: str | None) -> None:
    target = export.as_path(what, output)
    given = [objects] if isinstance(objects, (str, Path)) else list(objects)
    if isinstance(options, str):
        raise ArgumentError(with_hint(f"{what}: options is {described(options)}, not a list", 'options=["-O2"]'))
    for item in given:
        name = export.as_path(what, item)
        if not str(item).startswith("-") and not Path(cwd or ".", name).exists():
            raise ArgumentError(with_hint(f"{what}: there is no file {item}", "Module.save(path) writes an object"))
    linker = export.linker(host_triple(), cc)
    export.run_linker([*linker, *flags, "-o", str(target), *map(str, given), *(options or ()), "-lm"], cwd)
