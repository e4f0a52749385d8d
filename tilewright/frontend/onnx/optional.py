"""The onnx package, which only this folder needs."""
from __future__ import annotations

import importlib
from typing import Any

from tilewright.support.errors import ImportModelError


def onnx(module: str = "") -> Any:
    """The package, or one of its modules. Raises ImportModelError where it is not installed."""
    try:
        return importlib.import_module(f"onnx.{module}" if module else "onnx")
    except ImportError as error:
        raise ImportModelError(f"models in the ONNX format are read with the package onnx, which is missing: {error}",
                               "pip install 'tilewright[onnx]'") from None
