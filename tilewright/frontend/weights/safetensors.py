"""Reads safetensors: a header in JSON, and behind it the elements of all tensors.

Source of the format: the documentation of safetensors.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.frontend.weights.files import DAMAGE, MOST_INDEX, content, damage, mapped, parsed
from tilewright.runtime.export import as_path
from tilewright.support.errors import ImportModelError
from tilewright.support.files import shown

MOST_HEADER = 100_000_000        # bytes, as the format has it
MOST_DIMENSIONS = 64             # as NumPy has it
TYPES: dict[str, Any] = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64,
    "I32": np.int32, "I16": np.int16, "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16,
    "U8": np.uint8, "BOOL": np.bool_, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}


def read_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    """The tensors of a file by name, read-only views of the file.

    path: a file, a `*.index.json` beside several, or a folder with either. The system ends a process that reads a view
    of a file which was cut off since. Raises ImportModelError for a file that is damaged, is of another format, or
    names a file outside of its folder.
    """
    path = as_path("read_safetensors", path)
    if path.is_dir():
        found = [p for p in (path / "model.safetensors.index.json", path / "model.safetensors") if p.is_file()]
        if not found:
            raise ImportModelError(f"{path}: the folder has no model.safetensors")
        path = found[0]
    return _parts(path) if path.name.endswith(".json") else _tensors(path)


def _parts(index: Path) -> dict[str, np.ndarray]:
    """The tensors of the files that an index names."""
    try:
        places = parsed(content(index, MOST_INDEX))["weight_map"]
        files = sorted(set(places.values()))
        outside = next((f for f in files if Path(f).name != f), None)
    except DAMAGE as why:
        raise ImportModelError(f"{index} is no index of safetensors: {damage(why)}") from None
    if outside is not None:
        raise ImportModelError(f"{index} names {shown(repr(outside))}, which is not a file of its folder")
    read = {f: _tensors(index.parent / f) for f in files}
    missing = next((name for name, f in places.items() if name not in read[f]), None)
    if missing is not None:
        raise ImportModelError(f"{index}: {shown(missing)} is not in {places[missing]}")
    return {name: read[f][name] for name, f in places.items()}


def _tensors(path: Path) -> dict[str, np.ndarray]:
    data = mapped(path)
    size = int.from_bytes(bytes(data[:8]), "little")
    if data.size < 8 or size > min(MOST_HEADER, data.size - 8):
        raise ImportModelError(f"{path} is no file of safetensors: {data.size} bytes, of which {size} would be header")
    try:
        rows = {name: row for name, row in parsed(bytes(data[8:8 + size])).items() if name != "__metadata__"}
        unread = {str(row["dtype"]) for row in rows.values()} - set(TYPES)
        if unread:
            raise ImportModelError(f"{path} has tensors of {shown(', '.join(sorted(unread)))}, which are not read",
                                   f"convert them to one of {', '.join(TYPES)}")
        _check_places([row["data_offsets"] for row in rows.values()], data.size - 8 - size)
        return {name: _tensor(data[8 + size:], row) for name, row in rows.items()}
    except DAMAGE as why:
        raise ImportModelError(f"{path} is damaged: {damage(why)}") from None


def _check_places(places: list[Any], size: int) -> None:
    """Raises ValueError unless the tensors lie one behind the other, and fill the size."""
    at = 0
    for begin, end in sorted((_natural(begin), _natural(end)) for begin, end in places):
        if begin != at or end < begin:
            raise ValueError(f"a tensor at bytes {begin} to {end}, behind one that ends at byte {at}")
        at = end
    if at != size:
        raise ValueError(f"tensors of {at} bytes, and the file has {size} for them")


def _natural(n: Any) -> int:
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"{n!r} is no number of elements or bytes")
    return n


def _tensor(data: np.ndarray, row: Mapping[str, Any]) -> np.ndarray:
    """A tensor of the header. Raises ValueError where the row does not fit the file."""
    if len(row["shape"]) > MOST_DIMENSIONS:
        raise ValueError(f"a tensor of {len(row['shape'])} dimensions")
    dtype, shape = TYPES[row["dtype"]], [_natural(n) for n in row["shape"]]
    begin, end = row["data_offsets"]
    if end - begin != math.prod(shape) * np.dtype(dtype).itemsize:
        raise ValueError(f"the shape {shape} of {row['dtype']} in {end - begin} bytes")
    return data[begin:end].view(dtype).reshape(shape)
