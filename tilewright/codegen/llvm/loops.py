"""Serial loops in the form that LLVM's loop passes want."""
from __future__ import annotations

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.vectorizable import vectorizable
from tilewright.codegen.ranges import range_of_loop
from tilewright.tir import dtype as dt
from tilewright.tir.expr import IntImm
from tilewright.tir.node import statements
from tilewright.tir.slices import stop_of
from tilewright.tir.stmt import UNROLLED, For, Store

SHORT = 16                  # iterations of a loop that LLVM would write out
TILE = 4                    # vector statements of its body that keep what they work on in registers
ENOUGH = 4                  # vectors that an iteration of a long loop stores, whose work hides that of the loop


def emit_serial(fn: FunctionEmitter, s: For) -> None:
    """The loop in rotated form: LLVM need not do that again."""
    first, end = index(fn, s.min), index(fn, stop_of(s.min, s.extent))
    header, done = fn.new_label("loop"), fn.new_label("endloop")
    fn.natural.update(range_of_loop(fn, s))
    if not isinstance(s.extent, IntImm) or s.extent.value <= 0:
        start = fn.new_label("enter")
        fn.branch(fn.value(f"icmp slt i64 {first}, {end}"), start, done)
        fn.start(start)
    before = fn.label
    fn.jump(header)
    fn.start(header)
    var, advanced = fn.fresh(), fn.fresh()
    at = len(fn.lines)
    fn.lines.append("")
    with fn.region():
        fn.wide[s.loop_var] = var
        fn.stmt(s.body)
        del fn.wide[s.loop_var]
    fn.lines[at] = f"  {var} = phi i64 [ {first}, %{before} ], [ {advanced}, %{fn.label} ]"
    fn.do(f"{advanced} = add nsw i64 {var}, 1")
    more = fn.effect(f"icmp slt i64 {advanced}, {end}")
    fn.branch(more, header, done, _loop_metadata(fn, s))
    fn.start(done)


def _keeps_a_tile(s: For) -> bool:
    """True for a short loop around many vector statements, which copies for each iteration would not keep in registers.
    """
    if _is_long(s):
        return False
    return sum(isinstance(n, Store) and dt.lanes_of(n.value.dtype) > 1 for n in statements(s.body)) >= TILE


def _is_long(s: For) -> bool:
    return not isinstance(s.extent, IntImm) or s.extent.value > SHORT


def _has_enough_work(s: For, features: frozenset[str]) -> bool:
    """True for a loop of which copies are none the faster: its iterations run a long loop of vectors, or are those of a
    long one and store several."""
    if _is_long(s) and _stored(s, features) >= ENOUGH:
        return True
    return any(isinstance(n, For) and _is_long(n) and _stored(n, features) for n in statements(s.body))


def _stored(s: For, features: frozenset[str]) -> int:
    """How many registers the vectors fill that an iteration stores."""
    bits = 512 if "avx512f" in features else 256
    types = (n.value.dtype for n in statements(s.body) if isinstance(n, Store) and dt.lanes_of(n.value.dtype) > 1)
    return sum(-(-dt.bits_of(t) * dt.lanes_of(t) // bits) for t in types)


def _loop_metadata(fn: FunctionEmitter, s: For) -> str:
    """What LLVM is told of the loop: in a function of much code, that it makes no copies of its body."""
    hints = []
    if s.kind == UNROLLED:
        hints.append(fn.module.metadata('!{!"llvm.loop.unroll.full"}'))
    elif fn.module.long or _keeps_a_tile(s) or _has_enough_work(s, fn.module.features):
        hints.append(fn.module.metadata('!{!"llvm.loop.unroll.disable"}'))
    if fn.module.long or not vectorizable(s):
        hints.append(fn.module.metadata('!{!"llvm.loop.vectorize.enable", i1 false}'))
    if not hints:
        return ""
    return ", !llvm.loop " + fn.module.metadata("!{{self}, " + ", ".join(hints) + "}", distinct=True)
