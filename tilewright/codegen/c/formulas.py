"""Formulas as static inline functions."""
from __future__ import annotations

from tilewright.codegen.c.printer import Printer, Text, call
from tilewright.codegen.c.types import value_type, vector_of
from tilewright.codegen.c.unit import Unit
from tilewright.formulas import Assign, Cpu, Formula, Rare, formula
from tilewright.tir.expr import Binary, Cast, Expr

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
    types = [unit.type(value_type(x.dtype)) for x in (*f.params, *f.results)]
    name = "_".join(["tw", f.name, *dict.fromkeys(t.removesuffix("_t") for t in types)])
    return unit.helper(name, lambda: _define(unit, name, f))


def _define(unit: Unit, name: str, f: Formula) -> str:
    """Several results are left behind pointers."""
    unit.data("TILEWRIGHT_EXACT", _EXACT)
    p = Printer(unit, name)
    parameters = [f"{value_type(x.dtype)} {p.bind(x)}" for x in f.params]
    p.line("#pragma STDC FP_CONTRACT OFF")
    for s in f.steps:
        if isinstance(s, Assign):
            value = _bare(p, s.value) if s.bare else p.expr(s.value)
            p.line(f"const {unit.type(value_type(s.var.dtype))} {p.bind(s.var)} = {value};")
        else:
            _rare(p, s)
    type_ = value_type(f.results[0].dtype)
    if len(f.results) > 1:
        type_ = "void"
        for k, r in enumerate(f.results):
            parameters.append(f"{value_type(r.dtype)} *r{k}")
            p.line(f"*r{k} = {p.expr(r)};")
    else:
        p.line(f"return {p.expr(f.results[0])};")
    body = "\n".join(line for line in p.lines if "#pragma" not in line)
    return (f"TILEWRIGHT_EXACT static inline {type_} {name}({', '.join(parameters)}) {{\n"
            f"#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n{body}\n}}")


def _bare(p: Printer, e: Expr) -> str:
    """The operator of C, which needs no guard here."""
    type_ = value_type(e.dtype)
    if isinstance(e, Cast):
        if vector_of(type_):
            return f"__builtin_convertvector({p.expr(e.value)}, {p.unit.type(type_)})"
        return f"({type_}){p.at(e.value, 19)}"
    assert isinstance(e, Binary)
    text = f"{p.at(e.a, 19)} {_BARE[e.op]} {p.at(e.b, 19)}"
    return text if vector_of(type_) else f"({type_})({text})"


def _rare(p: Printer, s: Rare) -> None:
    """A loop over the lanes, entered where the condition holds in one of them."""
    lanes = (vector_of(value_type(s.mask.dtype)) or ("", 1))[1]
    for out, usual in zip(s.outs, s.usual):
        p.line(f"{p.unit.type(value_type(out.dtype))} {p.bind(out)} = {p.expr(usual)};")
    mask, x, function = p.expr(s.mask), p.expr(s.x), function_of(p.unit, s.formula)
    if lanes == 1:
        with p.block(f"if ({mask})"):
            p.line(f"{function}({', '.join([x, *(f'&{p.names[o]}' for o in s.outs)])});")
        return
    with p.block(f"for (int k = 0; k < {lanes}; ++k)"), p.block(f"if ({mask}[k])"):
        for k, r in enumerate(s.formula.results):
            p.line(f"{value_type(r.dtype)} one{k};")
        p.line(f"{function}({', '.join([f'{x}[k]', *(f'&one{k}' for k in range(len(s.outs)))])});")
        for k, out in enumerate(s.outs):
            p.line(f"{p.names[out]}[k] = one{k};")
