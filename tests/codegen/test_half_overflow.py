"""Integers of few digits and great size as float16, which are infinite, and what is computed of them."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.llvm.half_overflow import widens_integers_by_half, with_infinite_halves
from tilewright.script import from_source

X = np.arange(-40, 40)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell -opt-level=1", "llvm -mcpu=x86-64-v4", "c"])
@pytest.mark.parametrize("loop", ["serial", "vectorized"])
@pytest.mark.parametrize("way", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
def test_integers_beyond_float16(kind: str, way: str, loop: str, target: str) -> None:
    shifts = range(0, int(kind[-2:]), 5)
    body = "\n".join(f'        o{s}[i] = T.cast(T.cast(T.cast(x[i] << T.{kind}({s}), "{way}"), "float16"), "float32")'
                     for s in shifts)
    outs = ", ".join(f'o{s}: T.Buffer(({len(X)},), "float32")' for s in shifts)
    func = from_source(f"""
from tilewright.script import tir as T
@T.prim_func
def main(x: T.Buffer(({len(X)},), "{kind}"), {outs}):
    for i in T.{loop}({len(X)}):
{body}
""")
    x = X.astype(kind)
    results = [tw.nd.empty((len(x),), "float32") for _ in shifts]
    tw.build(func, target=target)(tw.nd.array(x), *results)
    for y, s in zip(results, shifts, strict=True):
        with np.errstate(over="ignore"):
            want = (x << np.array(s, kind)).astype(way).astype("float16").astype("float32")
        np.testing.assert_array_equal(y.numpy(), want, err_msg=f"<< {s}")


MODULE = """\
  %a = uitofp i32 %x to float
  %b = fptrunc float %a to half
  %c = fptrunc <4 x double> %v to <4 x half>
  %d = fpext half %b to float
"""


def test_only_narrowed_numbers_are_changed() -> None:
    assert widens_integers_by_half(MODULE) and not widens_integers_by_half(MODULE.replace("i32", "i16"))
    assert with_infinite_halves(MODULE).splitlines() == [
        "  %a = uitofp i32 %x to float",
        "  %b.high = fcmp oge float %a, 65520.0",
        "  %b.low = fcmp ole float %a, -65520.0",
        "  %b.above = select i1 %b.high, float 0x7ff0000000000000, float %a",
        "  %b.both = select i1 %b.low, float 0xfff0000000000000, float %b.above",
        "  %b = fptrunc float %b.both to half",
        "  %c.high = fcmp oge <4 x double> %v, splat (double 65520.0)",
        "  %c.low = fcmp ole <4 x double> %v, splat (double -65520.0)",
        "  %c.above = select <4 x i1> %c.high, <4 x double> splat (double 0x7ff0000000000000), <4 x double> %v",
        "  %c.both = select <4 x i1> %c.low, <4 x double> splat (double 0xfff0000000000000), <4 x double> %c.above",
        "  %c = fptrunc <4 x double> %c.both to <4 x half>",
        "  %d = fpext half %b to float"]
