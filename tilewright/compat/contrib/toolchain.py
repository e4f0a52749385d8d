"""`tvm.contrib.utils`, `cc`, `tar` and `clang`: temporary folders, the linker for exported objects, archives of them,
sources of C and C++ as LLVM IR."""
from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tarfile
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path

from tilewright.runtime import archive, export
from tilewright.runtime.llvm import host_triple
from tilewright.support.errors import ArgumentError, CodegenError, described


class TempDirectory:
    """A folder that goes away with this object, or at `remove`. `temp_dir` is its path."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool = False) -> None:
        try:
            if custom_path is not None:
                os.makedirs(export.as_path("tempdir", custom_path), exist_ok=True)
            self.temp_dir = tempfile.mkdtemp(prefix="tilewright-") if custom_path is None else str(custom_path)
        except OSError as error:
            raise ArgumentError(f"tempdir: {error}") from None
        keep = keep_for_debug or custom_path is not None
        self._gone = weakref.finalize(self, _remove, self.temp_dir, os.getpid())
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
        return os.path.join(self.temp_dir, export.as_path("relpath", name))

    def listdir(self) -> list[str]:
        """The names of the files in the folder."""
        return os.listdir(self.temp_dir)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _remove(folder: str, owner: int) -> None:
    """Remove the folder, unless this is a fork of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


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


def tar(output: str | Path, files: str | Path | Sequence[str | Path]) -> None:
    """A tar archive of files, by their last names."""
    given = [files] if isinstance(files, (str, Path)) else _listed("tar", "files", files, '["kernel.o"]')
    content = {}
    for item in given:
        path = export.as_path("tar", item)
        if not path.is_file():
            raise ArgumentError(f"tar: there is no file {path}")
        content[path.name] = path.read_bytes()
    export.place(export.as_path("tar", output), archive.packed(content))


def untar(tar_file: str | Path, directory: str | Path) -> None:
    """Write the files of an archive to a folder, and none elsewhere. Raises ArgumentError for one that would."""
    try:
        with tarfile.open(export.as_path("untar", tar_file), mode="r:*") as opened:
            opened.extractall(export.as_path("untar", directory), filter="data")
    except (tarfile.TarError, OSError) as error:
        raise ArgumentError(f"untar: {tar_file}: {error}") from None


def _compile(what: str, flags: Sequence[str], output: str | Path, objects: str | Path | Sequence[str | Path],
             options: Sequence[str] | None, cc: str | None, cwd: str | None) -> None:
    base = Path(".") if cwd is None else export.as_path(what, cwd)
    target = base / export.as_path(what, output)
    given = [objects] if isinstance(objects, (str, Path)) else _listed(what, "objects", objects, '["kernel.o"]')
    added = _listed(what, "options", options or (), '["-O2"]')
    for item in given:
        name = export.as_path(what, item)
        if not str(item).startswith("-") and not (base / name).exists():
            raise ArgumentError(f"{what}: there is no file {item}", "Module.save(path) writes an object")
    linker = export.linker(host_triple(), cc)
    with export.workplace() as folder:               # a linker removes what stood there before it fails
        result = Path(folder, target.name)
        export.run_linker([*linker, *flags, "-o", str(result), *map(str, given), *map(str, added), "-lm"], cwd)
        if not result.is_file():
            raise CodegenError(f"{what}: {linker[0]} wrote nothing")
        data = result.read_bytes()
        export.place(target, export.linked(data) if "-shared" in flags else data, executable=True)


def _listed(what: str, name: str, value: object, example: str) -> list[object]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ArgumentError(f"{what}: {name} is {described(value)}, not a list", f"{name}={example}")
    return list(value)


# What zig adds to clang by itself: traps for what is undefined, and the machine's own extras.
_PLAIN = ("-fno-sanitize=all", "-fno-stack-protector", "-fno-stack-check", "-g0")


def find_clang(required: bool = True) -> list[str]:
    """Commands that run clang: those of the system, and the one in the ziglang wheel.

    Raises CodegenError where there is none, unless it is not required.
    """
    found = [path for name in ("clang", *(f"clang-{n}" for n in range(22, 13, -1))) if (path := shutil.which(name))]
    if importlib.util.find_spec("ziglang") is not None:
        found.append(f"{sys.executable} -m ziglang cc")
    if required and not found:
        raise CodegenError("there is no clang", "pip install 'tilewright[export]' brings one")
    return found


def create_llvm(inputs: str | Sequence[str], output: str | None = None, options: Sequence[str] | None = None,
                cc: str | None = None) -> str:
    """The LLVM IR of one source: the name of a file, or the text of C++.

    `options` are added to the command, after -O2; `output` names a file that receives the text too. Raises
    ArgumentError for several sources, CodegenError where clang is missing or fails.
    """
    sources = [inputs] if isinstance(inputs, str) else list(inputs)
    if len(sources) != 1 or not isinstance(sources[0], str):
        raise ArgumentError(f"create_llvm: inputs is {described(inputs)}, expected one source",
                            "#include joins sources")
    command = (cc or find_clang()[0]).split() if cc is None or isinstance(cc, str) else [str(cc)]
    with export.workplace() as folder:
        source = Path(sources[0]) if "\n" not in sources[0] and Path(sources[0]).is_file() else Path(folder, "input.cc")
        if source.parent == Path(folder):
            source.write_text(sources[0])
        result = Path(folder, "output.ll")
        export.run_linker([*command, "-S", "-emit-llvm", "-O2", *_PLAIN, *(options or ()), "-o", str(result),
                           str(source)])
        if not result.is_file():
            raise CodegenError(f"create_llvm: {command[0]} wrote nothing")
        text = result.read_text()
    if output is not None:
        export.place(export.as_path("create_llvm", output), text.encode())
    return text
