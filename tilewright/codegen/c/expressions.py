"""Operators, choices and constants."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.c import helpers
from tilewright.codegen.c.conversions import condition, convert_vector, negated
from tilewright.codegen.c.formulas import apply
from tilewright.codegen.c.printer import (
    AND,
    BITAND,
    BITOR,
    BITXOR,
    CHOICE,
    EQUALITY,
    EXPRESSIONS,
    OR,
    ORDER,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
    Printer,
    Text,
    call,
    prints,
    within,
)
from tilewright.codegen.c.types import float_literal, integer_literal, value_type
from tilewright.codegen.c.unit import c_string
from tilewright.codegen.ranges import formula_of, natural
from tilewright.formulas.integers import division
from tilewright.lowering.code_size import DIVISIONS
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.expr import (
    Binary,
    Broadcast,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Not,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Var,
)
from tilewright.tir.places import is_index

_PLAIN = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT), "bitand": ("&", BITAND),
          "bitor": ("|", BITOR), "bitxor": ("^", BITXOR), "shl": ("<<", SHIFT), "shr": (">>", SHIFT),
          **dict.fromkeys(("floordiv", "truncdiv"), ("/", PRODUCT)),
          **dict.fromkeys(("floormod", "truncmod"), ("%", PRODUCT))}
_COMPARE = {"eq": ("==", EQUALITY), "ne": ("!=", EQUALITY), "lt": ("<", ORDER), "le": ("<=", ORDER),
            "gt": (">", ORDER), "ge": (">=", ORDER)}
_LOGICAL = {"and": ("&&", AND, "&", BITAND), "or": ("||", OR, "|", BITOR)}


@prints(EXPRESSIONS, Var)
def print_var(p: Printer, e: Var) -> Text:
    name = p.names.get(e)
    if name is None:
        raise CodegenError(f"{p.name}: variable {e.name} is used where it is not defined")
    return Text(f"({value_type(e.dtype)}){name}", UNARY) if e in p.wide and e.dtype != "int64" else Text(name)


@prints(EXPRESSIONS, IntImm)
def print_int(p: Printer, e: IntImm) -> Text:
    return Text(integer_literal(e.value, e.type), UNARY)


@prints(EXPRESSIONS, FloatImm)
def print_float(p: Printer, e: FloatImm) -> Text:
    return Text(float_literal(e.value, e.type), UNARY)


@prints(EXPRESSIONS, StringImm)
def print_string(p: Printer, e: StringImm) -> Text:
    return Text(c_string(e.value))


@prints(EXPRESSIONS, Binary)
def print_binary(p: Printer, e: Binary) -> Text:
    """Any operator of tir.ops.BINARY."""
    dtype, op = e.a.dtype, e.op
    if op in _LOGICAL:
        scalar, level, vector, vector_level = _LOGICAL[op]
        if dt.lanes_of(dtype) == 1:
            return Text(f"{p.at(e.a, level)} {scalar} {p.at(e.b, level + 1)}", level)
        return Text(f"{p.at(e.a, vector_level)} {vector} {p.at(e.b, vector_level + 1)}", vector_level)
    if op in _BOOLS and dt.is_bool(dtype) and dt.lanes_of(dtype) > 1:
        return _of_conditions(p, e)
    if op in _COMPARE:
        sign, level = _COMPARE[op]
        text = Text(f"{p.at(e.a, level)} {sign} {p.at(e.b, level + 1)}", level)
        return text if dt.lanes_of(dtype) == 1 else condition(p, text, dtype)
    if op in ("min", "max"):
        return _extreme(p, op, p.expr(e.a), p.expr(e.b), dtype)
    formula = formula_of(p, e)
    if formula is not None:
        return apply(p, formula, p.expr(e.a), p.expr(e.b))
    return _plain(p, e) if dt.is_float(dtype) else _narrow(_plain(p, e), dtype)


def _plain(p: Printer, e: Binary) -> Text:
    sign, level = _PLAIN[e.op]
    if e.op == "sub" and isinstance(e.a, FloatImm) and e.a.value == 0 and str(e.a.value) == "-0.0":
        return negated(p.text(e.b))
    right = str(e.b.value) if level == SHIFT and isinstance(e.b, IntImm) else p.at(e.b, level + 1)
    return Text(f"{p.at(e.a, level)} {sign} {right}", level)


_BOOLS = {"min": "{a} & {b}", "max": "{a} | {b}", "eq": "~({a} ^ {b})", "ne": "{a} ^ {b}", "lt": "~{a} & {b}",
          "le": "~{a} | {b}", "gt": "{a} & ~{b}", "ge": "{a} | ~{b}"}


def _of_conditions(p: Printer, e: Binary) -> Text:
    """A comparison, minimum or maximum of conditions of several lanes, which are 0 and -1."""
    return Text(_BOOLS[e.op].format(a=p.at(e.a, 20), b=p.at(e.b, 20)), BITOR)


def _narrow(t: Text, dtype: str) -> Text:
    """t in its dtype: C computes with integers of less than 32 bits as int."""
    if dt.lanes_of(dtype) > 1 or dt.bits_of(dtype) >= 32:
        return t
    return Text(f"({value_type(dtype)}){within(t, UNARY)}", UNARY)


def _extreme(p: Printer, op: str, a: str, b: str, dtype: str) -> Text:
    """min or max; of floats NaN where one is."""
    type_, sign = p.unit.type(value_type(dtype)), "<" if op == "min" else ">"
    name = f"{op}_{type_.removesuffix('_t')}"
    is_float, lanes = dt.is_float(dtype), dt.lanes_of(dtype)
    test = f"a {sign} b" if not is_float else f"(a {sign} b) | (a != a)" if lanes > 1 else f"a {sign} b || a != a"
    if lanes > 1:
        chosen = f"{helpers.select(p.unit, type_)}({test}, a, b)"
    else:
        chosen = f"{test} ? a : b"
    return call(p.unit.helper(name, lambda: f"static inline {type_} {name}({type_} a, {type_} b) {{\n"
                              f"    return {chosen};\n}}"), a, b)


@prints(EXPRESSIONS, Not)
def print_not(p: Printer, e: Not) -> Text:
    return Text(f"{'!' if dt.lanes_of(e.dtype) == 1 else '~'}{p.at(e.a, UNARY)}", UNARY)


@prints(EXPRESSIONS, Select)
def print_select(p: Printer, e: Select) -> Text:
    return choose(p, e.condition, p.text(e.a), p.text(e.b), e.dtype)


def choose(p: Printer, test: Expr, a: Text, b: Text, dtype: str) -> Text:
    """a or b, lane by lane where the condition has lanes."""
    lanes = dt.lanes_of(dtype)
    if dt.lanes_of(test.dtype) == 1:
        return Text(f"{p.at(test, CHOICE + 1)} ? {within(a, CHOICE + 1)} : {within(b, CHOICE)}", CHOICE)
    type_, bits = p.unit.type(value_type(dtype)), 32 if dt.is_bool(dtype) else dt.bits_of(dtype)
    mask = convert_vector(p, p.text(test), f"i32x{lanes}", f"i{bits}x{lanes}")
    return call(helpers.select(p.unit, type_), mask.text, a.text, b.text)


@prints(EXPRESSIONS, Let)
def print_let(p: Printer, e: Let) -> Text:
    value = p.expr(e.value)
    name = p.bind(e.var)
    return Text(f"({{ const {p.unit.type(value_type(e.var.dtype))} {name} = {value}; {p.expr(e.body)}; }})")


@prints(EXPRESSIONS, Broadcast)
def print_broadcast(p: Printer, e: Broadcast) -> Text:
    value = p.at(e.value)
    if dt.is_bool(e.dtype):
        value = f"-(int32_t){p.at(e.value, UNARY)}"
    return call(helpers.splat(p.unit, value_type(e.dtype)), value)


@prints(EXPRESSIONS, Shuffle)
def print_shuffle(p: Printer, e: Shuffle) -> Text:
    parts, lanes = [p.expr(v) for v in e.vectors], dt.lanes_of(e.vectors[0].dtype)
    while len(parts) > 2:
        parts = [_shuffled([*parts[k:k + 2]], [*range(2 * lanes)]) for k in range(0, len(parts), 2)]
        lanes *= 2
    if len(e.indices) > 1:
        return Text(_shuffled(parts, e.indices))
    return Text(f"({parts[e.indices[0] // lanes]})[{e.indices[0] % lanes}]")


def _shuffled(parts: Sequence[str], indices: Sequence[int]) -> str:
    """Lanes of one or two vectors."""
    return f"__builtin_shufflevector({parts[0]}, {parts[-1]}, {', '.join(map(str, indices))})"


@prints(EXPRESSIONS, Ramp)
def print_ramp(p: Printer, e: Ramp) -> Text:
    return call(helpers.ramp(p.unit, value_type(e.dtype)), p.expr(e.base), p.expr(e.stride))


# ---- indices

def index(p: Printer, e: Expr) -> Text:
    """The index e, a scalar integer expression, as int64_t.

    Arithmetic on variables and constants is done in 64 bits and does not wrap; what is computed from data wraps in its
    own type.
    """
    if isinstance(e, IntImm):
        return Text(str(e.value) if abs(e.value) < 2**31 else f"INT64_C({e.value})", UNARY)
    if isinstance(e, Var) and (e in p.wide or e.dtype == "int64"):
        return Text(p.names.get(e) or p.expr(e))
    if isinstance(e, Binary) and (dt.bits_of(e.dtype) == 64 and not dt.is_unsigned(e.dtype) or is_index(e)):
        if e.op in ("add", "sub", "mul"):
            sign, level = _PLAIN[e.op]
            return Text(f"{within(index(p, e.a), level)} {sign} {within(index(p, e.b), level + 1)}", level)
        if e.op in DIVISIONS and isinstance(e.b, IntImm) and e.b.value > 0:
            if natural(p, e.a) or e.op.startswith("trunc"):
                sign = "/" if e.op.endswith("div") else "%"
                return Text(f"{within(index(p, e.a), PRODUCT)} {sign} {within(index(p, e.b), UNARY)}", PRODUCT)
            return apply(p, division(e.op, "int64", True, False), index(p, e.a).text, index(p, e.b).text)
        if e.op in ("min", "max") and not dt.is_unsigned(e.dtype):
            return _extreme(p, e.op, index(p, e.a).text, index(p, e.b).text, "int64")
    elif isinstance(e, Cast) and e.type == "int64" and is_index(e.value):
        return index(p, e.value)
    elif isinstance(e, Select):
        return Text(f"{p.at(e.condition, CHOICE + 1)} ? {within(index(p, e.a), CHOICE + 1)} : "
                    f"{within(index(p, e.b), CHOICE)}", CHOICE)
    return p.text(e) if e.dtype == "int64" else Text(f"(int64_t){p.at(e, UNARY)}", UNARY)
