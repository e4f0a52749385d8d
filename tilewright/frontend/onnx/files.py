"""Reads the bytes of models, and of the files beside them that hold their tensors."""
from __future__ import annotations

import importlib
import os
import stat
from pathlib import Path
from typing import Any

from tilewright.frontend.onnx.limits import MOST_FILE_BYTES, MOST_READ
from tilewright.frontend.onnx.optional import onnx
from tilewright.frontend.onnx.tensors import ReadExternal
from tilewright.support.errors import ImportModelError, described


def read_model(model: Any) -> tuple[Any, ReadExternal | None]:
    """(the ModelProto of a path, bytes, or itself; what reads the tensors in files beside it, for a path)."""
    package = onnx()
    if isinstance(model, package.ModelProto):
        return model, None
    if isinstance(model, (bytes, bytearray)):
        return _parsed(bytes(model), "the bytes"), None
    if not isinstance(model, (str, os.PathLike)):
        raise ImportModelError(f"{described(model)} is not a model", "pass a path, a ModelProto, or the bytes of one")
    path = Path(model)
    return _parsed(_read(path, str(path)), str(path)), Beside(path.parent)


def _parsed(data: bytes, what: str) -> Any:
    model = onnx().ModelProto()
    try:
        model.ParseFromString(data)
    except importlib.import_module("google.protobuf.message").DecodeError as error:
        raise ImportModelError(f"{what}: not a model in the ONNX format, or cut off: {error}") from None
    if not model.HasField("graph"):
        raise ImportModelError(f"{what}: the model has no graph", "is it a file in the ONNX format?")
    return model


def _read(path: Path, what: str) -> bytes:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise ImportModelError(f"{what} is not a regular file")
        if status.st_size > MOST_FILE_BYTES:
            raise ImportModelError(f"{what} has {status.st_size} bytes, and a model at most {MOST_FILE_BYTES}",
                                   "large tensors belong into files beside the model (external data)")
        return path.read_bytes()
    except OSError as error:
        raise ImportModelError(f"{what}: {error.strerror or error}") from None


def _without_waiting(path: str, flags: int) -> int:
    """A descriptor at once, of a pipe too."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class Beside:
    """Reads tensors from files in the folder of a model, and from nowhere else; of each file at most MOST_READ times
    its bytes, so that tensors that share some do not fill the memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.read: dict[Path, int] = {}

    def __call__(self, tensor: Any, what: str, nbytes: int) -> bytes:
        """The bytes of a tensor that needs so many. Raises ImportModelError for a place outside of folder or file."""
        entries = {e.key: e.value for e in tensor.external_data}
        path = self._path(entries.get("location", ""), what)
        offset, length = (self._number(entries, key, what) for key in ("offset", "length"))
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise ImportModelError(f"{what} lies in {path.name}, which is not a regular file")
                begin = offset or 0
                count = status.st_size - begin if length is None else length
                if count != nbytes:
                    raise ImportModelError(f"{what} needs {nbytes} bytes, and {count} of {path.name} are its own")
                if begin + count > status.st_size:
                    raise ImportModelError(f"{what} claims {count} bytes from {begin} on of {path.name}, "
                                           f"which has {status.st_size}")
                self.read[path] = self.read.get(path, 0) + count
                if self.read[path] > MOST_READ * status.st_size:
                    raise ImportModelError(f"{what} lies in {path.name}, of whose {status.st_size} bytes tensors claim "
                                           f"more than {MOST_READ} times as many")
                file.seek(begin)
                return file.read(count)
        except MemoryError:
            raise ImportModelError(f"{what} has {nbytes} bytes, for which there is no memory") from None
        except OSError as error:
            raise ImportModelError(f"{what} lies in {path.name}: {error.strerror or error}") from None

    def _path(self, location: str, what: str) -> Path:
        parts = Path(location).parts
        if not location or "\0" in location or "\\" in location or Path(location).is_absolute() or ".." in parts:
            raise ImportModelError(f"{what} lies in {location!r}, which is not inside of the model's folder")
        path = Path(os.path.realpath(self.folder / location))
        if self.folder not in path.parents:
            raise ImportModelError(f"{what} lies in {location!r}, a link out of the model's folder")
        return path

    @staticmethod
    def _number(entries: dict[str, str], key: str, what: str) -> int | None:
        text = entries.get(key, "")
        if not text:
            return None
        if not text.isdecimal() or len(text) > 18:
            raise ImportModelError(f"{what} has the {key} {text[:40]!r}, not a number of bytes")
        return int(text)
