"""A tiled matmul through all passes: same numbers, registers-friendly text, one tail per axis."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scheduled_programs import tiled_matmul

from tilewright.lowering import PASSES, lower
from tilewright.tir.expr import Var
from tilewright.tir.interp import run
from tilewright.tir.stmt import PrimFunc


def check_matmul(func: PrimFunc, m: int, n: int, k: int, **how: Any) -> None:
    rng = np.random.default_rng(m * 1000 + n * 10 + k)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, "float32")
    run(func, a, b, c, **how)
    np.testing.assert_allclose(c, a.astype("float64") @ b.astype("float64"), rtol=1e-4, atol=1e-4)


SMALL = {"tm": 3, "tn": 4, "tk": 2}
SHAPES = [(6, 8, 4), (7, 8, 4), (6, 9, 4), (6, 8, 5), (7, 10, 5), (1, 1, 1), (2, 3, 1), (8, 5, 7)]
VARIANTS: list[dict[str, Any]] = [{}, {"pack": False}, {"vec": 2}, {"fused": True}, {"parallel": False},
                                  {"fused": True, "vec": 2}]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", VARIANTS)
def test_lowered_matmul_computes_the_product(shape: tuple[int, int, int], how: dict[str, Any]) -> None:
    check_matmul(lower(tiled_matmul(*shape, **SMALL, **how)), *shape)
    check_matmul(lower(tiled_matmul(*shape, **SMALL, **how), simple_mode=True), *shape)


@pytest.mark.parametrize("how", [{}, {"pack": False}, {"vec": 2}, {"fused": True}, {"parallel": False}])
def test_one_symbolic_function_serves_all_shapes(how: dict[str, Any]) -> None:
    func = lower(tiled_matmul(Var("m"), Var("n"), Var("k"), **SMALL, **how))
    for shape in [(6, 8, 4), (7, 10, 5), (1, 1, 1), (2, 3, 1), (12, 5, 7)]:
        check_matmul(func, *shape)


@pytest.mark.parametrize("how", [{}, {"fused": True, "vec": 2}])
def test_every_pass_keeps_the_meaning(how: dict[str, Any]) -> None:
    func = tiled_matmul(7, 10, 5, **SMALL, **how)
    for p in PASSES:
        func = p.run(func)
        if p.name != "lower_reduction_init":
            check_matmul(func, 7, 10, 5)


def test_the_interior_tile_is_constant_indexed_vectors_without_guards() -> None:
    text = str(lower(tiled_matmul(64, 64, 64)))
    assert "likely" not in text and " if " not in text and "Select" not in text
    step = "C_local[0:32] = C_local[0:32] + T.Broadcast(A_1[io * 512 + ko * 4 + ki], 32) * P["
    assert text.count(step) == 1
    assert "for ii" not in text and "predicate" not in text
    assert text.count("C_local[224:256] =") == 2


@pytest.mark.parametrize("shape", [(67, 64, 64), (64, 70, 64), (64, 64, 66), (67, 70, 66)])
def test_ragged_axes_add_one_tail_each(shape: tuple[int, int, int]) -> None:
    whole = str(lower(tiled_matmul(64, 64, 64, parallel=False)))
    ragged = str(lower(tiled_matmul(*shape, parallel=False)))
    axes = sum(a != b for a, b in zip(shape, (64, 64, 64), strict=True))
    assert ragged.count("\n") < whole.count("\n") * (1.6 + 1.4 * axes)
