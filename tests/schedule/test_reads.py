"""Reads outside of the bodies of blocks count: every primitive sees them, and handles or refuses them."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tests.schedule import random_reads
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError
from tilewright.tir import PrimFunc, interp

HEAD = '''
@T.prim_func
def f(A: T.Buffer((16,), "int32"), C: T.Buffer((17,), "int32")):
'''
PRODUCER = HEAD + '''
    B = T.alloc_buffer((17,), "int32")
    for i in range(17):
        with T.block("B"):
            vi = T.axis.spatial(17, i)
            B[vi] = A[vi % 16] * 3 - 11
'''
# Each reads X[E] in another place; Z is a statement of the block.
PLACES = {
    "predicate": '''
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.where(X[E] > 4)
            Z
''',
    "binding": '''
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, T.min(T.max(X[E], 0), 15))
            Z
''',
    "domain": '''
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(T.max(X[7], 16), i)
            Z
''',
    "extent": '''
    for i in range(16):
        for k in range(X[E] % 3):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                vk = T.axis.opaque(3, k)
                Z
''',
    "minimum": '''
    for i in range(16):
        for k in range(T.min(X[E], 2), 3):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                Z
''',
    "if": '''
    for i in range(16):
        if X[E] > 4:
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                Z
''',
    "let": '''
    for i in range(16):
        x: T.int32 = X[E]
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.where(x > 4)
            Z
''',
    "let of an axis": '''
    for i in range(16):
        x: T.int32 = T.min(T.max(X[E], 0), 15)
        with T.block("C"):
            vi = T.axis.spatial(16, x)
            Z
''',
    "body": '''
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            if X[E.replace(i, vi)] > 4:
                Z
'''.replace("X[E.replace(i, vi)]", "X[F]"),
    "index": '''
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[T.min(T.max(X[F], 0), 15) + 1] = 5
''',
    "loop in the body": '''
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            for k in range(X[F] % 3):
                Z
''',
    "start": '''
    for i, k in T.grid(16, 2):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi + 1] = X[F]
            C[vi + 1] = C[vi + 1] + 1
''',
}
STORE = "C[vi + 1] = 5"


def program(place: str, head: str, buffer: str, element: str) -> PrimFunc:
    """head, then a block C that stores to C[vi + 1], with a read of an element of buffer in a place."""
    text = PLACES[place].replace("F", element.replace("i", "vi")).replace("E", element).replace("X", buffer)
    return from_source(head + text.replace("Z", STORE))


def reader(place: str) -> PrimFunc:
    """B is made first, and read at other elements in the place."""
    return program(place, PRODUCER, "B", "15 - i")


def chain(place: str) -> PrimFunc:
    """Each iteration reads in the place what the one before wrote."""
    return program(place, HEAD, "C", "i")


def result(func: PrimFunc) -> np.ndarray:
    """C under the interpreter, for inputs that make conditions differ."""
    a = np.random.default_rng(3).integers(-9, 9, 16).astype("int32")
    c = np.arange(17, dtype="int32") % 7 + 3
    interp.run(func, a, c)
    return c


def handled_or_refused(func: PrimFunc, change: Callable[[Schedule], object]) -> bool:
    """The change is refused, or means the same (the interpreter raises on races); True when it is made."""
    want, sch = result(func), Schedule(func)
    try:
        change(sch)
    except ScheduleError:
        return False
    np.testing.assert_array_equal(result(sch.func), want, str(sch.func))
    return True


def swap(sch: Schedule) -> None:
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.reorder(inner, outer)


CHAINS: dict[str, Callable[[Schedule], object]] = {
    "parallel": lambda s: s.parallel(s.get_loops("C")[0]),
    "vectorize": lambda s: s.vectorize(s.get_loops("C")[0]),
    "bind": lambda s: s.bind(s.get_loops("C")[0], "blockIdx.x"),
    "reorder": swap,
    "cache_write": lambda s: s.cache_write("C", 0, "local"),
    "reindex": lambda s: s.reindex("C", ("write", 0)),
}
MOVES: dict[str, Callable[[Schedule], object]] = {
    "compute_inline": lambda s: s.compute_inline("B"),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("C"),
    "merge": lambda s: s.merge(s.get_loops("B")[0], s.get_loops("C")[0]),
    "compute_at": lambda s: s.compute_at("B", s.get_loops("C")[0]),
    "compute_at inside": lambda s: s.compute_at("B", s.get_loops("C")[-1]),
    "reverse_compute_at": lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]),
    "cache_read": lambda s: s.cache_read("C", "B", "local"),
    "cache_write": lambda s: s.cache_write("B", 0, "local"),
    "cache_inplace": lambda s: s.cache_inplace("C", "C", "local"),
    "reindex": lambda s: s.reindex("C", "B"),
    "transform_layout": lambda s: s.transform_layout("B", ("write", 0), lambda i: (i % 4, i // 4)),
    "set_scope": lambda s: s.set_scope("B", 0, "local"),
    "blockize": lambda s: s.blockize(s.get_loops("C")[-1]),
    "blockize both": lambda s: s.blockize([s.get_block("B"), s.get_block("C")]),
    "decompose_reduction": lambda s: s.decompose_reduction("C", s.get_loops("C")[0]),
    "fuse": lambda s: s.fuse(*s.get_loops("C")),
    "split": lambda s: s.split(s.get_loops("C")[-1], [None, 2]),
    "loop_partition": lambda s: s.loop_partition(s.get_loops("C")[0], [5, None]),
    "parallel": lambda s: s.parallel(s.get_loops("C")[0]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("change", CHAINS)
def test_a_chain_through_any_place_keeps_its_order(place, change):
    assert not handled_or_refused(chain(place), CHAINS[change])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("change", MOVES)
def test_a_reader_of_any_kind_stays_behind_the_producer(place, change):
    handled_or_refused(reader(place), MOVES[change])


@pytest.mark.parametrize("place", PLACES)
def test_consumers_and_producers_are_known_by_every_read(place):
    sch = Schedule(reader(place))
    assert [b.name for b in sch.get_consumers("B")] == ["C"]
    assert [b.name for b in sch.get_producers("C")] == ["B"]


@pytest.mark.parametrize("place", PLACES)
def test_an_expression_is_put_into_every_place_that_reads_it(place):
    func = reader(place)
    assert handled_or_refused(func, MOVES["compute_inline"])
    sch = Schedule(func)
    sch.compute_inline("B")
    assert "B[" not in str(sch.func).replace("Buffer", "")


@pytest.mark.parametrize("place", [p for p in PLACES if p not in ("binding", "let of an axis")])
def test_a_producer_moves_to_where_a_place_reads_it(place):
    assert handled_or_refused(reader(place), MOVES["compute_at"])


def test_a_buffer_that_a_condition_reads_is_not_private():
    func = from_source(HEAD + '''
    B = T.alloc_buffer((1,), "int32")
    for i in range(16):
        with T.block("C"):
            T.where(B[0] > 0 or i == 0)
            vi = T.axis.spatial(16, i)
            C[vi] = 1
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[0] = A[vi]
''')
    with pytest.raises(ScheduleError, match="two of its iterations may touch the same element of B"):
        (sch := Schedule(func)).parallel(sch.get_loops("B")[0])


def test_loops_whose_bounds_are_written_below_them_are_not_rebuilt():
    func = from_source(HEAD + '''
    for i in range(C[0]):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.where(i < 16)
            C[vi] = 1
''')
    for change in (lambda s, i: s.split(i, [None, 2]), lambda s, i: s.loop_partition(i, [1, None]),
                   lambda s, i: s.fuse(i)):
        sch = Schedule(func)
        with pytest.raises(ScheduleError, match="C is read by the bounds of a loop, and written below it"):
            change(sch, sch.get_loops("C")[0])


SUM = HEAD + '''
    for i, k in T.grid(16, 4):
        with T.block("S"):
            vi = T.axis.spatial(16, i)
            vk = T.axis.reduce(4, STEP)
            T.where(CONDITION)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + (A[(vi + vk) % 16] + 1)
'''


@pytest.mark.parametrize(("step", "condition", "legal"), [
    ("k", "k > 0", False), ("k", "A[k] > 0", False), ("k", "i + k > 3", False), ("3 - k", "k < 5", False),
    ("k", "k < 3", True), ("k", "i < 9", True), ("k", "A[i] > 0", True)])
@pytest.mark.parametrize("how", ["decompose_reduction", "rfactor", "bind"])
def test_a_reduction_whose_first_step_may_not_run_is_not_started_elsewhere(step, condition, legal, how):
    func = from_source(SUM.replace("STEP", step).replace("CONDITION", condition))

    def change(sch: Schedule) -> None:
        k = sch.get_loops("S")[1]
        if how == "bind":
            sch.bind(k, "threadIdx.x")
        else:
            getattr(sch, how)(*((["S", k]) if how == "decompose_reduction" else (k, 0)))

    assert handled_or_refused(func, change) == legal


@pytest.mark.parametrize("extent", ["A[0] % 4", "i // 4"])
def test_a_reduction_whose_loop_may_not_run_is_not_started_elsewhere(extent):
    text = SUM.replace("for i, k in T.grid(16, 4):", f"for i in range(16):\n      for k in range({extent}):")
    func = from_source(text.replace("STEP", "k").replace("CONDITION", "True"))
    for how in ("decompose_reduction", "rfactor"):
        assert not handled_or_refused(func, lambda s, how=how: getattr(s, how)(
            *((["S", s.get_loops("S")[1]]) if how == "decompose_reduction" else (s.get_loops("S")[1], 0))))


def test_a_sum_that_its_own_condition_reads_keeps_the_order_of_its_steps():
    func = from_source(SUM.replace("STEP", "k").replace("CONDITION", "C[i] < 9"))
    for change in (lambda s: s.reorder(*s.get_loops("S")[::-1]), lambda s: s.rfactor(s.get_loops("S")[1], 0),
                   lambda s: s.decompose_reduction("S", s.get_loops("S")[1])):
        handled_or_refused(func, change)


IN_PLACE = HEAD + '''
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[FROM] * 2
    for i in range(16):
        with T.block("W"):
            vi = T.axis.spatial(16, i)
            A[vi] = B[vi] + 1
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
'''


@pytest.mark.parametrize(("element", "legal"), [
    ("vi", True), ("15 - vi", False), ("T.max(vi - 1, 0)", False), ("T.min(vi + 1, 15)", True),
    ("(vi + 5) % 16", False)])
def test_an_update_in_place_joins_its_producer_where_nothing_is_read_after_it_is_written(element, legal):
    func = from_source(IN_PLACE.replace("FROM", element))
    made = handled_or_refused(func, lambda s: s.reverse_compute_inline("W"))
    assert made <= legal and (made or element not in ("vi",))
    handled_or_refused(func, lambda s: s.compute_inline("B"))


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_single_primitives_on_random_programs(first):
    wrong = [text for seed in range(first, first + 10) for text in random_reads.check(seed)]
    assert not wrong, "\n\n".join(wrong)


def test_a_bound_that_the_loop_changes_tells_nothing_of_what_is_read_below_it():
    func = from_source(HEAD + '''
    for k in range(A[0]):
        if k < A[0]:
            C[k] = C[k] + 1
        A[0] = 2
''')
    a, c = np.full(16, 5, "int32"), np.zeros(17, "int32")
    tw.build(func)(a, c)
    assert c.tolist() == [1, 1] + [0] * 15


@pytest.mark.parametrize(("body", "legal"), [
    ("x: T.int32 = vi * 65536 * 65536 // 65536 // 65536; B[x] = A[vi]", False),      # 0 for every vi: values wrap
    ("x: T.int32 = vi * 65536 // 65536; B[x] = A[vi]", True),
    ("B[T.Let(x, where={x: vi * 65536 * 65536 // 65536 // 65536})] = A[vi]", False),
])
def test_a_let_that_may_wrap_tells_nothing_of_an_index(body, legal):
    lines = "\n            ".join(body.split("; "))
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[0:16])
            {lines}
""")
    given, outs = np.arange(16, dtype="int32"), np.zeros((2, 16), "int32")
    interp.run(func, given, outs[0])
    tw.build(func)(given, outs[1])
    np.testing.assert_array_equal(outs, [given if legal else [15] + 15 * [0]] * 2)
    sch = Schedule(func)
    if legal:
        sch.parallel(sch.get_loops("B")[0])
    else:
        with pytest.raises(ScheduleError, match="may touch the same element of B"):
            sch.parallel(sch.get_loops("B")[0])


def test_a_let_around_a_block_that_may_wrap_tells_nothing_of_its_axis():
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        x: T.int32 = i * 65536 * 65536 // 65536 // 65536
        with T.block("B"):
            vi = T.axis.spatial(16, x)
            B[vi] = A[vi] + B[vi]
"""))
    with pytest.raises(ScheduleError, match="may touch the same element of B"):
        sch.parallel(sch.get_loops("B")[0])
