"""(a * b >> s) of 16-bit numbers widened to 64 bits and narrowed again: LLVM loses the sign of upper halves."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.llvm.wide_products import has_narrowed_products, with_opaque_shifts
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
    assert has_narrowed_products(MODULE) and not has_narrowed_products(MODULE.replace("mul", "add"))
    lines = with_opaque_shifts(MODULE).splitlines()
    assert lines[2] == '  %tw.none = call i64 asm "", "=r,0"(i64 0)'
    assert "  %q = lshr <4 x i64> %p, %tw.by0" in lines and "  %r = lshr <4 x i64> %a, splat (i64 20)" in lines
    assert "\n".join(lines[-3:]) + "\n" == MODULE[MODULE.index("define void @g"):]
