"""The rows of `benchmarks/kernels.py`: a family a file, an operator a class, a kernel a line."""
from __future__ import annotations

from types import ModuleType

from kernel_cases import (
    attention,
    convolutions,
    elements,
    layouts,
    low_bit,
    norms,
    places,
    pooling,
    products,
    reductions,
)
from kernel_cases.drawing import Draw
from kernel_cases.rows import Row

FAMILIES: dict[str, ModuleType] = {
    "products": products, "low_bit": low_bit, "convolutions": convolutions, "attention": attention, "norms": norms,
    "reductions": reductions, "elements": elements, "layouts": layouts, "pooling": pooling, "places": places,
}


def rows(families: list[str], extra: bool) -> list[tuple[str, Row]]:
    """(family, row) of the table; with those rows that are measured only when they are asked for."""
    return [(family, row) for family in families for row in FAMILIES[family].ROWS if extra or not row.extra]


def drawn(families: list[str], count: int, seed: int) -> list[tuple[str, Row]]:
    """Rows at random, of one family after the other; each is a function of the seed and its number."""
    return [(family, FAMILIES[family].draw(Draw(f"{seed} {number}")))
            for number in range(count) for family in [families[number % len(families)]]]
