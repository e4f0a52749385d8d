"""Matrices of which 32 elements of a row share a scale: int8, or two elements of four bits in a byte."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError

BLOCK = 32                       # elements of a row that share a scale
HALF = BLOCK // 2


@dataclass(frozen=True)
class Blocks:
    """A matrix [o, c] of bits bits an element: w[o, c] = scale[o, c / 32] * q[o, c].

    - 8 bits: numbers: int8[o, c], which are q.
    - 4 bits: numbers: uint8[o, c / 2]; byte j < 16 of a block has q + 8 of its element j in bits 0 to 3, and that of
      its element j + 16 in bits 4 to 7, so that a vector of bytes gives two vectors of elements that lie side by side.
      This is the order of Q4_0 in GGUF.

    scale: float32[o, c / 32].
    """
    bits: int
    numbers: np.ndarray
    scale: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        rows, blocks = self.scale.shape
        return rows, blocks * BLOCK

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes + self.scale.nbytes

    def dense(self) -> np.ndarray:
        """The elements: float32[o, c]."""
        rows, columns = self.shape
        if self.bits == 8:
            q = self.numbers.reshape(*self.scale.shape, BLOCK)
        else:
            pairs = self.numbers.reshape(*self.scale.shape, HALF)
            q = np.concatenate([pairs & 15, pairs >> 4], axis=2).astype(np.int8) - np.int8(8)
        return (q * self.scale[:, :, None]).reshape(rows, columns)


def quantized(w: np.ndarray, bits: int) -> Blocks:
    """The Blocks nearest to a matrix: float[o, c], 32 of whose columns share a scale.

    The scale is that of the greatest magnitude of a block: 127 steps for 8 bits, 7 for 4. Raises ArgumentError for
    other bits, and for columns that are no multiple of 32.
    """
    if bits not in (4, 8):
        raise ArgumentError(f"quantized: {bits} bits", "8 or 4")
    w = as_numpy(w)
    if w.ndim != 2 or w.shape[1] % BLOCK:
        raise ArgumentError(f"quantized: the shape {w.shape} is not that of a matrix of blocks of {BLOCK} columns")
    x = np.asarray(w, np.float32).reshape(w.shape[0], w.shape[1] // BLOCK, BLOCK)
    most = 127 if bits == 8 else 7
    scale = np.abs(x).max(axis=2) / np.float32(most)
    steps = np.divide(x, scale[:, :, None], out=np.zeros_like(x), where=scale[:, :, None] > 0)
    q = np.clip(np.rint(steps), -most, most).astype(np.int8)
    if bits == 8:
        return Blocks(8, q.reshape(w.shape), scale)
    low, high = (q + 8).astype(np.uint8).reshape(*scale.shape, 2, HALF).transpose(2, 0, 1, 3)
    return Blocks(4, (low | high << 4).reshape(w.shape[0], w.shape[1] // 2), scale)
