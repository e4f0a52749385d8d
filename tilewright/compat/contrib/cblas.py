"""`tvm.contrib.cblas`: products by a BLAS that the user names."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import te
from tilewright.runtime import Tensor, register_func
from tilewright.support import config
from tilewright.support.errors import ArgumentError
from tilewright.tir.expr import IntImm

_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED = 101, 111, 112
_FUNCTIONS = {"float32": ("cblas_sgemm", ctypes.c_float), "float64": ("cblas_dgemm", ctypes.c_double)}


def matmul(lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, *,
           library: str | Path | None = None, **kwargs: Any) -> te.Tensor:
    """C = op(lhs) @ op(rhs) of matrices of float32 or float64, by cblas_sgemm or cblas_dgemm of the library.

    library: its path; default: TILEWRIGHT_BLAS. None is looked for. kwargs: those of te.extern (name). The compiled
    function calls Python, which calls the library. Raises ArgumentError for a library that is not named or not there.
    """
    return _product("matmul", lhs, rhs, transa, transb, library, kwargs)


def batch_matmul(lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, iterative: bool = False, *,
                 library: str | Path | None = None, **kwargs: Any) -> te.Tensor:
    """C[b] = op(lhs[b]) @ op(rhs[b]), one product after the other; see `matmul`."""
    return _product("batch_matmul", lhs, rhs, transa, transb, library, kwargs)


def _product(what: str, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, library: str | Path | None,
             kwargs: dict[str, Any]) -> te.Tensor:
    rank = 2 if what == "matmul" else 3
    for x in (lhs, rhs):
        if len(x.shape) != rank:
            raise ArgumentError(f"{what}: {x.name} has {len(x.shape)} axes, expected {rank}")
    if lhs.dtype != rhs.dtype or lhs.dtype not in _FUNCTIONS:
        raise ArgumentError(f"{what}: the operands are {lhs.dtype} and {rhs.dtype}, expected float32 or float64 twice")
    m, k = lhs.shape[-2:][::-1] if transa else lhs.shape[-2:]
    k2, n = rhs.shape[-2:][::-1] if transb else rhs.shape[-2:]
    pairs = [(k, k2), *zip(lhs.shape[:-2], rhs.shape[:-2], strict=True)]
    for a, b in pairs:
        if isinstance(a, IntImm) and isinstance(b, IntImm) and a.value != b.value:
            raise ArgumentError(f"{what}: the operands' extents {a} and {b} differ")
    name = _registered(_named(what, library))
    flags = bool(transa), bool(transb)
    out: te.Tensor = te.extern((*lhs.shape[:-2], m, n), [lhs, rhs],
                               lambda ins, outs: te.call_packed(name, ins[0], ins[1], outs[0], *flags),
                               **{"name": "C", "dtype": lhs.dtype, **kwargs})
    return out


def _named(what: str, library: str | Path | None) -> str:
    path = library if library is not None else config.get("BLAS")
    if not path:
        raise ArgumentError(f"{what}: no BLAS is named",
                            'TILEWRIGHT_BLAS=/path/libopenblas.so, or library="/path/libopenblas.so"')
    return str(path)


@functools.cache
def _registered(path: str) -> str:
    """The name of the packed function that calls the library. Raises ArgumentError where it is no BLAS."""
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ArgumentError(f"the BLAS {path} cannot be loaded: {error}",
                            "library= or TILEWRIGHT_BLAS names it") from None
    products = {dtype: _gemm(loaded, path, *found) for dtype, found in _FUNCTIONS.items()}
    name = f"tvm.contrib.cblas.matmul:{path}"

    def call(a: Tensor, b: Tensor, c: Tensor, transa: bool, transb: bool) -> None:
        x, y, out = (np.asarray(t) for t in (a, b, c))     # views
        for array in (x, y, out):
            if not array.flags.c_contiguous:
                raise ArgumentError(f"{path}: an operand is not contiguous: its strides are {array.strides}")
        for one in np.ndindex(out.shape[:-2]):
            products[a.dtype](x[one], y[one], out[one], transa, transb)

    register_func(name, call, override=True)
    return name


def _gemm(loaded: ctypes.CDLL, path: str, symbol: str, number: Any) -> Callable[..., None]:
    """The product of two matrices by a function of the library, whose integers have 32 bits."""
    if not hasattr(loaded, symbol):
        raise ArgumentError(f"the BLAS {path} has no function {symbol}")
    function = loaded[symbol]
    integer, address = ctypes.c_int, ctypes.c_void_p
    function.argtypes = [integer] * 6 + [number, address, integer, address, integer, number, address, integer]
    function.restype = None

    def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, transa: bool, transb: bool) -> None:
        (m, n), k = c.shape, a.shape[0 if transa else 1]
        inner = b.shape[1 if transb else 0]
        if inner != k:
            raise ArgumentError(f"{symbol}: the operands' extents {k} and {inner} differ")
        if c.size:
            function(_ROW_MAJOR, _TRANSPOSED if transa else _AS_IT_IS, _TRANSPOSED if transb else _AS_IT_IS, m, n, k, 1,
                     a.ctypes.data, max(1, a.shape[1]), b.ctypes.data, max(1, b.shape[1]), 0, c.ctypes.data, n)
    return product
