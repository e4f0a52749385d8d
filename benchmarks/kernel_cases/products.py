"""Products of float32 matrices, and of batches of them."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operator, Row, Shape, f32, joined


@dataclass(frozen=True)
class Matmul(Operator):
    """c[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]; ta, tb: a, b lie transposed."""
    ta: bool = False
    tb: bool = False

    def te(self, topi: Any, a: Any, b: Any) -> Any:
        return topi.matmul(a, b, transpose_a=self.ta, transpose_b=self.tb)

    def numpy(self, a: Any, b: Any) -> Any:
        return np.matmul(*self.upright(np.swapaxes, a, b))

    def torch(self, torch: Any, a: Any, b: Any) -> Any:
        return torch.matmul(*self.upright(torch.swapaxes, a, b))

    def jax(self, jax: Any, a: Any, b: Any) -> Any:
        return jax.numpy.matmul(*self.upright(jax.numpy.swapaxes, a, b))

    def onnx(self, node: Any, a: str, b: str) -> Any:
        if self.ta or self.tb:
            return node("FusedMatMul", a, b, transA=int(self.ta), transB=int(self.tb), domain="com.microsoft")
        return node("MatMul", a, b)

    def upright(self, swap: Any, a: Any, b: Any) -> tuple[Any, Any]:
        return swap(a, -1, -2) if self.ta else a, swap(b, -1, -2) if self.tb else b

    def extents(self, a: Shape, b: Shape) -> tuple[Shape, int, int, int]:
        """(batch, m, k, n)"""
        m, k = (a[-1], a[-2]) if self.ta else (a[-2], a[-1])
        return max(a[:-2], b[:-2], key=len), m, k, b[-2] if self.tb else b[-1]

    def shapes(self, *shapes: Shape) -> list[Shape]:
        batch, m, _, n = self.extents(*shapes)
        return [(*batch, m, n)]

    def operations(self, *shapes: Shape) -> float:
        batch, m, k, n = self.extents(*shapes)
        return 2.0 * math.prod(batch) * m * k * n

    def leading(self, *shapes: Shape) -> list[tuple[int, int]]:
        a, b = shapes
        return [(0, int(self.ta))] if len(a) == 2 else [(0, 0)] + ([(1, 0)] if len(b) == len(a) else [])

    def text(self, *shapes: Shape) -> str:
        batch, m, k, n = self.extents(*shapes)
        lying = f" {'At' if self.ta else 'A'}.{'Bt' if self.tb else 'B'}" if self.ta or self.tb else ""
        return f"matmul {joined((*batch, m, k, n))}{lying}"


def matmul(tag: str, *extents: int, ta: bool = False, tb: bool = False, shared: bool = False,
           extra: bool = False) -> Row:
    """The row of extents ..., m, k, n; shared: b has no batch."""
    *batch, m, k, n = extents
    a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
    return Row(Matmul(ta, tb), (f32(*batch, *a), f32(*(() if shared else batch), *b)), tag, extra)


def layer(tag: str, rows: int, inputs: int, outputs: int) -> list[Row]:
    """A dense layer: forward, and backward for its weight and its input."""
    return [matmul(f"{tag} forward", rows, inputs, outputs), matmul(f"{tag} dW", inputs, rows, outputs, ta=True),
            matmul(f"{tag} dX", rows, outputs, inputs, tb=True)]


ROWS = [
    *(matmul("square", n, n, n, extra=n > 2048) for n in (64, 128, 256, 512, 1024, 2048, 4096)),
    *layer("mlp", 1000, 784, 256), *layer("mlp", 1000, 256, 100), *layer("mlp", 1000, 100, 10),
    *(matmul("bert", *batch, 128, k, n, shared=True) for batch in ((), (1,))
      for k, n in ((768, 768), (768, 3072), (3072, 768))),
    *(matmul("gpt2", 1, 256, k, n, shared=True) for k, n in ((768, 2304), (768, 768), (768, 3072), (3072, 768))),
    matmul("gpt2 head", 1, 768, 50257, tb=True),
    *(matmul("convnext", rows, k, n) for rows, c in ((3136, 96), (784, 192), (196, 384), (49, 768))
      for k, n in ((c, 4 * c), (4 * c, c))),
    *(matmul("gemv", *extents, tb=tb) for extents in ((1, 1024, 1024), (1, 768, 3072), (1024, 1024, 1))
      for tb in ((False, True) if extents[0] == 1 else (False,))),
    matmul("skinny", 4096, 16, 4096), matmul("skinny", 16, 4096, 16), matmul("skinny", 8, 1024, 1024),
    matmul("skinny", 8, 1024, 1024, tb=True), matmul("skinny", 4096, 64, 32), matmul("skinny", 32, 64, 4096),
    *(matmul("odd", 333, 517, 791, ta=ta, tb=tb) for ta in (False, True) for tb in (False, True)),
    matmul("odd", 127, 127, 127), matmul("odd", 1021, 1021, 1021), matmul("odd", 67, 1009, 31),
    *(matmul("batched", 8, 256, 64, 256, ta=ta, tb=tb) for ta in (False, True) for tb in (False, True)),
    matmul("attention scores", 12, 128, 64, 128, tb=True), matmul("attention values", 12, 128, 128, 64),
    matmul("attention scores", 1, 12, 512, 64, 512, tb=True), matmul("attention values", 1, 12, 512, 512, 64),
    matmul("batched", 64, 32, 32, 32), matmul("batched", 512, 7, 11, 13),
]


def draw(random: Draw) -> Row:
    batch = (random.extent(2, 16),) if random.flag(0.3) else ()
    most = 400 if batch else 1500
    extents = [random.extent(4, most) for _ in range(3)]
    return matmul("drawn", *batch, *extents, ta=random.flag(0.25), tb=random.flag(0.35))
