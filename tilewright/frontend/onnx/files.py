"""Reads models, and finds their tensors in their files and in those beside them."""
from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from tilewright.frontend.onnx.limits import MOST_FILE_BYTES, MOST_OPEN, MOST_READ
from tilewright.frontend.onnx.optional import onnx
from tilewright.frontend.onnx.stretches import OWN, OpenFile, Stretch, message_without_tensors
from tilewright.frontend.onnx.tensors import ReadExternal
from tilewright.support.errors import ImportModelError, described
from tilewright.support.files import shown


def read_model(model: Any) -> tuple[Any, ReadExternal | None]:
    """(the ModelProto of a path, bytes, or itself; what finds the tensors in files, for a path).

    Large tensors in the file of a path are left there, as external ones.
    """
    package = onnx()
    if isinstance(model, package.ModelProto):
        return model, None
    if isinstance(model, (bytes, bytearray)):
        return _parsed(bytes(model), "the bytes"), None
    if not isinstance(model, (str, os.PathLike)):
        raise ImportModelError(f"{described(model)} is not a model", "pass a path, a ModelProto, or the bytes of one")
    path = Path(model)
    file = _opened(path)
    data = message_without_tensors(file)
    if data is None:
        data = file.read(0, file.size).tobytes()
    return _parsed(data, str(path)), Files(file)


def _parsed(data: bytes, what: str) -> Any:
    model = onnx().ModelProto()
    try:
        model.ParseFromString(data)
    except importlib.import_module("google.protobuf.message").DecodeError as error:
        raise ImportModelError(f"{what}: not a model in the ONNX format, or cut off: {error}") from None
    if not model.HasField("graph"):
        raise ImportModelError(f"{what}: the model has no graph", "is it a file in the ONNX format?")
    return model


def _opened(path: Path) -> OpenFile:
    try:
        file = OpenFile(path, str(path))
    except (OSError, ValueError) as error:
        raise ImportModelError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if file.size > MOST_FILE_BYTES:
        raise ImportModelError(f"{path} has {file.size} bytes, and a model at most {MOST_FILE_BYTES}",
                               "large tensors belong into files beside the model (external data)")
    return file


class Files:
    """Finds tensors in the file of a model and in files of its folder, and nowhere else; of each file at most MOST_READ
    times its bytes, so that tensors that share some do not fill the memory.

    Where the model's path is a link, the files beside it may be links into the folder of what it leads to: a cache of
    downloads has all files of a model in one folder, by their checksums, and links with their names in another.
    """

    def __init__(self, own: OpenFile) -> None:
        self.folder = Path(os.path.realpath(own.path.parent))
        self.folders = {self.folder, Path(os.path.realpath(own.path)).parent}
        self.open: dict[str, OpenFile] = {OWN: own}
        self.read: dict[Path, int] = {}

    def __call__(self, tensor: Any, what: str, nbytes: int) -> Stretch:
        """Where the bytes of a tensor lie that needs so many.

        Raises ImportModelError for a place outside of folder or file.
        """
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        file = self._file(location, what)
        offset, length = (self._number(entries, key, what) for key in ("offset", "length"))
        name, begin = file.path.name, offset or 0
        count = file.size - begin if length is None else length
        if location == OWN and count != nbytes:
            raise ImportModelError(f"{what} claims {nbytes} bytes, and has {count}")
        if count != nbytes:
            raise ImportModelError(f"{what} needs {nbytes} bytes, and {count} of {name} are its own")
        if begin + count > file.size:
            raise ImportModelError(f"{what} claims {count} bytes from {begin} on of {name}, which has {file.size}")
        self.read[file.path] = self.read.get(file.path, 0) + count
        if self.read[file.path] > MOST_READ * file.size:
            raise ImportModelError(f"{what} lies in {name}, of whose {file.size} bytes tensors claim "
                                   f"more than {MOST_READ} times as many")
        return Stretch(file, begin, count, location in self.open)

    def _file(self, location: str, what: str) -> OpenFile:
        """The file of a location; it stays open where there are few."""
        if location in self.open:
            return self.open[location]
        path = self._path(location, what)
        try:
            file = OpenFile(path, f"{what} lies in {path.name}, which")
        except OSError as error:
            raise ImportModelError(f"{what} lies in {shown(path.name)}: {error.strerror or shown(error)}") from None
        if len(self.open) < MOST_OPEN:
            self.open[location] = file
        return file

    def _path(self, location: str, what: str) -> Path:
        parts = Path(location).parts
        if not location or "\0" in location or "\\" in location or Path(location).is_absolute() or ".." in parts:
            raise ImportModelError(f"{what} lies in {shown(repr(location))}, which is not inside of the model's folder")
        path = Path(os.path.realpath(self.folder / location))
        if self.folders.isdisjoint(path.parents):
            raise ImportModelError(f"{what} lies in {shown(repr(location))}, a link out of the model's folder")
        return path

    @staticmethod
    def _number(entries: dict[str, str], key: str, what: str) -> int | None:
        text = entries.get(key, "")
        if not text:
            return None
        if not text.isdecimal() or len(text) > 18:
            raise ImportModelError(f"{what} has the {key} {text[:40]!r}, not a number of bytes")
        return int(text)
