"""Formulas as code: in place, or as private functions of the module, which LLVM may inline."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.types import lanes_of_type, register_type, suffix, with_element
from tilewright.formulas import Assign, Cpu, Formula, Rare, formula
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Cast, Expr

RARE = '!{!"branch_weights", i32 1, i32 2000}'


def elementary(fn: FunctionEmitter, name: str, type_: str, operands: Sequence[str]) -> str:
    """A function of elementary.FUNCTIONS of operands of an LLVM type."""
    symbol = math_helper(fn.module, name, type_)
    return fn.value(f"call {type_} {symbol}({', '.join(f'{type_} {x}' for x in operands)})")


def math_helper(module: ModuleBuilder, name: str, type_: str) -> str:
    """`@tw.<name>.<type>`, defined in the module at the first request."""
    cpu = Cpu("fma" in module.features, {"avx512f", "avx512dq", "avx512vl"} <= module.features)
    dtype = dt.with_lanes("float64" if "double" in type_ else "float32", lanes_of_type(type_))
    return _defined(module, f"tw.{name}.{suffix(type_)}", formula(name, dtype, cpu), "#2")


def inline(fn: FunctionEmitter, f: Formula, *operands: str) -> str:
    """The (first) result of a formula of operands, computed here."""
    flags, guard, fn.flags, fn.in_guard = fn.flags, fn.in_guard, "", False
    fn.values.update(zip(f.params, operands))
    for s in f.steps:
        if isinstance(s, Assign):
            fn.values[s.var] = _bare(fn, s.value) if s.bare else fn.expr(s.value)
        else:
            fn.values.update(zip(s.outs, _rare(fn, s)))
    out = fn.expr(f.results[0])
    fn.flags, fn.in_guard = flags, guard
    return out


_BARE = {"truncdiv": ("udiv", "sdiv"), "truncmod": ("urem", "srem"), "shl": ("shl", "shl"), "shr": ("lshr", "ashr")}


def _bare(fn: FunctionEmitter, e: Expr) -> str:
    """One instruction, without a guard (see `Assign`).

    A divisor is frozen: of a shift that is chosen where its amount is small, LLVM knows in other lanes only that it is
    poison, takes it for nonzero there, and divides by it in all lanes.
    """
    type_, signed = register_type(e.dtype), dt.is_signed(e.dtype)
    if isinstance(e, Cast):
        opcode, source = "fptosi" if signed else "fptoui", register_type(e.value.dtype)
        return fn.value(f"{opcode} {source} {fn.expr(e.value)} to {type_}")
    assert isinstance(e, Binary)
    a, b = fn.expr(e.a), fn.expr(e.b)
    if e.op.startswith("trunc") and b.startswith("%"):
        b = fn.value(f"freeze {type_} {b}")
    return fn.value(f"{_BARE[e.op][signed]} {type_} {a}, {b}")


def _defined(module: ModuleBuilder, symbol: str, f: Formula, attributes: str) -> str:
    return module.helper(symbol, lambda: _define(module, symbol, f, attributes))


def _define(module: ModuleBuilder, symbol: str, f: Formula, attributes: str) -> str:
    """The function; several results are returned as a structure."""
    fn = FunctionEmitter(module, symbol)
    result = inline(fn, f, *(f"%x{k}" for k in range(len(f.params))))
    types, results = [register_type(r.dtype) for r in f.results], [fn.expr(r) for r in f.results]
    type_ = types[0]
    if len(results) > 1:
        type_, result = f"{{ {', '.join(types)} }}", "poison"
        for k, r in enumerate(results):
            result = fn.value(f"insertvalue {type_} {result}, {types[k]} {r}, {k}")
    parameters = ", ".join(f"{register_type(p.dtype)} %x{k}" for k, p in enumerate(f.params))
    return f"define internal {type_} @{symbol}({parameters}) {attributes} {{\n{fn.body()}\n  ret {type_} {result}\n}}"


def _rare(fn: FunctionEmitter, s: Rare) -> list[str]:
    """A branch around a call of a function that goes through the lanes in memory: the code stays small."""
    mask, types = register_type(s.mask.dtype), [register_type(e.dtype) for e in s.usual]
    held, x, usual = fn.expr(s.mask), fn.expr(s.x), [fn.expr(e) for e in s.usual]
    lanes, some = lanes_of_type(mask), held
    if lanes > 1:
        packed = fn.value(f"bitcast {mask} {held} to i{lanes}")
        some = fn.value(f"icmp ne i{lanes} {packed}, 0")
    slow, done, before = fn.new_label("rare"), fn.new_label("usual"), fn.label
    symbol = f"tw.{s.formula.name}.{suffix(types[-1])}"
    fn.module.helper(symbol, lambda: _lanes(fn.module, symbol, s))
    fn.branch(some, slow, done, f", !prof {fn.module.metadata(RARE)}")
    fn.start(slow)
    result = f"{{ {', '.join(types)} }}"
    operands = [f"{register_type(s.x.dtype)} {x}", f"{mask} {held}", *(f"{t} {v}" for t, v in zip(types, usual))]
    every = fn.effect(f"call {result} @{symbol}({', '.join(operands)})")
    parts = [fn.effect(f"extractvalue {result} {every}, {k}") for k in range(len(types))]
    fn.jump(done)
    fn.start(done)
    return [fn.effect(f"phi {t} [ {a}, %{before} ], [ {b}, %{slow} ]") for t, a, b in zip(types, usual, parts)]


def _lanes(module: ModuleBuilder, symbol: str, s: Rare) -> str:
    """A function of x, the mask and the usual results: a loop over the lanes."""
    one = _defined(module, f"tw.{s.formula.name}", s.formula, "#3")
    x, mask, lanes = register_type(s.x.dtype), register_type(s.mask.dtype), dt.lanes_of(s.x.dtype)
    types = [register_type(e.dtype) for e in s.usual]
    elements = [register_type(dt.element_of(e.dtype)) for e in (s.x, *s.usual)]
    single, result = f"{{ {', '.join(elements[1:])} }}", f"{{ {', '.join(types)} }}"
    bytes_, flags = with_element(mask, "i8"), len(types) + 1
    kept = list(enumerate(zip([x, *types], ["%x", *(f"%u{k}" for k in range(len(types)))])))

    def each(line: str, first: int = 0) -> str:
        return "\n".join(line.format(k=k, j=k - 1, t=t, v=v, e=elements[k], all=single, lanes=lanes)
                         for k, (t, v) in kept[first:])
    out = "\n".join(f"  %s{k} = insertvalue {result} {'poison' if k == 1 else f'%s{k - 1}'}, {t} %o{k}, {k - 1}"
                    for k, (t, _) in kept[1:])
    return f"""define internal {result} @{symbol}({x} %x, {mask} %mask, {
        ', '.join(f'{t} {v}' for _, (t, v) in kept[1:])}) #3 {{
entry:
{each("  %p{k} = alloca {e}, i64 {lanes}, align 64")}
  %p{flags} = alloca [{lanes} x i8], align 64
  %flags = zext {mask} %mask to {bytes_}
{each("  store {t} {v}, ptr %p{k}, align 8")}
  store {bytes_} %flags, ptr %p{flags}, align 8
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %latch ]
  %am = getelementptr inbounds i8, ptr %p{flags}, i64 %k
  %flag = load i8, ptr %am, align 1
  %on = icmp ne i8 %flag, 0
  br i1 %on, label %reduce, label %latch
reduce:
{each("  %a{k} = getelementptr inbounds {e}, ptr %p{k}, i64 %k")}
  %v = load {elements[0]}, ptr %a0, align 8
  %all = call {single} {one}({elements[0]} %v)
{each("  %v{k} = extractvalue {all} %all, {j}", 1)}
{each("  store {e} %v{k}, ptr %a{k}, align 8", 1)}
  br label %latch
latch:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {lanes}
  br i1 %more, label %loop, label %done
done:
{each("  %o{k} = load {t}, ptr %p{k}, align 8", 1)}
{out}
  ret {result} %s{len(types)}
}}"""
