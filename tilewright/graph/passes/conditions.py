"""What functions take for granted of the sizes of a call, which is refused where it does not hold."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.graph.ir.callees import Native, Operator
from tilewright.graph.ir.types import Dim, TensorType, same, size_variables
from tilewright.graph.ir.values import Function
from tilewright.graph.passes.views import is_view
from tilewright.runtime.dtypes import extent_limit
from tilewright.te.conditions import Condition
from tilewright.tir import Binary, Cast, Expr, IntImm, Var
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.conversion import convert
from tilewright.tir.node import same as same_node
from tilewright.tir.node import walk

_MOST = extent_limit("int32")    # of a size
_LOW, _HIGH = dt.integer_range("int32")


def state_conditions(function: Function) -> Function:
    """function with the attribute "conditions": reshapes keep the number of elements, where that is not known, and what
    rules state of sizes."""
    found = [Condition(binary("eq", wide(convert(x.elements)), wide(convert(y.elements))),
                       f"a reshape of {x} to {y} changes the number of elements")
             for c in function.calls if is_view(c.callee) for x, y in [(c.inputs[0].type, c.results[0].type)]
             if not same(x.elements, y.elements)]
    for c in function.calls:
        if isinstance(c.callee, Operator):
            traced = c.callee.traced(*(v.type for v in c.inputs))
            found += traced.conditions
            found += [e for made, typed in zip(traced.outputs, traced.types, strict=True)
                      for e in _as_typed(c.callee.name, made.shape, typed)]
    if not found:
        return function
    found = list({str(c.holds): c for c in found}.values())
    return function.replace(attrs={**function.attrs, "conditions": (*function.attrs.get("conditions", ()), *found)})


def conditions_of_types(types: Iterable[TensorType], made: Sequence[tuple[Native, Sequence[TensorType]]],
                        sizes: Sequence[Var]) -> list[Condition]:
    """No extent of the types leaves int32 on the way or is negative, and kernels, `made` with the types of their
    results, make results of these shapes: types are what they are for sizes of at least 1."""
    if not sizes:
        return []
    known = Analyzer()
    for v in sizes:
        known.bind(v, 0, _MOST)
    expressions = _expressions(types)
    found = [Condition(all_of(*within), f"the extent {d} is more than int32 holds") for d in expressions
             if (within := [e for e in _within(d) if not known.prove(e)])]
    natural = [(d, binary("ge", d, convert(0))) for d in expressions]
    found += [Condition(e, f"the extent {d} is negative") for d, e in natural if not known.prove(e)]
    found += [c for callee, results in made for c in _results_of(callee, results, sizes)]
    return list({str(c.holds): c for c in found}.values())


def _expressions(types: Iterable[TensorType]) -> list[Expr]:
    """The extents that are more than a variable, each once."""
    found: dict[object, Dim] = {TensorType((d,)).key: d for t in types for d in t.shape if isinstance(d, Expr)}
    return [d for d in found.values() if isinstance(d, Expr) and not isinstance(d, Var)]


def _within(d: Expr) -> list[Expr]:
    """That what an extent is made of is in the range of int32."""
    parts = [wide(e) for e in walk(d) if isinstance(e, Binary) and e.dtype == "int32"]
    return [binary(op, e, IntImm(limit, "int64")) for e in parts for op, limit in (("ge", _LOW), ("le", _HIGH))]


def wide(e: Expr) -> Expr:
    """An expression of sizes computed in int64."""
    match e:
        case IntImm(value):
            return IntImm(value, "int64")
        case Binary(op, a, b) if dt.is_integer(e.dtype):
            return binary(op, wide(a), wide(b))
        case Cast(_, value) if dt.is_integer(value.dtype):
            return wide(value)
    return Cast("int64", e) if e.dtype != "int64" else e


def _as_typed(name: str, made: Sequence[Any], typed: TensorType) -> Iterator[Condition]:
    """That what makes a result of some extents makes those of its type, where that is not known."""
    for a, b in ((convert(a), convert(b)) for a, b in zip(made, typed.shape, strict=True)):
        if same_node(a, b):
            continue
        known = Analyzer()
        for v in size_variables([a, b]):
            known.bind(v, 0, _MOST)
        known.assume(binary("ge", b, convert(0)))
        if not known.prove(binary("eq", a, b)):
            yield Condition(binary("eq", wide(a), wide(b)),
                            f"{name} makes {a} along a dimension of its result, and {b} is expected there")


def _results_of(callee: Native, results: Sequence[TensorType], sizes: Sequence[Var]) -> Iterator[Condition]:
    """That the function that was compiled writes results of these types."""
    func = callee.definition
    if func is None:
        return
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map][-len(results):]
    for b, t in zip(buffers, results, strict=True):
        if all(v in sizes for v in size_variables(b.shape)):
            yield from _as_typed(callee.name, b.shape, t)
