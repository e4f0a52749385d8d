"""What a node defines and what it uses: free variables, other buffers, copies with definitions of their own."""
from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import BELOW, Below, getter, map_children, rewrite, walk
from tilewright.tir.structure import STRUCTURE, N, Node, PerClass, Structure

_DEFINES: PerClass[tuple[str, ...]] = PerClass(lambda cls: STRUCTURE[cls].defines)
_OWN: PerClass[Below | None] = PerClass(
    lambda cls: getter(cls, [name for name in STRUCTURE[cls].children if name not in STRUCTURE[cls].statements]))
_SCOPES: PerClass[tuple[tuple[str, ...], ...]] = PerClass(lambda cls: _scopes(STRUCTURE[cls]))


def defined(node: Node) -> list[Var | Buffer]:
    """What node itself defines: Vars, and Buffers with their pointers and the sizes that are defined with them."""
    row = STRUCTURE[type(node)]
    found: list[Any] = []
    for x in (x for name in row.defines for x in _held(getattr(node, name))):
        if isinstance(x, Buffer):
            found += [x, x.data, *[e for name in row.sizes for e in _held(getattr(x, name)) if isinstance(e, Var)]]
        else:
            found += [x] if isinstance(x, Var) else defined(x)
    return found


def _scopes(row: Structure) -> tuple[tuple[str, ...], ...]:
    """The fields of a class: (symbols that it uses, children outside of its definitions, what it defines, within)."""
    return (tuple(name for name in row.symbols if name not in row.defines),
            tuple(name for name in row.children if name not in (*row.defines, *row.within)),
            row.defines, tuple(name for name in row.children if name in row.within))


def _held(value: Any) -> Sequence[Any]:
    """What a field holds, one or several."""
    return value if isinstance(value, tuple) else list(value.values()) if isinstance(value, Mapping) else (value,)


def sizes(buffer: Buffer) -> list[Expr]:
    """The expressions in the declaration of a buffer: extents, strides and offset."""
    return [e for e in (*buffer.shape, *buffer.strides, buffer.elem_offset) if isinstance(e, Expr)]


def expressions(stmt: Node) -> list[Expr]:
    """The expressions that stmt itself evaluates, without those of the statements below it."""
    own = _OWN[type(stmt)]
    found = [] if own is None else [e for e in own(stmt) if isinstance(e, Expr)]
    for name in _DEFINES[type(stmt)]:
        found += [d for b in _held(getattr(stmt, name)) if isinstance(b, Buffer) for d in b.shape]
    return found


def free_vars(node: Node) -> dict[Var, None]:
    """The variables that node uses and does not define, in the order of their first use.

    The sizes of a buffer count where it is defined, not where it is accessed.
    """
    found: dict[Var, None] = {}
    for n in walk(node):
        if type(n) is Var:
            found[n] = None
        elif _DEFINES[type(n)]:
            break
    else:
        return found                                       # most expressions
    found.clear()

    def visit(n: Node, around: frozenset[Any]) -> None:
        if isinstance(n, Var):
            if n not in around:
                found[n] = None
            return
        row = STRUCTURE[type(n)]
        inside = around.union(defined(n)) if row.defines else around
        for name in row.compared:
            for x in _held(getattr(n, name)) if name in row.children or name in row.defines else ():
                if isinstance(x, Buffer):
                    for e in sizes(x):
                        visit(e, inside)
                elif isinstance(x, Node) and name in row.children:
                    visit(x, inside if name in row.within else around)

    visit(node, frozenset())
    return found


def uses_any(node: Node, variables: Container[Any]) -> bool:
    """True when node reads one of the variables (a set or mapping of Vars)."""
    if not variables:
        return False
    assert type(variables) is not tuple, "`in` on a tuple of Vars builds expressions"
    stack: list[Any] = [node]
    while stack:
        top = stack.pop()
        below = BELOW[type(top)]
        if below is not None:
            stack += below(top)
        elif type(top) is Var and top in variables:
            return True
    return False


def replace_buffers(node: N, table: Mapping[Buffer, Buffer]) -> N:
    """node with every use and every definition of a key (by identity), and of its pointer, turned to its value."""
    data = {old.data: new.data for old, new in table.items() if old.data is not new.data}

    def swap(n: Any) -> Node | None:
        names = STRUCTURE[type(n)].symbols
        return map_children(n, lambda x: table.get(x, x), names) if names else data.get(n)
    return rewrite(node, swap)  # type: ignore[no-any-return]


def map_scoped(node: N, fn: Callable[[Any], Any], define: Callable[[Any], Any], use: Callable[[Any], Any]) -> N:
    """node with fn applied to its children, use to the symbols that it uses and define to what it defines.

    define is called before fn sees the fields in which the definitions hold.
    """
    used, outside, defines, inside = _SCOPES[type(node)]
    new = map_children(node, fn, outside)
    if used:
        new = map_children(new, use, used)
    return map_children(map_children(new, define, defines), fn, inside) if defines else new


def fresh_copy(node: N, label: Callable[[str], str] = str) -> N:
    """node with Vars and Buffers of its own for all that it and the nodes below it define.

    Labels, such as the names of blocks, become label(old), inner ones first.
    """
    table: dict[Any, Any] = {}
    done: dict[int, Any] = {}                              # shared nodes are copied once

    def copy(n: Any) -> Any:
        if isinstance(n, Var) or not isinstance(n, Node):
            return table.get(n, n)
        if id(n) not in done:
            done[id(n)] = copied(n)
        return done[id(n)]

    def copied(n: Any) -> Any:
        row = STRUCTURE[type(n)]
        if row.sizes:
            table.update((x, _like(x)) for x in defined(n) if isinstance(x, Var) and x not in table)
        new = map_scoped(n, copy, define, lambda x: table.get(x, x))
        return map_children(new, label, row.labels) if row.labels else new

    def define(x: Any) -> Any:
        if isinstance(x, Mapping):
            return {table.get(key, key): define(value) for key, value in x.items()}
        if not isinstance(x, (Var, Buffer)):
            return copy(x)
        if x not in table:
            table[x] = _like(x) if isinstance(x, Var) else renewed(x)
        return table[x]

    def renewed(b: Buffer) -> Buffer:
        return b.replace(shape=tuple(map(copy, b.shape)), strides=tuple(map(copy, b.strides)),
                         elem_offset=copy(b.elem_offset), data=define(b.data))

    return copy(node)  # type: ignore[no-any-return]


def _like(var: Var) -> Var:
    return Var(var.name, var.type)
