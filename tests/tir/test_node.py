"""walk, rewrite and substitute are written once, for every node."""

import pytest
from tir_programs import elementwise, matmul

from tilewright.tir import (
    Binary,
    Call,
    For,
    IntImm,
    Load,
    Store,
    Var,
    decl_buffer,
    map_children,
    rewrite,
    rewrite_top_down,
    structural_equal,
    substitute,
    walk,
)

x, y = Var("x"), Var("y")


def test_walk_is_preorder_in_program_order():
    assert [type(n).__name__ for n in walk(x * 2 + y)] == ["Binary", "Binary", "Var", "IntImm", "Var"]
    func = matmul()
    assert [n.loop_var.name for n in walk(func) if isinstance(n, For)] == ["i", "j", "k"]
    stores = [n for n in walk(func) if isinstance(n, Store)]
    assert len(stores) == 2 and sum(isinstance(n, Load) for n in walk(func)) == 3


def test_rewrite_returns_the_same_object_when_nothing_changes():
    func = matmul()
    assert rewrite(func, lambda n: None) is func
    assert map_children(x, lambda n: n) is x
    changed = rewrite(func, lambda n: IntImm(9) if isinstance(n, IntImm) and n.value == 6 else None)
    assert changed is not func and changed.buffer_map is func.buffer_map


def test_rewrite_is_bottom_up_and_visits_shared_nodes_once():
    shared = x + 1
    e, seen = shared * shared, []
    out = rewrite(e, lambda n: seen.append(n) or (y if n is x else None))
    assert seen.count(x) == 1 and out.a is out.b and structural_equal(out, (y + 1) * (y + 1))
    grown = rewrite(x, lambda n: Binary("add", n, IntImm(1)) if n is x else None)
    assert structural_equal(grown, x + 1)


def test_rewrite_top_down_stops_where_it_replaces():
    out = rewrite_top_down(
        (x + 1) * (x + 1), lambda n: y if isinstance(n, Binary) and n.op == "add" else None
    )
    assert structural_equal(out, y * y)


def test_substitute():
    assert structural_equal(substitute(x + y * x, {x: y + 1}), (y + 1) + y * (y + 1))
    assert substitute(x + y, {}) is not None and substitute(y, {x: y}) is y
    func = elementwise(4, lambda i: A[i] + 1.0, A := decl_buffer((4,), name="A"))
    loop = func.body
    moved = substitute(loop.body, {loop.loop_var: IntImm(2)})
    assert moved.indices[0].value == 2 and moved.value.a.indices[0].value == 2
    assert moved.buffer is loop.body.buffer


def test_nodes_compare_by_identity():
    assert x.same_as(x) and not x.same_as(y)
    assert matmul() != matmul()


def test_an_error_of_what_maps_children_ends_nothing_early():
    """StopIteration is no sign that there are no more children."""
    calls = Call("max", (IntImm(1), IntImm(2), IntImm(3)), "int32")

    def fails_at_the_second(e):
        if e.value == 2:
            raise StopIteration
        return e

    with pytest.raises(StopIteration):
        map_children(calls, fails_at_the_second)
