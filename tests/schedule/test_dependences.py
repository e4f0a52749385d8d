"""parallel and reorder on hand-made nests of blocks with dependences of every kind, against the
interpreter."""
from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.schedule.test_loops import refused
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.analysis import legality
from tilewright.schedule.analysis.region import Region
from tilewright.script import from_source
from tilewright.support.errors import InterpreterError, ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.arithmetic import all_of
from tilewright.tir.buffer import Buffer, BufferRegion, decl_buffer, load
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import ORDERED, IterVar
from tilewright.tir.stmt import PARALLEL, Block, BlockRealize, PrimFunc, Stmt, Store, loop, range_of, seq

N, SIZE = 4, 16
TRUE = IntImm(1, "bool")


def point(buffer: Buffer, indices: tuple[Expr, ...]) -> BufferRegion:
    return BufferRegion(buffer, tuple(range_of(i, 1) for i in indices))


def block(name: str, loops: list[Var], target: Buffer, write, source: Buffer, read, *, predicate=None,
          kind: int = 0,
          extent: int = N) -> Stmt:
    """A block over one iter var per loop: target[write(...)] = 3 * source[read(...)] + 1."""
    inner = [Var(f"v{v.name}") for v in loops]
    at, source_at = write(*inner), read(*inner)
    iters = tuple(IterVar(range_of(0, extent), v, kind) for v in inner)
    body = Store(target, load(source, source_at) * 3 + 1, at)
    made = Block(name, iters, (point(source, source_at),), (point(target, at),), body)
    return BlockRealize(tuple(loops), TRUE if predicate is None else predicate(*loops), made)


def function(buffers: list[Buffer], body: Stmt, allocated: tuple[Buffer, ...] = ()) -> PrimFunc:
    params = tuple(Var(b.name, "handle") for b in buffers)
    root = Block("root", (), (), (), body, alloc_buffers=allocated)
    return PrimFunc(params, BlockRealize((), TRUE, root), dict(zip(params, buffers, strict=True)),
                    {"global_symbol": "main"})


def nest(loops: list[Var], body: Stmt, extent: int = N) -> Stmt:
    for v in reversed(loops):
        body = loop(v, extent, body)
    return body


def stencil(write, read, predicate=None, kind: int = 0) -> Schedule:
    """for i, j: A[write(i, j)] = 3 * A[read(i, j)] + 1."""
    a, i, j = decl_buffer((SIZE, SIZE), "int32", "A"), Var("i"), Var("j")
    return Schedule(function([a], nest([i, j], block("S", [i, j], a, write, a, read, predicate=predicate,
                                                     kind=kind))))


def accepts(act, *args) -> bool:
    try:
        act(*args)
        return True
    except ScheduleError:
        return False


@pytest.mark.parametrize(("read", "i", "j", "swap"), [
    (lambda i, j: (i, j), True, True, True),                # no dependence between iterations
    (lambda i, j: (i + 1, j), False, True, True),           # distance (1, 0), read before written
    (lambda i, j: (i, j + 1), True, False, True),           # (0, 1)
    (lambda i, j: (i + 1, j + 1), False, True, True),       # (1, 1)
    (lambda i, j: (i + 1, j + 7), True, True, True),        # never meets
])
def test_distance_vectors(read, i, j, swap):
    def write(i, j): return (i, j)
    for act, wanted in (("i", i), ("j", j), ("swap", swap)):
        sch = stencil(write, read)
        li, lj = sch.get_loops("S")
        calls = {"i": (sch.parallel, li), "j": (sch.parallel, lj), "swap": (sch.reorder, lj, li)}
        assert accepts(*calls[act]) == wanted, act


def test_a_dependence_of_distance_one_and_minus_one_keeps_its_order():
    sch = stencil(lambda i, j: (i + 1, j), lambda i, j: (i, j + 1))
    i, j = sch.get_loops("S")
    text = refused("the order j, i breaks a dependence of block S on A", sch.reorder, j, i)
    assert "with T.block(\"S\")" in text and "# <-- here" in text
    refused("cannot parallel loop i: two of its iterations may touch the same element of A", sch.parallel, i)
    refused("cannot vectorize loop i", sch.vectorize, i)
    refused("cannot bind loop i", sch.bind, i, "threadIdx.x")


def test_a_guard_can_separate_iterations():
    sch = stencil(lambda i, j: (i, j), lambda i, j: (i + 2, j), predicate=lambda i, j: all_of(i < 2))
    assert accepts(sch.parallel, sch.get_loops("S")[0])
    sch = stencil(lambda i, j: (i, j), lambda i, j: (i + 2, j), predicate=lambda i, j: all_of(i < 3))
    assert not accepts(sch.parallel, sch.get_loops("S")[0])


def test_every_iteration_writing_one_element_is_refused():
    b, a = decl_buffer((SIZE,), "int32", "B"), decl_buffer((SIZE,), "int32", "A")
    i, j = Var("i"), Var("j")
    sch = Schedule(function([a, b], nest([i, j], block("S", [i, j], b, lambda i, j: (i,), a, lambda i,
                                                       j: (j,)))))
    li, lj = sch.get_loops("S")
    refused("cannot parallel loop j", sch.parallel, lj)
    refused("the order j, i", sch.reorder, lj, li) if not accepts(sch.reorder, lj, li) else None
    sch.parallel(li)


def test_ordered_axes_are_not_run_at_once():
    sch = stencil(lambda i, j: (i, j), lambda i, j: (i, j), kind=ORDERED)
    refused("carries the ordered axis of block S", sch.parallel, sch.get_loops("S")[0])


def test_data_dependent_indices_may_be_anything():
    n = 6
    a, idx = te.placeholder((n,), "int32", name="A"), te.placeholder((n,), "int32", name="X")
    gathered = te.compute((n,), lambda i: a[idx[i]], name="G")
    sch = Schedule(create_prim_func([a, idx, gathered]))
    sch.parallel(sch.get_loops("G")[0])                    # reads anywhere, writes its own element
    b, x = decl_buffer((SIZE,), "int32", "B"), decl_buffer((SIZE,), "int32", "X")
    i = Var("i")
    scatter = block("S", [i], b, lambda v: (load(x, (v,)),), x, lambda v: (v,))
    sch = Schedule(function([b, x], nest([i], scatter)))
    refused("may touch the same element of B", sch.parallel, sch.get_loops("S")[0])


def test_blocks_of_one_nest_depend_on_each_other():
    a, b = decl_buffer((SIZE,), "int32", "A"), decl_buffer((SIZE,), "int32", "B")
    i = Var("i")

    def two(shift: int) -> Schedule:
        first = block("P", [i], b, lambda v: (v,), a, lambda v: (v,))
        second = block("Q", [i], a, lambda v: (v + 8,), b, lambda v: (v + shift,))
        return Schedule(function([a, b], nest([i], seq([first, second]))))
    same, next_one = two(0), two(1)
    same.parallel(same.get_loops("P")[0])
    text = refused("the same element of B", next_one.parallel, next_one.get_loops("Q")[0])
    assert "(blocks P and Q)" in text


def private(write, read, allocated: bool = True, extra: bool = False) -> Schedule:
    """for i: (for j: T[write(i, j)] = A[i, j]); (for k: B[i, k] = T[read(i, k)])."""
    a, b = decl_buffer((SIZE, SIZE), "int32", "A"), decl_buffer((SIZE, SIZE), "int32", "B")
    t = decl_buffer((SIZE,), "int32", "T")
    i, j, k = Var("i"), Var("j"), Var("k")
    parts = [nest([j], block("P", [i, j], t, write, a, lambda i, j: (i, j))),
             nest([k], block("Q", [i, k], b, lambda i, k: (i, k), t, read))]
    body = loop(i, N, seq(parts))
    if extra:
        m = Var("m")
        body = seq([body, nest([m], block("R", [m], b, lambda v: (v + 8, v), t, lambda v: (v,)))])
    return Schedule(function([a, b] if allocated else [a, b, t], body, (t,) if allocated else ()))


def test_a_buffer_that_lives_in_one_iteration_is_private():
    sch = private(lambda i, j: (j,), lambda i, k: (k,))
    sch.parallel(sch.get_loops("P")[0])
    sch.vectorize(sch.get_loops("Q")[1])
    interp_ok(sch)


def interp_ok(sch: Schedule) -> None:
    assert sch.get(sch.get_loops("P")[0]).kind == PARALLEL


@pytest.mark.parametrize("sch", [
    private(lambda i, j: (j,), lambda i, k: (k + 1,)),                      # reads an element not written
    private(lambda i, j: (j * 2,), lambda i, k: (k,)),                      # writes with holes
    private(lambda i, j: (j,), lambda i, k: (k,), allocated=False),         # the caller sees it
    private(lambda i, j: (j,), lambda i, k: (k,), extra=True),              # used after the loop
], ids=["beyond", "holes", "argument", "later"])
def test_a_buffer_that_is_not_private(sch):
    refused("may touch the same element of T", sch.parallel, sch.get_loops("P")[0])


def test_copies_in_blocks_of_their_own_give_an_iteration_what_it_reads():
    """Every iteration of o copies the same elements again, into buffers that an iteration of p has to itself."""
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for o in range(2):
        for p in T.parallel(4):
            for k in range(4):
                with T.block("P"):
                    vi, vk = T.axis.remap("SS", [p, k])
                    B[vi, vk] = A[vi, vk] + 1
""")
    sch = Schedule(func)
    sch.write_at(sch.get_loops("P")[1], "P", 0, "local")
    sch.read_at(sch.get_loops("P")[1], "P", 0, "local")
    sch.unroll(sch.get_loops("P")[2])
    a, b = np.arange(16, dtype="int32").reshape(4, 4), np.zeros((4, 4), "int32")
    interp.run(sch.func, a, b)
    np.testing.assert_array_equal(b, a + 1)


FORMS = [
    *[lambda x, y: x] * 4, lambda x, y: y, lambda x, y: x + 1, lambda x, y: y + 2, lambda x, y: x + y,
    lambda x, y: x * 2, lambda x, y: x // 2, lambda x, y: y % 2 + x, lambda x, y: N - 1 - x,
    lambda x, y: (x * N + y) // 3 % 5, lambda x, y: x * 0 + 3, lambda x, y: x - y + 4,
]


def random_nest(rng: random.Random) -> PrimFunc:
    """Two loops around one or two blocks that read and write A at random places."""
    a, i, j = decl_buffer((SIZE, SIZE), "int32", "A"), Var("i"), Var("j")

    def place():
        f, g = rng.choice(FORMS), rng.choice(FORMS)
        return lambda x, y: (f(x, y), g(y, x))
    guard = rng.choice([None, None, lambda x, y: all_of(x + y < 5)])
    names = ("S", "T")[:rng.randint(1, 2)]
    parts = [block(name, [i, j], a, place(), a, place(), predicate=guard) for name in names]
    return function([a], nest([i, j], seq(parts)))


def outcome(func: PrimFunc) -> np.ndarray:
    a = np.arange(SIZE * SIZE, dtype="int32").reshape(SIZE, SIZE) % 101
    interp.run(func, a)
    return a


def try_all(func: PrimFunc, counts: Counter[str]) -> None:
    """Every accepted parallel or reorder keeps the meaning and is free of races; refusals are counted."""
    want = outcome(func)
    for act in ("parallel i", "parallel j", "reorder"):
        sch = Schedule(func)
        i, j = sch.get_loops("S")
        calls = {"parallel i": (sch.parallel, i), "parallel j": (sch.parallel, j), "reorder": (sch.reorder, j, i)}
        if accepts(*calls[act]):
            counts[f"{act} accepted"] += 1
            np.testing.assert_array_equal(outcome(sch.func), want, err_msg=act)
        else:
            needless = not breaks(func, act, want)
            counts[f"{act} refused{' needlessly' if needless else ''}"] += 1


def breaks(func: PrimFunc, act: str, want: np.ndarray) -> bool:
    """True when the rewrite that was refused races or changes the meaning."""
    sch = Schedule(func)
    i, j = (sch.get(rv) for rv in sch.get_loops("S"))
    if act == "reorder":
        sch.replace(i, j.replace(body=i.replace(body=j.body)))
    else:
        old = i if act == "parallel i" else j
        sch.replace(old, old.replace(kind=PARALLEL))
    try:
        return not np.array_equal(outcome(sch.func), want)
    except InterpreterError:
        return True


def test_random_nests_are_transformed_only_where_that_is_legal():
    counts: Counter[str] = Counter()
    for seed in range(150):
        try_all(random_nest(random.Random(seed)), counts)
    for act in ("parallel i", "parallel j", "reorder"):
        assert counts[f"{act} accepted"] >= 5 and counts[f"{act} refused"] >= 20, counts
        assert counts[f"{act} refused needlessly"] <= counts[f"{act} refused"] // 2, counts


def test_planted_bug_in_the_theorem_is_caught(monkeypatch):
    """The random nests notice when reorder takes any dependence for harmless."""
    monkeypatch.setattr(legality, "first_sign", lambda vector: 0)
    with pytest.raises(AssertionError):
        for seed in range(60):
            try_all(random_nest(random.Random(seed)), Counter())


@pytest.mark.parametrize("body, independent", [
    ("T.if_then_else(vk > 0, B[vb * 8 + vk - 1], 0)", True),
    ("T.if_then_else(vk == 0, 0, B[vb * 8 + vk - 1])", True),
    ("T.if_then_else(vk < 7, B[vb * 8 + vk - 1], 0)", False),
    ("B[vb * 8 + vk // 2]", True),
    ("B[vb * 8 + T.max(vk - 1, 0)]", True),
    ("B[vb * 8 + T.max(vk - 1, -1)]", False),
])
def test_conditions_of_reads_can_separate_segments(body, independent):
    sch = Schedule(from_source(f"""
@T.prim_func
def f(B: T.Buffer((65,), "int32")):
    for b, k in T.grid(8, 8):
        with T.block("out"):
            vb = T.axis.spatial(8, b)
            vk = T.axis.opaque(8, k)
            B[vb * 8 + vk] = {body} + 1
"""))
    assert accepts(sch.parallel, sch.get_loops("out")[0]) == independent


def test_a_block_does_not_pass_another_that_writes_the_same():
    """D overwrites what W writes: it may not move to B, before W."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[vi] * 3
    for i in range(6):
        with T.block("W"):
            vi = T.axis.spatial(6, i)
            C[vi] = 7
    for i in range(6):
        with T.block("D"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi] + 1
"""))
    refused("before or after block W, and both touch C", sch.reverse_compute_at, "D", sch.get_loops("B")[0])


def test_digits_of_an_axis_fill_a_private_buffer_whatever_else_runs_around():
    """Loop r repeats what block B writes; each iteration of t reads what it has written itself."""
    sch = Schedule(from_source('''@T.prim_func
def f(A: T.Buffer((16,), "int32"), C: T.Buffer((3, 16), "int32")):
    B = T.alloc_buffer((4, 4), "int32")
    for t in range(3):
        for i, r in T.grid(16, 2):
            with T.block("B"):
                vt, v, w = T.axis.remap("SSS", [t, i, r])
                B[v // 4, v % 4] = A[v] + vt
        for i in range(16):
            with T.block("C"):
                vt, v = T.axis.remap("SS", [t, i])
                C[vt, v] = B[v // 4, v % 4] + 1
'''))
    sch.parallel(sch.get_loops("C")[0])
    a, c = np.arange(16, dtype="int32"), np.zeros((3, 16), "int32")
    interp.run(sch.func, a, c)
    np.testing.assert_array_equal(c, a + np.arange(3)[:, None] + 1)


def test_a_consumer_that_overwrites_what_its_producer_writes_keeps_its_place():
    """R reads what W wrote in the same iteration, and both write all of C, in opposite orders."""
    sch = Schedule(from_source('''@T.prim_func
def f(X: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32"), D: T.Buffer((4, 8), "int32")):
    A = T.alloc_buffer((4, 8), "int32")
    for i in range(4):
        for j in range(8):
            with T.block("W"):
                u, v = T.axis.remap("SS", [i, j])
                A[u, v] = X[u, v]
                C[u, v] = 7
        for j in range(8):
            with T.block("R"):
                u, v = T.axis.remap("SS", [i, j])
                D[u, v] = A[u, v]
                C[u, 7 - v] = A[u, v]
'''))
    refused("both touch C", sch.compute_at, "W", sch.get_loops("R")[1])
    refused("what block R reads of block W is not all computed", sch.reverse_compute_at, "R", sch.get_loops("W")[1])


def test_of_loops_that_have_no_part_in_the_element_two_differ_at_once():
    func = from_source("""
@T.prim_func
def main(B: T.Buffer((4,), "int32")):
    for a, b, c, d, e, i in T.grid(2, 2, 2, 2, 1, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = vi
""")
    sch = Schedule(func)
    nest = sch.loops_above(sch.realize("B"))
    region = Region(sch, nest)
    (touch,) = region.touches
    found = region.directions(touch.access, touch.access)
    assert len(found) == 1 + 2 * 4 + 4 * 6
    assert all(v[4:] == (0, 0) and sum(map(bool, v)) <= 2 for v in found)
