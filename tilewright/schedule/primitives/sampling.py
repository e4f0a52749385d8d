"""Random choices, and the trace: categories, tile sizes, the place of a computation.

Tile sizes are drawn uniformly from all factorisations that are allowed. A factorisation into n factors gives each
prime power p^e of the extent one of C(e + n - 1, n - 1) ways to split e into n exponents (stars and bars), and the
primes are independent: so the exponents of each prime are drawn uniformly by themselves. A bound on the innermost
factor ties the primes together; that factor is drawn first, among the divisors within the bound, each weighted by the
number of ways to factorise the rest.
"""
from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from tilewright.schedule.analysis.dataflow import is_below, is_output, readers_of
from tilewright.schedule.primitive import primitive, sample
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, ExprRV, LoopRV
from tilewright.support.errors import Illegal, described, require
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.stmt import BlockRealize, For

MAX_FACTORS = 64                              # of a tile; a nest deeper than that is a slip
ROOT, INLINED = -1, -2                        # decisions of sample_compute_location that name no loop


@sample
def sample_categorical(sch: Schedule, candidates: Sequence[int], probs: Sequence[float],
                       decision: int | None = None) -> ExprRV:
    """One of the integers `candidates`, each with its probability.

        v = sch.sample_categorical([1, 4, 16], [0.2, 0.5, 0.3])    ->    decision=1: v is 4

    probs are weights: they need not add up to 1. decision: the position of the choice; None draws it.

    Legal when there are as many weights as candidates, and the decision is a position among them.
    """
    fine = isinstance(candidates, (list, tuple)) and len(candidates) > 0 and all(type(c) is int for c in candidates)
    require(fine, f"candidates is {described(candidates)}, not a list of integers")
    weights = isinstance(probs, (list, tuple)) and all(isinstance(p, (int, float)) and p >= 0 for p in probs)
    require(weights and sum(probs) > 0, f"probs is {described(probs)}, not a list of weights")
    require(len(probs) == len(candidates), f"{len(candidates)} candidates, {len(probs)} probabilities")
    if decision is None:
        decision = sch.rng.choices(range(len(candidates)), probs)[0]
    require(type(decision) is int and 0 <= decision < len(candidates),
            f"decision is {described(decision)}, not a position among {len(candidates)} candidates")
    sch.amend(decision=decision)
    return ExprRV(candidates[decision])


@sample
def sample_perfect_tile(sch: Schedule, loop: LoopRV, n: int, max_innermost_factor: int = 16,
                        decision: Sequence[int] | None = None) -> list[ExprRV]:
    """n factors whose product is the extent of a loop, the innermost at most max_innermost_factor.

        v1, v2 = sch.sample_perfect_tile(loop, n=2)     # 64 iterations    ->    decision=[8, 8]
        sch.split(loop, factors=[v1, v2])

    Every such factorisation is equally likely. max_innermost_factor=-1: no bound. decision: the factors; None draws
    them, and nothing else than their product is asked of factors that are given.

    Legal when the extent is a constant, and the decision is a list of n factors with this product.
    """
    old, extent = _constant_extent(sch, loop)
    require(type(n) is int and 0 < n <= MAX_FACTORS, f"n is {described(n)}, not a positive integer up to {MAX_FACTORS}",
            old)
    require(type(max_innermost_factor) is int and (max_innermost_factor == -1 or max_innermost_factor > 0),
            f"max_innermost_factor is {described(max_innermost_factor)}, not a positive integer or -1", old)
    most = extent if max_innermost_factor == -1 else max_innermost_factor
    require(n > 1 or extent <= most or decision is not None,
            f"one factor is {extent}, more than max_innermost_factor={most}", old)
    if decision is None:
        decision = _perfect_tile(sch.rng, extent, n, most)
    return _decided(sch, old, extent, n, decision)


@sample
def sample_partitioned_tile(sch: Schedule, loop: LoopRV, n: int, partition_pos: int = 0, innerpart_factor: int = 1,
                            decision: Sequence[int] | None = None) -> list[ExprRV]:
    """n factors whose product is the extent of a loop, those from partition_pos on a multiple of innerpart_factor.

        v1, v2, v3 = sch.sample_partitioned_tile(loop, n=3, partition_pos=1, innerpart_factor=4)
    ->
        decision=[8, 2, 4]                              # 64 iterations: 2 * 4 is a multiple of 4

    Every such factorisation is equally likely. decision: the factors; None draws them.

    Legal when the extent is a constant that innerpart_factor divides, and the decision is such a factorisation.
    """
    old, extent = _constant_extent(sch, loop)
    require(type(n) is int and 0 < n <= MAX_FACTORS, f"n is {described(n)}, not a positive integer up to {MAX_FACTORS}",
            old)
    require(type(partition_pos) is int and 0 <= partition_pos < n,
            f"partition_pos is {described(partition_pos)}, not a position among {n} factors", old)
    require(type(innerpart_factor) is int and innerpart_factor > 0 and extent % innerpart_factor == 0,
            f"innerpart_factor is {described(innerpart_factor)}, which does not divide {extent}", old)
    if decision is None:
        decision = _partitioned_tile(sch.rng, extent, n, partition_pos, innerpart_factor)
    out = _decided(sch, old, extent, n, decision)
    inner = math.prod(decision[partition_pos:])
    require(inner % innerpart_factor == 0,
            f"the inner part of {list(decision)} is {inner}, no multiple of {innerpart_factor}", old)
    return out


@sample
def sample_compute_location(sch: Schedule, block: BlockRV | str, decision: int | None = None) -> LoopRV:
    """A place where a block may be computed: a loop around its consumers, outside of all loops, or inlined.

        l = sch.sample_compute_location(block)      ->      decision=0: l is the outermost loop of a consumer
        sch.compute_at(block, l)

    Every place that compute_at (or compute_inline) accepts is equally likely. decision: k for loop k around the first
    consumer, -1 for outside of all loops, -2 for inlined; None draws it. compute_at at a handle of the last two leaves
    the block where it is, or inlines it.

    Legal when the first consumer has the loop of the decision. Whether the block may go there, compute_at decides.
    """
    realize = sch.realize(block)
    name = realize.block.name
    consumers = [r for w in realize.block.writes for r in readers_of(sch, w.buffer) if r is not realize]
    loops = sch.index.loops_above(consumers[0]) if consumers else []
    if decision is None:
        decision = _place(sch, realize, consumers, loops)
    require(type(decision) is int and -2 <= decision < len(loops),
            f"decision is {described(decision)}; block {name} has the places -2, -1 and 0 to {len(loops) - 1}", realize)
    sch.amend(decision=decision)
    if decision >= 0:
        return sch.loop_rv(loops[decision])
    place = "root" if decision == ROOT else "inlined"
    return LoopRV(Var(place), sch.focus, place)


def _place(sch: Schedule, realize: BlockRealize, consumers: Sequence[BlockRealize], loops: Sequence[For]) -> int:
    """A decision that can be carried out: the first that works of all, in random order."""
    if not consumers or any(is_output(sch, w.buffer) for w in realize.block.writes):
        return ROOT
    block = sch.block_rv(realize)
    shared = [k for k, loop in enumerate(loops) if all(is_below(sch.index, c, loop) for c in consumers)]
    places = [ROOT, INLINED, *shared]
    sch.rng.shuffle(places)
    return next(k for k in places if k == ROOT or (
        _works(sch, "compute_inline", block) if k == INLINED else
        _works(sch, "compute_at", block, sch.loop_rv(loops[k]))))


def _works(sch: Schedule, primitive: str, *arguments: object) -> bool:
    saved = sch.snapshot()
    try:
        getattr(sch, primitive)(*arguments)
    except Illegal:
        return False
    finally:
        sch.restore(saved)
    return True


def _constant_extent(sch: Schedule, rv: LoopRV) -> tuple[For, int]:
    loop = sch.loop(rv)
    require(isinstance(loop.extent, IntImm) and loop.extent.value > 0,
            f"the extent {loop.extent} of loop {loop.loop_var.name} is no positive constant", loop)
    assert isinstance(loop.extent, IntImm)
    return loop, loop.extent.value


def _decided(sch: Schedule, loop: For, extent: int, n: int, decision: Sequence[int]) -> list[ExprRV]:
    fine = isinstance(decision, (list, tuple)) and all(type(f) is int and f > 0 for f in decision)
    require(fine and len(decision) == n,
            f"decision is {described(decision)}, not a list of {n} positive integers", loop)
    covered = math.prod(decision)
    require(covered == extent,
            f"the factors {list(decision)} cover {covered} iterations, loop {loop.loop_var.name} has {extent}", loop,
            hint="sample again: replay with another decision")
    sch.amend(decision=list(decision))
    return [ExprRV(f) for f in decision]


# ---- uniform factorisations

def _perfect_tile(rng: random.Random, extent: int, n: int, most: int) -> list[int]:
    if n == 1:
        return [extent]
    innermost = [d for d in _divisors(extent) if d <= most]
    weights = [_factorisations(extent // d, n - 1) for d in innermost]
    d = rng.choices(innermost, weights)[0]
    return [*_partitioned_tile(rng, extent // d, n - 1, 0, 1), d]


def _partitioned_tile(rng: random.Random, extent: int, n: int, first: int, inner: int) -> list[int]:
    """Uniform among the n factors of extent whose product from `first` on is a multiple of inner."""
    factors = [1] * n
    for p, e in _prime_powers(extent):
        least = next(k for k in range(e + 1) if inner % p ** (k + 1) != 0)
        sums = range(least if first else e, e + 1)
        ways = [_ways(s, n - first) * (_ways(e - s, first) if first else 1) for s in sums]
        s = rng.choices(sums, ways)[0]
        exponents = [*_parts(rng, e - s, first), *_parts(rng, s, n - first)]
        factors = [f * p ** k for f, k in zip(factors, exponents, strict=True)]
    return factors


def _parts(rng: random.Random, total: int, n: int) -> list[int]:
    """n natural numbers that add up to total, uniformly: the gaps between n - 1 bars among total stars."""
    if n == 0:
        return []
    bars = sorted(rng.sample(range(total + n - 1), n - 1))
    return [b - a - 1 for a, b in zip([-1, *bars], [*bars, total + n - 1], strict=True)]


def _ways(total: int, n: int) -> int:
    return math.comb(total + n - 1, n - 1)


def _factorisations(x: int, n: int) -> int:
    """How many lists of n factors have the product x."""
    return math.prod(_ways(e, n) for _, e in _prime_powers(x))


def _prime_powers(x: int) -> Iterator[tuple[int, int]]:
    """The (prime, exponent) of x > 0, by trial division."""
    p = 2
    while p * p <= x:
        e = 0
        while x % p == 0:
            x, e = x // p, e + 1
        if e:
            yield p, e
        p += 1
    if x > 1:
        yield x, 1


def _divisors(x: int) -> list[int]:
    out = [1]
    for p, e in _prime_powers(x):
        out = [d * p ** k for d in out for k in range(e + 1)]
    return sorted(out)


@primitive
def enter_postproc(sch: Schedule) -> None:
    """Mark the place in the trace from which on only postprocessors act; it changes no function.

        sch.split(...); sch.enter_postproc(); sch.unroll(...)   ->   trace.simplified(remove_postproc=True): split

    `Trace.simplified`, `with_decision`, `as_json` and `apply_to_schedule` with remove_postproc=True leave out what
    comes after it.

    Legal when the trace has no such mark yet.
    """
    require(all(entry.primitive != "enter_postproc" for entry in sch.trace), "the postprocessors have begun already")
