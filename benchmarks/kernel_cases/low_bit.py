"""Products of int8 and bfloat16 matrices."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operand, Operator, Row, Shape


@dataclass(frozen=True)
class LowBitMatmul(Operator):
    """c = a @ b, or of b transposed, added up and given in the type `out`; bfloat16 is added up in float32."""
    a: str
    b: str
    out: str
    tb: bool = False
    numpy_is_peer = False

    @property
    def tolerance(self) -> float:                                    # type: ignore[override]
        return 2.0**-8 if self.out == "bfloat16" else 2e-5

    def te(self, topi: Any, a: Any, b: Any) -> Any:
        return topi.matmul(a, b, transpose_b=self.tb, out_dtype=self.out)

    def numpy(self, a: Any, b: Any) -> Any:
        return a.astype("float64") @ (b.T if self.tb else b).astype("float64")   # exact: sums below 2 ** 53

    def torch(self, torch: Any, a: Any, b: Any) -> Any:
        if self.out == "bfloat16":
            return torch.mm(a, b.T if self.tb else b)
        return torch._int_mm(a, b.T if self.tb else b) if self.a == self.b == "int8" else None

    def jax(self, jax: Any, a: Any, b: Any) -> Any:
        dims = (((1,), (1 if self.tb else 0,)), ((), ()))
        return jax.lax.dot_general(a, b, dims, preferred_element_type=self.out)

    def onnx(self, node: Any, a: str, b: str) -> Any:
        return node("MatMulInteger", a, node("Transpose", b, perm=(1, 0)) if self.tb else b)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        (m, _), b = shapes
        return [(m, b[0 if self.tb else 1])]

    def operations(self, *shapes: Shape) -> float:
        (m, k), b = shapes
        return 2.0 * m * k * b[0 if self.tb else 1]

    def text(self, *shapes: Shape) -> str:
        (m, k), b = shapes
        return f"matmul {m}x{k}x{b[0 if self.tb else 1]} {self.a} {self.b} {self.out}{' A.Bt' if self.tb else ''}"


KINDS = {"s8": ("int8", "int8", "int32"), "u8": ("uint8", "int8", "int32"), "bf16": ("bfloat16",) * 3}


def product(kind: str, m: int, k: int, n: int, tb: bool = False) -> Row:
    a, b, out = KINDS[kind]
    return Row(LowBitMatmul(a, b, out, tb), (Operand((m, k), a), Operand((n, k) if tb else (k, n), b)))


ROWS = [product(kind, m, k, n, tb) for kind in KINDS for m, k, n, tb in (
    (512, 512, 512, False), (1024, 1024, 1024, False), (1000, 784, 256, True), (128, 768, 3072, True),
    (1, 1024, 1024, True))]


def draw(random: Draw) -> Row:
    m, k, n = (random.extent(8, 1000) for _ in range(3))
    return product(random.choice(list(KINDS)), m, k, n, random.flag())
