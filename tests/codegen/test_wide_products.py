"""a * b >> s and a * b // 2 of 16-bit numbers widened to 64 bits: LLVM loses the sign of upper halves."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.llvm.wide_products import has_wide_products, with_opaque_products
from tilewright.script import from_source

X = np.concatenate([np.arange(-32768, 32768, 2039), [-32768, -33, -8, -2, -1, 0, 1, 2, 255, 32767]]).astype("int16")


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v2", "llvm -mcpu=haswell -opt-level=1", "c"])
@pytest.mark.parametrize("loop", ["serial", "vectorized"])
@pytest.mark.parametrize("kind, source", [("uint64", "int16"), ("int64", "int16"), ("int64", "uint16")])
def test_narrowed_products(kind: str, source: str, loop: str, target: str) -> None:
    x = X.view(source)
    shifts, factors = (16, 17, 20, 31, 32, 33, 40, 47, 48, 58, 63), (3, -7 if kind == "int64" else 7)
    body = "\n".join(
        f'        o{k}[i] = T.cast((T.cast(x[i], "{kind}") * T.{kind}({f})) >> T.{kind}({s}), "int16")'
        for k, (f, s) in enumerate((f, s) for f in factors for s in shifts))
    outs = ", ".join(f'o{k}: T.Buffer(({len(x)},), "int16")' for k in range(len(factors) * len(shifts)))
    func = from_source(f"""
from tilewright.script import tir as T
@T.prim_func
def main(x: T.Buffer(({len(x)},), "{source}"), {outs}):
    for i in T.{loop}({len(x)}):
{body}
""")
    results = [tw.nd.empty((len(x),), "int16") for _ in range(len(factors) * len(shifts))]
    tw.build(func, target=target)(tw.nd.array(x), *results)
    for y, (f, s) in zip(results, ((f, s) for f in factors for s in shifts), strict=True):
        exact = [int(v) * f % 2**64 for v in x]
        wide = [v - 2**64 if kind == "int64" and v >= 2**63 else v for v in exact]
        want = np.array([(v >> s) % 2**16 for v in wide], "uint16").view("int16")
        np.testing.assert_array_equal(y.numpy(), want, err_msg=f"{f} >> {s}")


DIVISIONS = {"truncdiv": lambda v, d: np.sign(v) * (np.abs(v) // d), "truncmod": np.fmod, "floordiv": np.floor_divide,
             "floormod": np.mod}


@pytest.mark.parametrize("target", ["llvm", "llvm -opt-level=1", "llvm -mcpu=x86-64-v2", "llvm -mcpu=haswell", "c"])
@pytest.mark.parametrize("loop", ["serial", "vectorized"])
@pytest.mark.parametrize("source, wide, result", [
    ("int8", "int64", "uint16"), ("int8", "int64", "int32"), ("int16", "int64", "int64"), ("int8", "int32", "int16"),
    ("int16", "int64", "float32")])
def test_divided_products(source: str, wide: str, result: str, loop: str, target: str) -> None:
    x = X.astype(source)
    cases = [(op, f, d) for op in DIVISIONS for f in (3, -7) for d in (2, 8)]
    value = 'T.cast(T.{}(T.cast(x[i], "{}") * T.{}({}), T.{}({})), "{}")'
    body = "\n".join(f"        o{k}[i] = {value.format(op, wide, wide, f, wide, d, result)}"
                     for k, (op, f, d) in enumerate(cases))
    outs = ", ".join(f'o{k}: T.Buffer(({len(x)},), "{result}")' for k in range(len(cases)))
    func = from_source(f'@T.prim_func\ndef main(x: T.Buffer(({len(x)},), "{source}"), {outs}):\n'
                       f"    for i in T.{loop}({len(x)}):\n{body}\n")
    got = [np.empty(len(x), result) for _ in cases]
    tw.build(func, target=target)(x, *got)
    for y, (op, f, d) in zip(got, cases, strict=True):
        np.testing.assert_array_equal(y, DIVISIONS[op](x.astype(wide) * f, d).astype(result), err_msg=f"{op} {f} {d}")


def test_indices_that_are_divided_products() -> None:
    table = np.arange(1000, dtype="float32")
    x = np.array([126, -3, 127, -13, 5, -128, -1, 0] * 4, "int8")
    func = from_source("""@T.prim_func
def main(x: T.Buffer((32,), "int8"), table: T.Buffer((1000,), "float32"), y: T.Buffer((32,), "float32")):
    for i in T.vectorized(32):
        y[i] = table[T.truncdiv(T.cast(x[i], "int64") * 7, T.int64(2)) + 500]
""")
    for target in ("llvm", "llvm -opt-level=1"):
        out = np.empty(32, "float32")
        tw.build(func, target=target)(x, table, out)
        v = x.astype("int64") * 7
        np.testing.assert_array_equal(out, table[np.sign(v) * (np.abs(v) // 2) + 500])


MODULE = """\
define void @f(<4 x i64> %a) {
entry:
  %p = mul nsw <4 x i64> %a, splat (i64 3)
  %q = lshr <4 x i64> %p, splat (i64 20)
  %r = lshr <4 x i64> %a, splat (i64 20)
  %t = trunc <4 x i64> %q to <4 x i16>
  ret void
}
define void @g() {
  ret void
}
"""


def test_only_shifts_of_products_are_changed() -> None:
    assert has_wide_products(MODULE) and not has_wide_products(MODULE.replace("mul", "add"))
    lines = with_opaque_products(MODULE).splitlines()
    assert lines[2] == '  %tw.none = call i64 asm "", "=r,0"(i64 0)'
    assert "  %q = lshr <4 x i64> %tw.product0, splat (i64 20)" in lines
    assert "  %r = lshr <4 x i64> %a, splat (i64 20)" in lines
    assert "\n".join(lines[-3:]) + "\n" == MODULE[MODULE.index("define void @g"):]
