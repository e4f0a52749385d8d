"""The table of ATen operators: a row is a function that emits what an operator computes, entered by its name."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """An operator: its name ("aten.add.Tensor"), its row, and the module of its family."""
    name: str
    row: Row
    family: str

    @property
    def text(self) -> str:
        """What the operator becomes, in a sentence."""
        return (inspect.getdoc(self.row) or "").partition("\n\n")[0].replace("\n", " ")


OPERATORS: dict[str, Entry] = {}


def operator(*names: str) -> Callable[[Row], Row]:
    """Enter a function as the row of operators: `row(e, *arguments)`, with the arguments of ATen's schema.

    A name without an overload, such as "relu", is that of the overload "default"; "prims." stands before names of
    PyTorch's primitives. Tensors are Values, sizes are
    numbers or expressions of size variables. A row gives a Value, a number, or a tuple of them; None in a tuple is a
    result that nothing may read. What is of another dtype than PyTorch says is converted behind the row.
    """
    def enter(row: Row) -> Row:
        for name in names:
            full = name if name.startswith("prims.") else f"aten.{name}"
            full = full if full.count(".") > 1 else f"{full}.default"
            assert full not in OPERATORS, f"{full} has two rows"
            OPERATORS[full] = Entry(full, row, row.__module__.rsplit(".", 1)[-1])
        return row
    return enter
