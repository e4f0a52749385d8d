"""Formulas as code: in place, or as private functions of the module, which LLVM may inline."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, emits
from tilewright.codegen.llvm.types import lanes_of_type, register_type, suffix
from tilewright.formulas import Assign, Cpu, Formula, Rare, formula
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Call, Cast, Var

RARE = '!{!"branch_weights", i32 1, i32 2000}'


def elementary(fn: FunctionEmitter, name: str, type_: str, operands: Sequence[str]) -> str:
    """A function of elementary.FUNCTIONS of operands of an LLVM type."""
    symbol = math_helper(fn.module, name, type_)
    return fn.value(f"call {type_} {symbol}({', '.join(f'{type_} {x}' for x in operands)})")


def math_helper(module: ModuleBuilder, name: str, type_: str) -> str:
    """`@tw.<name>.<type>`, defined in the module at the first request."""
    cpu = Cpu("fma" in module.features, {"avx512f", "avx512dq", "avx512vl"} <= module.features)
    dtype = dt.with_lanes("float64" if "double" in type_ else "float32", lanes_of_type(type_))
    symbol = f"tw.{name}.{suffix(type_)}"
    return module.helper(symbol, lambda: _define(module, symbol, formula(name, dtype, cpu), "#2"))


def inline(fn: FunctionEmitter, f: Formula, *operands: str) -> str:
    """The (first) result of a formula of operands, computed here."""
    flags, guard, fn.flags, fn.in_guard = fn.flags, fn.in_guard, "", False
    fn.values.update(zip(f.params, operands))
    for s in f.steps:
        if isinstance(s, Assign):
            fn.values[s.var] = fn.expr(s.value)
        else:
            assert isinstance(s, Rare), "what is repeated stands in a formula for one lane"
            fn.values.update(zip(s.outs, _rare(fn, s)))
    out = fn.expr(f.results[0])
    fn.flags, fn.in_guard = flags, guard
    return out


_BARE = {"truncdiv": ("udiv", "sdiv"), "truncmod": ("urem", "srem"), "shl": ("shl", "shl"), "shr": ("lshr", "ashr")}


@emits(CALLS, "unguarded")
def emit_unguarded(fn: FunctionEmitter, call: Call) -> str:
    """One instruction.

    A divisor is frozen: of a shift that is chosen where its amount is small, LLVM knows in other lanes only that it is
    poison, takes it for nonzero there, and divides by it in all lanes.
    """
    e, type_, signed = call.args[0], register_type(call.dtype), dt.is_signed(call.dtype)
    if isinstance(e, Cast):
        opcode, source = "fptosi" if signed else "fptoui", register_type(e.value.dtype)
        return fn.value(f"{opcode} {source} {fn.expr(e.value)} to {type_}")
    assert isinstance(e, Binary)
    a, b = fn.expr(e.a), fn.expr(e.b)
    if e.op.startswith("trunc") and b.startswith("%"):
        b = fn.value(f"freeze {type_} {b}")
    return fn.value(f"{_BARE[e.op][signed]} {type_} {a}, {b}")


def _define(module: ModuleBuilder, symbol: str, f: Formula, attributes: str) -> str:
    fn = FunctionEmitter(module, symbol)
    result = inline(fn, f, *(f"%x{k}" for k in range(len(f.params))))
    return _function(fn, symbol, f.params, register_type(f.results[0].dtype), result, attributes)


def _function(fn: FunctionEmitter, symbol: str, params: Sequence[Var], type_: str, result: str, attributes: str) -> str:
    parameters = ", ".join(f"{register_type(p.dtype)} %x{k}" for k, p in enumerate(params))
    return f"define internal {type_} @{symbol}({parameters}) {attributes} {{\n{fn.body()}\n  ret {type_} {result}\n}}"


def _rare(fn: FunctionEmitter, s: Rare) -> list[str]:
    """A branch around a call of a function that goes through the lanes in memory: the code stays small."""
    given = [fn.typed(e) for e in (*s.args, s.mask, *s.usual)]
    mask, usual = given[len(s.args)], given[len(s.args) + 1:]
    some = mask.removeprefix("i1 ") if mask.startswith("i1 ") else fn.any_of(mask)
    slow, done, before = fn.new_label("rare"), fn.new_label("usual"), fn.label
    types = [register_type(e.dtype) for e in s.usual]
    symbol, result = f"tw.{s.formula.name}.{suffix(types[-1])}", f"{{ {', '.join(types)} }}"
    fn.module.helper(symbol, lambda: _lanes(fn.module, symbol, s, result))
    fn.branch(some, slow, done, f", !prof {fn.module.metadata(RARE)}")
    fn.start(slow)
    every = fn.effect(f"call {result} @{symbol}({', '.join(given)})")
    parts = [fn.effect(f"extractvalue {result} {every}, {k}") for k in range(len(types))]
    fn.jump(done)
    fn.start(done)
    return [fn.effect(f"phi {t} [ {u.removeprefix(t)}, %{before} ], [ {p}, %{slow} ]")
            for t, u, p in zip(types, usual, parts)]


def _lanes(module: ModuleBuilder, symbol: str, s: Rare, type_: str) -> str:
    """The function of what is given to a rare step, which gives a structure of its results."""
    fn, (params, statement, results) = FunctionEmitter(module, symbol), s.lane_by_lane()
    fn.flags = ""
    fn.values.update((p, f"%x{k}") for k, p in enumerate(params))
    fn.stmt(statement)
    out = "poison"
    for k, r in enumerate(results):
        out = fn.value(f"insertvalue {type_} {out}, {fn.typed(r)}, {k}")
    return _function(fn, symbol, params, type_, out, "#3")
