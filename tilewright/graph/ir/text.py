"""Parts of the text of graph functions: types, constants, attributes, and the lines of a function."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.graph.ir.types import TensorType, size_variables
from tilewright.runtime.dtypes import dtype_string
from tilewright.support.names import NameSupply, identifier
from tilewright.tir import Expr, IntImm, StringImm, Var
from tilewright.tir.functions import ModuleText
from tilewright.tir.printer.expressions import ExprPrinter, quote

CONSTANTS, OBJECTS = "relax.expr.Constant", "tilewright.object"
RESERVED = ("R", "T", "I", "cls", "metadata", "float")


def array_text(data: np.ndarray, module: ModuleText) -> str:
    """`R.const(2.0, "float32")` of one number, else where the module's text keeps the array."""
    if data.ndim == 0 and data.dtype.kind in "fiub":
        number = data.item()
        if not isinstance(number, float) or math.isfinite(number):
            return f'R.const({number!r}, "{dtype_string(data.dtype)}")'
    return module.entry(CONSTANTS, data)


class FunctionText:
    """The lines of one function: names of its values and sizes, types, attributes."""

    def __init__(self, module: ModuleText) -> None:
        self.module, self.lines, self.indent = module, list[str](), ""
        self.supply = NameSupply(RESERVED)
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []                            # what has a name, so that ids stay unique
        self.exprs = ExprPrinter()

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def define(self, thing: Any, name: str) -> str:
        """Give thing a name of its own."""
        self.kept.append(thing)
        if self.module.plain:
            name = f"v{len(self.kept)}"
        text = self.names[id(thing)] = self.supply.fresh(identifier(name))
        return text

    def define_sizes(self, variables: Iterable[Var]) -> None:
        for v in variables:
            if not self.exprs.names.knows(v):
                self.exprs.names.alias(v, self.define(v, v.name))

    def dim(self, d: Any, quoted: bool = False) -> str:
        """An extent; in the annotations of parameters one of variables is a text."""
        if isinstance(d, IntImm):
            d = d.value
        if not isinstance(d, Expr):
            return str(d)
        text = self.exprs.expr(d)
        return quote(text) if quoted else text

    def shape(self, dims: Sequence[Any], quoted: bool = False) -> str:
        parts = [self.dim(d, quoted) for d in dims]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"

    def type(self, t: TensorType, quoted: bool = False) -> str:
        return f'R.Tensor({self.shape(t.shape, quoted)}, dtype="{t.dtype}")'

    def types(self, types: Sequence[TensorType], quoted: bool = False) -> str:
        """The type of one result, or that of a tuple."""
        texts = [self.type(t, quoted) for t in types]
        return texts[0] if len(texts) == 1 else f"R.Tuple({', '.join(texts)})"

    def plain(self, x: Any, leaf: Callable[[Any], str | None] = lambda x: None) -> str:
        """An attribute as Python; `leaf` has the texts of what stands for values."""
        said = leaf(x)
        if said is not None:
            return said
        if isinstance(x, (list, tuple)):
            inner = ", ".join(self.plain(y, leaf) for y in x)
            return f"[{inner}]" if isinstance(x, list) else f"({inner},)" if len(x) == 1 else f"({inner})"
        if isinstance(x, Mapping):
            return "{" + ", ".join(f"{quote(str(k))}: {self.plain(v, leaf)}" for k, v in x.items()) + "}"
        if isinstance(x, (np.bool_, np.integer, np.floating)):
            x = x.item()
        if isinstance(x, float):
            return repr(x) if math.isfinite(x) else f'float("{x}")'
        if isinstance(x, (bool, int, type(None))):
            return repr(x)
        if isinstance(x, (str, StringImm)):
            return quote(x if isinstance(x, str) else x.value)
        if isinstance(x, Expr):
            self.define_sizes(size_variables([x]))
            return self.dim(x)
        return self.module.entry(OBJECTS, x)

    def header(self, name: str, params: Sequence[str], result: str, private: bool = False) -> None:
        self.line("@R.function(private=True)" if private else "@R.function")
        self.line(f"def {identifier(name)}({', '.join(params)}) -> {result}:")
        self.indent += "    "

    def cls(self) -> None:
        """`cls = Module`, where the text is that of a module."""
        if self.module.called:
            self.line(f"cls = {self.module.called}")
