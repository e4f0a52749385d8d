"""Do the reads of a tensor expression stay inside the tensors? Decided where the expression is written."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.support.errors import TensorExpressionError
from tilewright.te.constant import ConstantOp
from tilewright.te.reduction import Reduce
from tilewright.te.tensor import TensorRead, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Not, Select, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import Node, children, map_children, rewrite, walk


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition that holds wherever an expression is evaluated, and the node that evaluates it."""
    condition: Expr
    node: Node


@dataclass(frozen=True, eq=False)
class Guarded:
    """A read under the guards of the choices around it."""
    read: TensorRead
    guards: tuple[Guard, ...]


def checked_reads(body: tuple[Expr, ...], axes: Sequence[IterVar],
                  what: str) -> tuple[tuple[Expr, ...], TensorExpressionError | None]:
    """body in which every read stays inside its tensor, or is checked while the kernel runs.

    A read that is proven inside stays as it is. One that is inside only because of a `te.select` around it makes
    that select an `if_then_else`, which evaluates only what it chooses. An index of which neither is known (extents
    that are different variables, indices that are no sums of axes) is wrapped in `checked_index`. Raises
    TensorExpressionError for an index that certainly leaves its tensor.

    One such error comes back as the second part, since it is none in a scan, which gives the first steps otherwise: an
    index that follows the first axis and is too small at its beginning only.
    """
    if any(isinstance(iv.domain.extent, IntImm) and iv.domain.extent.value == 0 for iv in axes):
        return body, None
    found = [g for e in body for g in guarded_reads(e)]
    if not found:
        return body, None
    check = _Check(axes, what)
    for g in found:
        check.read(g)
    return tuple(_rebuilt(body, check)) if check.open or check.lazy else body, check.before_start


def guarded_reads(root: Expr) -> Iterator[Guarded]:
    """Every read with its guards, each pair once."""
    stack: list[tuple[Node, tuple[Guard, ...]]] = [(root, ())]
    seen: set[tuple[int, tuple[int, ...]]] = set()
    while stack:
        node, guards = stack.pop()
        key = id(node), tuple(map(id, guards))
        if key in seen:
            continue
        seen.add(key)
        if isinstance(node, TensorRead):
            yield Guarded(node, guards)
        stack.extend(reversed(list(_parts(node, guards))))


def _parts(node: Node, guards: tuple[Guard, ...]) -> Iterator[tuple[Node, tuple[Guard, ...]]]:
    """The children of node with the guards under which they are evaluated."""
    choice = node.args if isinstance(node, Call) and node.op == "if_then_else" else \
        (node.condition, node.a, node.b) if isinstance(node, Select) else None
    if choice is not None:
        condition, a, b = choice
        yield condition, guards
        yield a, (*guards, Guard(condition, node))
        yield b, (*guards, Guard(Not(condition), node))
    elif isinstance(node, Binary) and node.op == "and":
        yield node.a, guards
        yield node.b, (*guards, Guard(node.a, node))
    elif isinstance(node, Reduce):
        inner = guards if node.condition is None else (*guards, Guard(node.condition, node))
        yield from ((e, inner) for e in node.source)
        yield from ((e, guards) for e in (*node.init, *(() if node.condition is None else (node.condition,))))
    else:
        yield from ((e, guards) for e in children(node))


class _Check:
    """What is known of the axes, and what was found: `open` indices by read, `lazy` selects."""

    def __init__(self, axes: Sequence[IterVar], what: str) -> None:
        self.what, self.analyzer = what, Analyzer()
        self.domains: dict[Var, tuple[Expr, Expr]] = {}
        for iv in axes:
            for v in (n for d in (iv.domain.min, iv.domain.extent) for n in walk(d)):
                if isinstance(v, Var) and v not in self.domains:
                    self.analyzer.assume_nonneg(v)
        for iv in axes:
            self.analyzer.bind(iv.var, iv.domain.min, iv.domain.extent)
            self.domains[iv.var] = iv.domain.min, iv.domain.extent
        self.open: dict[int, set[int]] = {}
        self.lazy: dict[int, Select] = {}
        self.kept: list[TensorRead] = []             # keeps the ids above valid
        self.time = axes[0].var if axes else None
        self.before_start: TensorExpressionError | None = None

    def read(self, g: Guarded) -> None:
        for v in (n for extent in g.read.tensor.shape for n in walk(extent)):
            if isinstance(v, Var) and v not in self.domains:
                self.analyzer.assume_nonneg(v)
        for k, (index, extent) in enumerate(zip(g.read.indices, g.read.tensor.shape)):
            if self.proven(index, extent, ()):
                continue
            if g.guards and self.proven(index, extent, g.guards):
                self.lazy.update((id(c.node), c.node) for c in g.guards if isinstance(c.node, Select))
                continue
            error = None if g.guards else self.certain_error(g.read, k)
            if error is not None:
                if not self.misses_the_start(g.read, k):
                    raise error
                self.before_start = self.before_start or error
                continue
            if isinstance(g.read.tensor.op, ConstantOp):
                raise TensorExpressionError(f"{self.what}: {g.read}: index {k} of a constant is not known to stay "
                                            f"inside of the shape {shape_text(g.read.tensor.shape)}",
                                            "cut it: te.max(te.min(index, extent - 1), 0); or make the array an "
                                            "argument")
            if k == 0 and any(isinstance(n, TensorRead) for n in walk(index)):
                continue                             # code generation checks the whole address of such a read
            self.kept.append(g.read)
            self.open.setdefault(id(g.read), set()).add(k)
            self.lazy.update((id(c.node), c.node) for c in g.guards if isinstance(c.node, Select))

    def proven(self, index: Expr, extent: Expr, guards: tuple[Guard, ...]) -> bool:
        start, count = self.domains.get(index, (None, None)) if isinstance(index, Var) else (None, None)
        if isinstance(start, IntImm) and start.value == 0 and (
                count is extent or isinstance(count, IntImm) and isinstance(extent, IntImm)
                and count.value <= extent.value):
            return True                                  # most reads: along an axis as long as the dimension
        with ExitStack() as stack:
            for g in guards:
                stack.enter_context(self.analyzer.branch(g.condition))
            prove, (x, n) = self.analyzer.prove, _same_width(index, extent)
            return prove(binary("ge", x, 0)) and prove(binary("lt", x, n))

    def misses_the_start(self, read: TensorRead, k: int) -> bool:
        """True for an index that follows the first axis and stays below the end of the dimension."""
        index, extent = read.indices[k], read.tensor.shape[k]
        return any(n is self.time for n in walk(index)) and self.analyzer.prove(
            binary("lt", *_same_width(index, extent)))

    def certain_error(self, read: TensorRead, k: int) -> TensorExpressionError | None:
        """The error for a sum of axes whose first or last value lies outside."""
        terms, shift = linear(read.indices[k])
        low: Expr = IntImm(shift, "int64")
        high = low
        for atom, factor in terms.items():
            start, extent = self.domains.get(atom, (None, None)) if isinstance(atom, Var) else (None, None)
            if start is None or extent is None:
                return None
            ends = [binary("mul", cast("int64", e), IntImm(factor, "int64"))
                    for e in (start, binary("sub", binary("add", start, extent), 1))]
            ends = ends if factor > 0 else ends[::-1]
            low, high = binary("add", low, ends[0]), binary("add", high, ends[1])
        size = cast("int64", read.tensor.shape[k])
        simplify, prove = self.analyzer.simplify, self.analyzer.prove
        if prove(binary("lt", low, 0)) or prove(binary("ge", high, size)):
            first, last = _plain(simplify(low)), _plain(simplify(high))
            return TensorExpressionError(f"{self.what}: {read}: index {k} runs from {first} to {last}, outside of the "
                                         f"shape {shape_text(read.tensor.shape)} of {read.tensor.name}",
                                         "shorten the axis, or guard the read: te.if_then_else(condition, A[...], 0.0)")
        return None


def _rebuilt(body: tuple[Expr, ...], check: _Check) -> Iterator[Expr]:
    """body with the open indices checked and the lazy selects turned; a reduction's components share their source."""
    def step(node: Node, old: Node) -> Node | None:
        if isinstance(node, TensorRead) and id(old) in check.open:
            chosen = check.open[id(old)]
            indices = tuple(checked_index(i, extent) if k in chosen else i
                            for k, (i, extent) in enumerate(zip(node.indices, node.tensor.shape)))
            return TensorRead(node.tensor, indices)
        if isinstance(node, Select) and id(old) in check.lazy:
            return Call("if_then_else", (node.condition, node.a, node.b), node.dtype)
        return None

    first = body[0]
    if not isinstance(first, Reduce):
        yield from (_rewritten(e, step) for e in body)
        return
    source = tuple(_rewritten(e, step) for e in first.source)
    condition = None if first.condition is None else _rewritten(first.condition, step)
    init = tuple(_rewritten(e, step) for e in first.init)
    yield from (e.replace(source=source, condition=condition, init=init) for e in body)


def _rewritten(root: Expr, step: Callable[[Node, Node], Node | None]) -> Expr:
    """root rebuilt bottom-up: a node becomes step(its rebuilt form, itself), or its rebuilt form for None."""
    done: dict[int, Node] = {}

    def visit(old: Node) -> Node:
        if id(old) not in done:
            new = map_children(old, visit)
            made = step(new, old)
            done[id(old)] = new if made is None else made
        return done[id(old)]

    out = visit(root)
    assert isinstance(out, Expr)
    return out


def _plain(e: Expr) -> str:
    """e as the user would write it, without the widening."""
    return str(rewrite(e, lambda n: n.value if isinstance(n, Cast) else IntImm(n.value)
                       if isinstance(n, IntImm) and -2**31 <= n.value < 2**31 else None))


def checked_index(index: Expr, extent: Expr) -> Expr:
    """index, which is checked while the kernel runs."""
    x, n = _same_width(index, extent)
    return Call("checked_index", (x, n), x.dtype)


def _same_width(index: Expr, extent: Expr) -> tuple[Expr, Expr]:
    """Both as int32, or int64 where one is wider (an index from data has any integer type)."""
    small = all(dt.bits_of(e.dtype) < 32 or e.dtype == "int32" for e in (index, extent))
    dtype = "int32" if small else "int64"
    return cast(dtype, index), cast(dtype, extent)
