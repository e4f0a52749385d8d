"""`te.hybrid.script`: a Python function with loops over elements as an operation on tensors, or run on arrays."""
from __future__ import annotations

import ast
import inspect
import math
import textwrap
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.hybrid.expressions import DTYPES
from tilewright.te.hybrid.statements import LOOPS, Parser
from tilewright.te.operation import ExternOp
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, decl_buffer

# What the names of the language mean when the function runs as Python.
_PYTHON: dict[str, Any] = {
    **dict.fromkeys((*LOOPS, "const_range"), range), "bind": lambda tag, extent: range(extent),
    "output_tensor": lambda shape, dtype="float32": np.zeros(shape, dtype),
    "allocate": lambda shape, dtype="float32", scope="global": np.zeros(shape, dtype),
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos", "floor", "ceil", "trunc")},
    "power": np.power, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": math.erf, "likely": lambda c: c, "ceil_div": lambda a, b: -(-a // b),
    "popcount": lambda x: _bits(x if isinstance(x, np.generic) else np.int32(x)),
    "max_num_threads": lambda allow_none=True: 1,
    **{name: dt.numpy_dtype(name).type for name in DTYPES},
}


def _bits(x: np.generic) -> int:
    """How many bits of an integer are 1; a negative one has those of its two's complement."""
    return int.from_bytes(x.tobytes(), "little").bit_count()


class HybridFunction:
    """A function of the hybrid language.

    Called with tensors it gives the tensors that it returns, written by one operation without axes of its own;
    called with arrays it runs as Python.
    """

    def __init__(self, function: types.FunctionType) -> None:
        self.function, self.__name__, self.__doc__ = function, function.__name__, function.__doc__
        try:
            lines, self.line = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise TensorExpressionError(f"hybrid {self.__name__}: its source text is not available",
                                        "define it in a file") from None
        try:
            tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except (SyntaxError, RecursionError, MemoryError) as why:
            raise self._unread(str(why)) from None
        if not isinstance(tree, ast.FunctionDef):
            raise self._unread("it is no plain `def`")
        self.tree = tree

    def _unread(self, why: str) -> TensorExpressionError:
        return TensorExpressionError(f"hybrid {self.__name__}, line {self.line}: the function cannot be read: {why}")

    def __call__(self, *args: Any) -> Any:
        try:
            bound = inspect.signature(self.function).bind(*args)
        except TypeError as why:
            raise TensorExpressionError(f"hybrid {self.__name__}: {why}") from None
        bound.apply_defaults()
        if not any(isinstance(a, Tensor) for a in _flat(args)):
            return self._python()(*args)
        tensors = [a for a in _flat(args) if isinstance(a, Tensor)]
        buffers = {t: decl_buffer(t.shape, t.dtype, t.name) for t in tensors}
        known = inspect.getclosurevars(self.function)
        parser = Parser(self.__name__, self.line, {**known.globals, **known.nonlocals})
        try:
            body = parser.run(self.tree, {k: _replaced(v, buffers) for k, v in bound.arguments.items()})
        except RecursionError:
            raise self._unread("it is nested too deeply, or calls itself") from None
        assert parser.returned is not None
        unused = next((b for b in parser.outputs if not any(b is r for r in parser.returned)), None)
        if unused is not None:
            raise TensorExpressionError(f"hybrid {self.__name__}: an output_tensor is not returned")
        op = ExternOp(self.__name__, tuple(buffers), tuple(buffers.values()), tuple(parser.returned), body)
        return op.outputs if len(op.outputs) > 1 else op.outputs[0]

    def _python(self) -> Callable[..., Any]:
        """The function with the names of the language."""
        f = self.function
        return types.FunctionType(f.__code__, {**_PYTHON, **f.__globals__}, f.__name__, f.__defaults__, f.__closure__)


def script(function: Callable[..., Any]) -> HybridFunction:
    """Decorator: a function in TVM's hybrid language.

    Its body has loops over `range`, `serial`, `parallel`, `vectorize`, `unroll`, `const_range` (repeated when it is
    read) and `bind(tag, extent)`, `if`, `while`, assignments, `output_tensor(shape, dtype)`,
    `allocate(shape, dtype, scope)`, arithmetic, mathematical functions and casts such as `float32(x)`. It returns its
    outputs. A name that is assigned once is a value; one that changes is a variable of the block of its first
    assignment. Raises TensorExpressionError, with the line, for anything else.
    """
    if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
        raise TensorExpressionError(f"hybrid.script takes a function, got {described(function)}")
    return HybridFunction(function)


def _flat(values: Any) -> list[Any]:
    return [x for v in values for x in (_flat(v) if isinstance(v, (list, tuple)) else [v])]


def _replaced(value: Any, buffers: dict[Tensor, Buffer]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_replaced(v, buffers) for v in value)
    return buffers[value] if isinstance(value, Tensor) else value
