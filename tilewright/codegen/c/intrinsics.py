"""LLVM's intrinsics whose meaning is known, as operators of the IR or as functions that compute lane by lane."""
from __future__ import annotations

from tilewright.codegen.c import helpers
from tilewright.codegen.c.conversions import to_memory
from tilewright.codegen.c.printer import CALLS, Printer, Text, call, prints
from tilewright.codegen.c.types import stored_dtype, value_type
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import Call, StringImm
from tilewright.tir.llvm_intrinsics import LLVM_CALLS, TABLE, Dot, find

_OPERATORS = {"llvm.ctpop": "popcount", "llvm.fma": "fma", "llvm.fabs": "abs", "llvm.sqrt": "sqrt"}
_CHOICES = {"llvm.smax": "max", "llvm.smin": "min"}
_DOTS_OF_BFLOAT16 = "llvm.x86.avx512bf16.dpbf16ps"


def has_form(name: str) -> bool:
    """True for a row of the table that C has a form for."""
    return name in (*_OPERATORS, *_CHOICES, "llvm.vector.interleave2", "llvm.bswap") \
        or name.startswith(_DOTS_OF_BFLOAT16) or isinstance(TABLE[name].evaluate, Dot)


@prints(CALLS, *LLVM_CALLS)
def print_llvm_intrinsic(p: Printer, e: Call) -> Text:
    """The value that the intrinsic has on every CPU. Raises CodegenError where that is not known."""
    name, args = e.args[0], e.args[1:]
    assert isinstance(name, StringImm), "the verifier has seen the name"
    row = find(name.value)
    known = next((n for n, r in TABLE.items() if r is row), "")
    if known in _OPERATORS:
        return p.text(Call(_OPERATORS[known], args, e.type))
    if known in _CHOICES and dt.is_signed(e.type):
        return p.text(binary(_CHOICES[known], *args))
    types = [p.unit.type(value_type(stored_dtype(t))) for t in (e.type, *(a.dtype for a in args))]
    stored = [to_memory(p, p.text(a), a.dtype).text for a in args]
    if row is not None and isinstance(row.evaluate, Dot):
        return call(_dot(p, row.evaluate, e.type, types), *stored)
    if known.startswith(_DOTS_OF_BFLOAT16):
        return call(_dot_bfloat16(p, e.type, types), *stored)
    if known == "llvm.vector.interleave2":
        function = helpers.lanes_of(p.unit, f"interleave_{types[1]}", types[0], f"{types[1]} a, {types[1]} b",
                                    "k % 2 ? b[k / 2] : a[k / 2]")
        return call(function, *stored)
    if known == "llvm.bswap":
        swap = f"__builtin_bswap{dt.bits_of(e.type)}"
        return call(swap if dt.lanes_of(e.type) == 1 else helpers.lanewise(p.unit, swap, types[0], 1), *stored)
    raise CodegenError(with_hint(f"{p.name}: {name.value} has no form in C", 'build for "llvm"'))


def _dot(p: Printer, dot: Dot, dtype: str, types: list[str]) -> str:
    """(acc, a, b) or (a, b): the products of a and b, read as elements of the types of dot, summed in 64 bits."""
    element, lanes = dt.parse(dtype)
    name = f"dot{dot.group}_{dot.a}_{dot.b}_{'saturated_' if dot.ends else ''}{'_'.join(types)}"
    x, y = (p.unit.type(value_type(dt.with_lanes(t, lanes * dot.group))) for t in (dot.a, dot.b))
    low, high = dt.integer_range(dot.ends or "int64")
    clamped = f"sum < {low} ? {low} : sum > {high} ? {high} : sum" if dot.ends else "sum"
    start, acc = ("acc[k]", f"{types[1]} acc, ") if len(types) == 4 else ("0", "")
    return p.unit.helper(name, lambda: f"""\
static inline {types[0]} {name}({acc}{types[-2]} a, {types[-1]} b) {{
    {x} x = ({x})a;
    {y} y = ({y})b;
    {types[0]} v;
    for (int k = 0; k < {lanes}; ++k) {{
        int64_t sum = {start};
        for (int j = 0; j < {dot.group}; ++j) sum += (int64_t)x[k * {dot.group} + j] * y[k * {dot.group} + j];
        v[k] = ({value_type(element)})({clamped});
    }}
    return v;
}}""")


def _dot_bfloat16(p: Printer, dtype: str, types: list[str]) -> str:
    """(acc, a, b): acc + a1 * b1, then + a0 * b0, each rounded once; subnormal numbers count as zero."""
    lanes = dt.lanes_of(dtype)
    x = p.unit.type(f"u16x{2 * lanes}")
    name = f"dpbf16ps_{types[0]}_{'_'.join(types[2:])}"
    wide = helpers.reinterpret(p.unit, "float", "uint32_t")
    flushed = p.unit.helper("flushed", lambda: "static inline float flushed(float x) {\n"
                            "    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;\n}")
    product = " * ".join(f"(double){flushed}({wide}((uint32_t){v}[2 * k + j] << 16))" for v in "xy")
    return p.unit.helper(name, lambda: f"""\
static inline {types[0]} {name}({types[1]} acc, {types[2]} a, {types[3]} b) {{
    {x} x = ({x})a, y = ({x})b;
    {types[0]} v;
    for (int k = 0; k < {lanes}; ++k) {{
        v[k] = {flushed}(acc[k]);
        for (int j = 1; j >= 0; --j) v[k] = {flushed}((float)(v[k] + {product}));
    }}
    return v;
}}""")
