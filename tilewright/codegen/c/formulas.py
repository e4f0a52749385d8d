"""Formulas as static inline functions."""
from __future__ import annotations

from tilewright.codegen.c.helpers import any_lane
from tilewright.codegen.c.printer import CALLS, SHIFT, UNARY, Printer, Text, call, prints
from tilewright.codegen.c.types import value_type, vector_of
from tilewright.codegen.c.unit import Unit
from tilewright.formulas import Assign, Cpu, Formula, Rare, formula
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Call, Cast

# Operations of formulas are computed as they are written. Other compilers are told by -ffp-contract=off.
_EXACT = """\
#if defined(__GNUC__) && !defined(__clang__)
#define TILEWRIGHT_EXACT __attribute__((optimize("fp-contract=off")))
#else
#define TILEWRIGHT_EXACT
#endif"""
_BARE = {"truncdiv": "/", "truncmod": "%", "shl": "<<", "shr": ">>"}


def apply(p: Printer, f: Formula, *arguments: str) -> Text:
    """A call of the function of a formula of one result."""
    return call(function_of(p.unit, f), *arguments)


def elementary(p: Printer, name: str, dtype: str, *arguments: str) -> Text:
    """A function of formulas.FUNCTIONS on float32, float64 or a vector of them."""
    return apply(p, formula(name, dtype, Cpu(fma=p.unit.fma)), *arguments)


def function_of(unit: Unit, f: Formula) -> str:
    """The name of the function of a formula."""
    types = [unit.type(value_type(x.dtype)) for x in (*f.params, f.results[0])]
    name = "_".join(["tw", f.name, *dict.fromkeys(t.removesuffix("_t") for t in types)])
    return unit.helper(name, lambda: _define(unit, name, f))


def _define(unit: Unit, name: str, f: Formula) -> str:
    unit.data("TILEWRIGHT_EXACT", _EXACT)
    p = Printer(unit, name)
    parameters = ", ".join(f"{value_type(x.dtype)} {p.bind(x)}" for x in f.params)
    for s in f.steps:
        if isinstance(s, Assign):
            value = p.expr(s.value)
            p.line(f"const {unit.type(value_type(s.var.dtype))} {p.bind(s.var)} = {value};")
        else:
            assert isinstance(s, Rare), "what is repeated stands in a formula for one lane"
            _rare(p, s)
    p.line(f"return {p.expr(f.results[0])};")
    return (f"TILEWRIGHT_EXACT static inline {value_type(f.results[0].dtype)} {name}({parameters}) {{\n"
            "#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n" + "\n".join(p.lines) + "\n}")


@prints(CALLS, "unguarded")
def print_unguarded(p: Printer, call_: Call) -> Text:
    """The operator of C."""
    e, type_ = call_.args[0], value_type(call_.dtype)
    if isinstance(e, Cast):
        if vector_of(type_):
            return call("__builtin_convertvector", p.expr(e.value), p.unit.type(type_))
        return Text(f"({type_}){p.at(e.value, UNARY)}", UNARY)
    assert isinstance(e, Binary)
    text = f"{p.at(e.a, UNARY)} {_BARE[e.op]} {p.at(e.b, UNARY)}"
    return Text(text, SHIFT) if vector_of(type_) else Text(f"({type_})({text})", UNARY)


def _rare(p: Printer, s: Rare) -> None:
    """A loop over the lanes, entered where the condition holds in one of them."""
    lanes = dt.lanes_of(s.mask.dtype)
    params, statement, results = s.lane_by_lane()
    for param, e in zip(params, (*s.args, s.mask, *s.usual)):
        p.line(f"{p.unit.type(value_type(param.dtype))} {p.bind(param)} = {p.expr(e)};")
    for out, usual in zip(s.outs, params[len(s.args) + 1:]):
        p.names[out] = p.names[usual]
    mask = p.names[params[len(s.args)]]
    with p.block(f"if ({mask if lanes == 1 else f'{any_lane(p.unit, lanes)}({mask})'})"):
        p.stmt(statement)
        for out, result in zip(s.outs, results):
            p.line(f"{p.names[out]} = {p.expr(result)};")
