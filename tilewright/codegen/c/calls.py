"""Calls: functions of the operator table, C functions, hints."""
from __future__ import annotations

import hashlib

from tilewright.codegen.c import helpers
from tilewright.codegen.c.conversions import convert, convert_vector, to_memory
from tilewright.codegen.c.expressions import choose, index
from tilewright.codegen.c.formulas import elementary
from tilewright.codegen.c.memory import address
from tilewright.codegen.c.printer import (
    CALLS,
    EQUALITY,
    EXPRESSIONS,
    UNARY,
    Printer,
    Text,
    call,
    prints,
    within,
)
from tilewright.codegen.c.types import stored_dtype, value_type
from tilewright.codegen.c.unit import c_string
from tilewright.codegen.packed_calls import packed_call
from tilewright.codegen.queries import c_function, flat_index, loads_or_calls
from tilewright.formulas import FUNCTIONS, formula_of
from tilewright.lowering.messages import readable
from tilewright.support.errors import CodegenError, with_hint
from tilewright.support.names import identifier
from tilewright.tir import dtype as dt
from tilewright.tir.assertion import failure
from tilewright.tir.buffer import Load
from tilewright.tir.constant_table import array_of
from tilewright.tir.conversion import cast
from tilewright.tir.expansion import expanded
from tilewright.tir.expr import Call, Expr, StringImm
from tilewright.tir.ops import INTRINSICS

# functions of <math.h> that compute the rows, of one operand or two
_LIBRARY = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint", "nearbyint": "rint",
            "copysign": "copysign", "fma": "fma", "fmod": "fmod"}


@prints(EXPRESSIONS, Call)
def print_call(p: Printer, e: Call) -> Text:
    """A call of any row of tir.ops.INTRINSICS."""
    rule = CALLS.get(e.op)
    if rule is not None:
        return rule(p, e)
    if e.op in _LIBRARY:
        return _library(p, _LIBRARY[e.op], e.dtype, e.args)
    if e.op in FUNCTIONS:
        name, args = formula_of(e)
        return elementary(p, name, e.dtype, *map(p.expr, args))
    if INTRINSICS[e.op].expansion is not None:
        return p.text(expanded(e))
    raise CodegenError(with_hint(f"{p.name}: the function {e.op} has no form in C", 'build for "llvm"'))


def _library(p: Printer, name: str, dtype: str, args: tuple[Expr, ...]) -> Text:
    scalar = f"__builtin_{name}{'' if dt.element_of(dtype) == 'float64' else 'f'}"
    if dt.lanes_of(dtype) > 1:
        scalar = helpers.lanewise(p.unit, scalar, value_type(dtype), len(args))
    return call(scalar, *map(p.expr, args))


@prints(CALLS, "abs")
def print_abs(p: Printer, e: Call) -> Text:
    dtype = e.dtype
    if dt.is_float(dtype):
        return _library(p, "fabs", dtype, e.args)
    if not dt.is_signed(dtype):
        return p.text(e.args[0])
    type_ = p.unit.type(value_type(dtype))
    name = f"abs_{type_.removesuffix('_t')}"
    lanes = dt.lanes_of(dtype)
    value = f"{helpers.select(p.unit, type_)}(x < 0, -x, x)" if lanes > 1 else f"({type_})(x < 0 ? -x : x)"
    p.unit.helper(name, lambda: f"static inline {type_} {name}({type_} x) {{\n    return {value};\n}}")
    return call(name, p.expr(e.args[0]))


@prints(CALLS, "popcount", "clz")
def print_bits(p: Printer, e: Call) -> Text:
    dtype = e.args[0].dtype
    element, bits, lanes = dt.element_of(dtype), dt.bits_of(dtype), dt.lanes_of(dtype)
    scalar = value_type(element)
    name = f"{e.op}_{scalar.removesuffix('_t')}"
    value = "__builtin_popcountll((uint64_t)x)" if e.op == "popcount" else (
        f"x == 0 ? {bits} : __builtin_clzll((uint64_t)x) - {64 - bits}")
    p.unit.helper(name, lambda: f"static inline {scalar} {name}(u{element.removeprefix('u')}_t x) {{\n"
                  f"    return ({scalar})({value});\n}}")
    name = name if lanes == 1 else helpers.lanewise(p.unit, name, p.unit.type(value_type(dtype)), 1)
    text = call(name, p.expr(e.args[0]))
    return text if e.dtype == dtype else convert(p, text, dtype, e.dtype)


@prints(CALLS, "bitwise_not")
def print_bitwise_not(p: Printer, e: Call) -> Text:
    type_ = value_type(e.dtype)
    text = Text(f"~{p.at(e.args[0], UNARY)}", UNARY)
    if dt.is_bool(e.dtype):
        return Text(f"!{p.at(e.args[0], UNARY)}", UNARY) if dt.lanes_of(e.dtype) == 1 else text
    return text if dt.lanes_of(e.dtype) > 1 else Text(f"({type_}){text.text}", UNARY)


@prints(CALLS, "likely")
def print_likely(p: Printer, e: Call) -> Text:
    """The condition: in C the bounds that it compares are no overflow."""
    return p.text(e.args[0])


@prints(CALLS, "inside")
def print_inside(p: Printer, e: Call) -> Text:
    """The lanes whose index is inside. The first that is outside leaves a message."""
    mask, at, extent, text = e.args
    assert isinstance(text, StringImm)
    form, lanes = c_string(text.value), dt.lanes_of(e.type)
    if lanes == 1:
        return call(helpers.inside(p.unit, p.name), index(p, at).text, index(p, extent).text, form)
    wide = convert_vector(p, p.text(at), value_type(at.dtype), f"i64x{lanes}").text
    return call(helpers.lanes_inside(p.unit, p.name, lanes), wide, index(p, extent).text, p.expr(mask), form)


@prints(CALLS, "no_fault")
def print_no_fault(p: Printer, e: Call) -> Text:
    return Text(f"__atomic_load_n(&{helpers.fault_of(p.unit, p.name)}->message, __ATOMIC_RELAXED) == NULL", EQUALITY)


@prints(CALLS, "some")
def print_some(p: Printer, e: Call) -> Text:
    return call(helpers.any_lane(p.unit, dt.lanes_of(e.args[0].dtype)), p.expr(e.args[0]))


@prints(CALLS, "if_then_else")
def print_if_then_else(p: Printer, e: Call) -> Text:
    """Only the chosen side is evaluated: C's own choice."""
    test, a, b = e.args
    if dt.lanes_of(test.dtype) > 1 and (loads_or_calls(a) or loads_or_calls(b)):
        raise CodegenError(f"{p.name}: a choice on vectors reads for some lanes only: {e}")
    return choose(p, test, p.text(a), p.text(b), e.dtype)


@prints(CALLS, "reinterpret")
def print_reinterpret(p: Printer, e: Call) -> Text:
    """The bits of the operand as a type of the same size, also of another number of lanes."""
    source, target = e.args[0].dtype, e.type
    x, from_, to = p.text(e.args[0]), p.unit.type(value_type(source)), p.unit.type(value_type(target))
    if from_ == to:
        return x
    if dt.lanes_of(source) > 1 and dt.lanes_of(target) > 1:
        return Text(f"({to}){within(x, UNARY)}", UNARY)
    return call(helpers.reinterpret(p.unit, to, from_), x.text)


@prints(CALLS, "table")
def print_table(p: Printer, e: Call) -> Text:
    """An element of a constant array; at an index that is none of it, the last one."""
    data = e.args[0]
    assert isinstance(data, StringImm)
    element, lanes = dt.parse(e.type)
    values = array_of(data.value, element)
    scalar = value_type(element)
    raw = ", ".join(v.hex() if dt.is_float(element) and v == v and abs(v) != float("inf") else _number(v)
                    for v in values.tolist())
    name = f"table_{hashlib.blake2b(f'{element} {data.value}'.encode(), digest_size=4).hexdigest()}"
    p.unit.data(name, f"static const {scalar} {name}[{len(values)}] = {{{raw}}};")
    one = p.unit.helper(f"at_{name}", lambda: f"static inline {scalar} at_{name}(int64_t i) {{\n"
                        f"    return {name}[(uint64_t)i < {len(values)}u ? i : {len(values) - 1}];\n}}")
    if lanes == 1:
        return call(one, index(p, e.args[1]).text)
    at = p.unit.type(value_type(e.args[1].dtype))
    vector = p.unit.type(value_type(e.type))
    each = f"each_{name}_{vector}_{at}"
    p.unit.helper(each, lambda: f"static inline {vector} {each}({at} i) {{\n    {vector} v;\n"
                  f"    for (int k = 0; k < {lanes}; ++k) v[k] = {one}(i[k]);\n    return v;\n}}")
    return call(each, p.expr(e.args[1]))


def _number(v: float) -> str:
    if isinstance(v, float):
        return "__builtin_nan(\"\")" if v != v else f"{'-' if v < 0 else ''}__builtin_inf()"
    return "INT64_MIN" if v == -1 << 63 else f"{v}{'u' if v >= 1 << 63 else ''}"


@prints(CALLS, "assume")
def print_assume(p: Printer, e: Call) -> Text:
    p.line(f"if (!({p.expr(e.args[0])})) __builtin_unreachable();")
    return Text("(void)0")


@prints(CALLS, "ret")
def print_ret(p: Printer, e: Call) -> Text:
    """Leaves the value, in 64 bits, where the packed entry asks for it."""
    value = e.args[0]
    wide = "float64" if dt.is_float(value.dtype) else "int64"
    own = p.fresh("returned")
    p.line(f"{value_type(wide)} {own} = {p.expr(cast(wide, value))};")
    p.line(f"memcpy({p.result}, &{own}, 8);")
    return Text("(void)0")


@prints(CALLS, "Assert")
def print_assert(p: Printer, e: Call) -> Text:
    """Leaves the message of the first one that fails for the packed entry, which raises it, and returns."""
    text = f"{p.name}: {failure(e.args[1], readable(e.args[0]))}"
    with p.block(f"if (!{p.at(e.args[0], UNARY)})"):
        p.line(f"{helpers.record(p.unit)}({helpers.fault_of(p.unit, p.name)}, {c_string(text)});")
        for where in reversed(p.held):
            p.line(f"tw_free({where});")
        p.line("return;")
    return Text("(void)0")


@prints(CALLS, "prefetch")
def print_prefetch(p: Printer, e: Call) -> Text:
    return call("__builtin_prefetch", _address_of(p, e, e.args[0]), "0", "3")


@prints(CALLS, "access_ptr")
def print_access_ptr(p: Printer, e: Call) -> Text:
    """The address of an element: access_ptr(Load)."""
    return Text(_address_of(p, e, e.args[0]), 17)


def _address_of(p: Printer, outer: Call, e: Expr) -> str:
    if isinstance(e, Load) and dt.lanes_of(e.dtype) == 1:
        return address(p, e.buffer, flat_index(p.name, e.buffer, e.indices))
    if e.dtype == "handle" and not isinstance(e, StringImm):
        return p.expr(e)
    raise CodegenError(with_hint(f"{p.name}: {outer.op} takes an element of a buffer, got {e}", "write A[i]"))


@prints(CALLS, "call_packed")
def print_packed(p: Printer, e: Call, used: bool = True) -> Text:
    return p.text(packed_call(p.name, e, used, p.in_parallel))


@prints(CALLS, "array")
def print_array(p: Printer, e: Call) -> Text:
    first = e.args[0].dtype
    if len(e.args) == 1 and first not in ("handle", "int64"):
        type_ = p.unit.type(value_type(stored_dtype(first)))
        return Text(f"(({type_}[]){{{to_memory(p, p.text(e.args[0]), first).text}}})", UNARY)
    words = [f"(int64_t){p.at(a, UNARY)}" if a.dtype == "handle" else p.at(a) for a in e.args]
    return Text(f"((int64_t[]){{{', '.join(words)}}})", UNARY)


@prints(CALLS, "fault")
def print_fault(p: Printer, e: Call) -> Text:
    return Text(helpers.fault_of(p.unit, p.name))


@prints(CALLS, "call_extern")
def print_extern(p: Printer, e: Call) -> Text:
    """A C function: arguments by their dtypes, floats of 16 and 8 bits are refused, the result e.dtype."""
    symbol, arguments = c_function(p.name, e)
    types, name = [value_type(a.dtype) for a in arguments], f"c_{identifier(symbol)}"
    result = "uint8_t" if e.dtype == "bool" else value_type(e.dtype)
    wanted = f"{result} {name}({', '.join(types) or 'void'}) __asm__(\"{symbol}\");"
    known = p.unit.declared(symbol)
    if known is not None and known != wanted:
        raise CodegenError(f"{p.name}: {symbol} is called as `{wanted}` and elsewhere as `{known}`")
    p.unit.declare(symbol, wanted)
    value = call(name, *[f"({t}){p.at(a, UNARY)}" for t, a in zip(types, arguments)])
    return Text(f"{value.text} != 0", EQUALITY) if e.dtype == "bool" else value
