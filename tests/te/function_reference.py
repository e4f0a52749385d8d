"""The list of te's functions. `python -m tests.te.function_reference` writes docs/te_functions.md."""
from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from tests.schedule.reference import first_sentence
from tilewright import te
from tilewright.tir.ops import INTRINSICS

PAGE = Path(__file__).parents[2] / "docs" / "te_functions.md"

INTRODUCTION = """# The functions of te

Written by `python -m tests.te.function_reference` from the table of operators (`tilewright/tir/ops.py`), which has the
bounds that tests hold, and docstrings. Everything here is `te.NAME`; `T.NAME` of a
[script](script.md) is the same for functions of numbers.

Two operands of different types become one type: a float where one is a float, the wider of two. A Python number takes
the type of the other operand, and is refused where that cannot hold it. Floats are `float16`, `bfloat16`, `float32` and
`float64`; those of 8 bits are for storage. A function of a float of 16 bits is computed in `float32` and rounded once.
Integers wrap where a result does not fit; `//` and `%` are those of Python, `te.div`, `te.truncdiv` and `te.truncmod`
those of C.

Accuracy is the largest distance from the exact result, in units of the last place, that a test allows on processors
with fused multiply-adds: 0.5 is correctly rounded, 0 exact. On those without, up to 1 more.
"""

POWERS = ("exp10", "power")                          # te makes them of `pow`
OPERATORS = (
    ("`a + b`, `a - b`, `a * b`, `-a`", "numbers", "sum, difference, product, negative; floats are rounded once, and "
     "`a * b + c` may become one fused multiply-add (not with `TILEWRIGHT_STRICT_MATH=1`)"),
    ("`a / b`", "floats", "the quotient; refused for integers: `//`, `te.div` or a conversion says what is meant"),
    ("`a // b`, `a % b`", "numbers", "`te.floordiv` and `te.floormod`"),
    ("`a ** b`", "floats", "`te.power`"),
    ("`a < b`, `<=`, `>`, `>=`, `==`, `!=`", "numbers", "a bool; False where one is NaN, but for `!=`"),
    ("`a & b`, `a | b`, `a ^ b`, `~a`", "integers, bools", "bit by bit; of bools: and, or, exclusive or, not"),
    ("`a << b`, `a >> b`", "integers", "shifts; `>>` keeps the sign of signed integers"),
    ("`x.astype(dtype)`", "any", "`te.cast`"),
)
FAMILIES: dict[str, tuple[str, ...]] = {
    "Arithmetic and choices": (
        "div", "floordiv", "floormod", "truncdiv", "truncmod", "ceildiv", "minimum", "maximum", "if_then_else",
        "select", "all", "any", "logical_not", "likely"),
    "Constants and conversions": (
        "const", "cast", "saturate_cast", "reinterpret", "infinity", "min_value", "max_value", "pack_int4",
        "unpack_int4"),
    "Reductions": ("sum", "prod", "max", "min", "comm_reducer", "reduce_axis"),
    "Definitions": (
        "placeholder", "constant", "compute", "scan", "extern", "var", "size_var", "create_schedule",
        "create_prim_func", "lower_ops", "post_order", "thread_axis", "tag_scope"),
    "Instructions and foreign functions": (
        "decl_tensor_intrin", "call_packed", "call_extern", "call_llvm_pure_intrin", "call_llvm_intrin"),
    "Kinds of nodes": (
        "Tensor", "Operation", "PlaceholderOp", "ConstantOp", "ComputeOp", "TensorComputeOp", "ScanOp", "ExternOp",
        "IterVar", "Range", "Var", "Reduce", "Reducer", "CommReducer", "Select", "TensorIntrin",
        "TensorRead", "TensorSlice"),
}
OTHERS = {"AXIS_SEPARATOR": "in the result of `transform_layout`: the axes before it and behind it are flattened apart"}
REDUCTIONS = {"sum": "the sum of the terms, from 0, or from `init=`; `where=` leaves terms out",
              "prod": "the product of the terms, from 1",
              "max": "the largest term, from `te.min_value`; of two scalars, `te.maximum`",
              "min": "the smallest term, from `te.max_value`; of two scalars, `te.minimum`"}


def of_floats() -> list[str]:
    """The functions of floats, the table's first and then those that te makes of them."""
    return [name for name, row in INTRINSICS.items() if row.operands == "float"]


def call(name: str) -> str:
    """The call as it is written."""
    if name in INTRINSICS and INTRINSICS[name].arity > 0 and INTRINSICS[name].meaning:
        return f"te.{name}({'x' if INTRINSICS[name].arity == 1 else ', '.join('abc'[:INTRINSICS[name].arity])})"
    fn = getattr(te, name)
    if name in REDUCTIONS:
        return f"te.{name}(e, axis=k)"
    if inspect.isclass(fn):
        return f"te.{name}"
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(fn).parameters.values()]
    return f"te.{name}({', '.join(map(str, parameters))})"


def accuracy(name: str) -> str:
    """The bounds in float32 and float64."""
    found = INTRINSICS["pow" if name in POWERS else name].ulp
    if found is None:
        return ""
    return f"{found[0]:g}" if found[0] == found[1] else f"{found[0]:g} in float32, {found[1]:g} in float64"


def meaning(name: str) -> str:
    if name in REDUCTIONS:
        return REDUCTIONS[name]
    fn: Any = getattr(te, name)
    return first_sentence(inspect.getdoc(fn) or "").rstrip(".")


def escaped(text: str) -> str:
    return text.replace("|", "&#124;")


def page() -> str:
    parts = [INTRODUCTION, "## Operators\n\n| operator | of | gives |\n| --- | --- | --- |\n" + "\n".join(
        f"| {escaped(op)} | {of} | {gives} |" for op, of, gives in OPERATORS)]
    numbers = ["## Functions of floats", "", "| call | gives | accuracy |", "| --- | --- | --- |"]
    numbers += [f"| `{call(name)}` | {escaped(INTRINSICS[name].meaning)} | {accuracy(name)} |" for name in of_floats()]
    numbers += [f"| `{call(name)}` | {escaped(meaning(name))} | {accuracy(name)} |" for name in POWERS]
    parts.append("\n".join(numbers))
    integers = ["## Functions of integers, and of both", "", "| call | of | gives |", "| --- | --- | --- |"]
    integers += [f"| `{call(name)}` | integers | {escaped(row.meaning)} |" for name, row in INTRINSICS.items()
                 if row.operands == "integer"]
    integers += [f"| `{call(name)}` | numbers | {escaped(meaning(name))} |" for name in ("abs", "fabs")]
    integers += ["| `te.floor`, `te.ceil`, `te.trunc`, `te.round`, `te.nearbyint` | integers | the integer itself |"]
    parts.append("\n".join(integers))
    for title, names in FAMILIES.items():
        rows = [f"## {title}", "", "| call | gives |", "| --- | --- |"]
        parts.append("\n".join([*rows, *(f"| `{call(name)}` | {escaped(meaning(name))} |" for name in names)]))
    parts.append("\n".join(["## Other names", "", "| name | meaning |", "| --- | --- |",
                            *(f"| `te.{name}` | {text} |" for name, text in OTHERS.items())]))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(te.__all__)} names")
