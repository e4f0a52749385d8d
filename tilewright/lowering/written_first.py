"""Whether what is read of a buffer was written before, in the same iteration of the loop around it."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import covers
from tilewright.lowering.conditions import terms_of
from tilewright.lowering.hulls import Hull, hull_of, is_dense, join_hulls
from tilewright.tir.accesses import reads_memory
from tilewright.tir.arithmetic import all_of, binary, logical_not
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import cast
from tilewright.tir.dtype import lanes_of
from tilewright.tir.expr import Broadcast, Expr, IntImm, Let, Ramp, Var
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import PARALLEL, THREAD_BINDING, Allocate, For, IfThenElse, LetStmt, Seq, Stmt, Store
from tilewright.tir.symbols import expressions, free_vars, uses_any

Box = list[Hull]                                       # by dimension
Path = tuple[tuple[Stmt, int], ...]                    # outermost first, each with which of its parts is next
MOST_BOXES = 16
_PLAIN = (For, IfThenElse, Seq, Allocate)


def is_written_first(buffer: Buffer, body: Stmt, varying: Iterable[Var], analyzer: Analyzer) -> bool:
    """True when each element of buffer that body reads is shown to have been written before, in the same run of body.
    varying: the variables that differ between runs.

    An element counts as written ahead of a read where a store of it comes first in the text, below the last statement
    around both, and runs whenever the read does: the loops around the store alone have an iteration for this element
    in which its conditions hold.
    """
    writes: list[_Accesses] = []
    for here in _accesses(buffer, body, ()):
        if here.escape or here.reads and not _are_written(here, buffer, writes, set(varying), analyzer):
            return False
        if here.writes is not None:
            writes.append(here)
    return True


@dataclass
class _Accesses:
    """What one statement accesses of a buffer, the loads before the store, and the statements down to it.

    hidden: the names that its expressions bind; escape: it passes the buffer on, so which elements is not known.
    """
    path: Path
    reads: list[tuple[Expr, ...]] = field(default_factory=list)
    writes: tuple[Expr, ...] | None = None
    hidden: set[Var] = field(default_factory=set)
    escape: bool = False


def _accesses(buffer: Buffer, stmt: Stmt, path: Path) -> Iterator[_Accesses]:
    """The accesses to buffer, in the order of the text."""
    here = _Accesses(path)
    for e in expressions(stmt):
        for node in walk(e):
            if isinstance(node, Load) and node.buffer is buffer:
                here.reads.append(node.indices)
            elif isinstance(node, Let):
                here.hidden.add(node.var)
            elif node is buffer.data:
                here.escape = True
    if isinstance(stmt, Store) and stmt.buffer is buffer and stmt.predicate is None:
        here.writes = stmt.indices
    if here.reads or here.writes is not None or here.escape:
        yield here
    for k, part in enumerate(_parts(stmt)):
        yield from _accesses(buffer, part, (*path, (stmt, k)))


def _parts(stmt: Stmt) -> Sequence[Stmt]:
    match stmt:
        case Seq(stmts):
            return stmts
        case IfThenElse(_, then, other):
            return (then,) if other is None else (then, other)
    return (stmt.body,) if hasattr(stmt, "body") else ()


def _are_written(here: _Accesses, buffer: Buffer, writes: Sequence[_Accesses], varying: set[Var],
                 analyzer: Analyzer) -> bool:
    """True when the writes ahead of a statement surely wrote the elements that it reads, wherever it runs."""
    if any(uses_any(i, here.hidden) for read in here.reads for i in read):
        return False
    with analyzer.scope():
        for stmt, k in here.path:
            if isinstance(stmt, For):
                analyzer.bind(stmt.loop_var, stmt.min, stmt.extent)
            elif isinstance(stmt, IfThenElse):
                analyzer.assume(logical_not(stmt.condition) if k else stmt.condition)
        ahead = [_Write(w, here.path, varying, analyzer) for w in writes]
        return all(_is_written(read, buffer, ahead, analyzer) for read in here.reads)


def _is_written(read: tuple[Expr, ...], buffer: Buffer, ahead: Sequence[_Write], analyzer: Analyzer) -> bool:
    """True when the writes ahead surely wrote an element of buffer, if it is read at all."""
    element, lane, lanes = _of_lane(read)
    if element is None:
        return False
    with analyzer.scope():
        analyzer.bind(lane, 0, lanes)
        for i, extent in zip(element, buffer.shape, strict=True):
            analyzer.assume(binary("lt", i, extent))
        point = [(i, IntImm(1, i.dtype)) for i in element]
        boxes: list[Box] = []
        for w in ahead:
            box = w.box(element)
            if box is not None:
                if covers(box, point, analyzer):
                    return True
                boxes.append(box)
        return any(covers(b, point, analyzer) for b in _merged(boxes, analyzer)[len(boxes):])


def _of_lane(indices: Sequence[Expr]) -> tuple[tuple[Expr, ...] | None, Var, int]:
    """The indices of one lane of a vector, the lane, and how many there are; None: a lane's index is not known."""
    lane = Var("lane", next((i.base.dtype for i in indices if isinstance(i, Ramp)), "int32"))
    lanes = max((lanes_of(i.dtype) for i in indices), default=1)
    out: list[Expr] = []
    for i in indices:
        if isinstance(i, Ramp):
            out.append(binary("add", i.base, binary("mul", i.stride, cast(i.base.dtype, lane))))
        elif isinstance(i, Broadcast) or lanes_of(i.dtype) == 1:
            out.append(i.value if isinstance(i, Broadcast) else i)
        else:
            return None, lane, lanes
    return tuple(out), lane, lanes


def _depth_of_both(write: Path, read: Path) -> int:
    """How many statements stand around both, up to the first loop over threads."""
    for depth, (x, y) in enumerate(zip(write, read, strict=False)):
        if x[0] is not y[0] or x[1] != y[1] or isinstance(x[0], For) and x[0].kind == THREAD_BINDING:
            return depth
    return min(len(write), len(read))


class _Write:
    """A write ahead of a read, seen from the last statement around both: `loops` are those around the write alone.

    The threads of a block run side by side, and may read what others wrote: their loops are around neither.
    """

    def __init__(self, write: _Accesses, read: Path, varying: set[Var], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        depth = _depth_of_both(write.path, read)
        self.around, inside = write.path[:depth], write.path[depth:]
        outer = {s.loop_var for s, _ in read if isinstance(s, For)}
        names: dict[Var, Expr] = {}                    # of loops that the read has as well, for those of the write
        self.loops: dict[Var, Hull] = {}
        self.conditions: list[Expr] = []
        self.sure = True
        lets: set[Var] = set()
        for stmt, k in inside:
            match stmt:
                case For(var, low, extent):
                    name = Var(var.name, var.dtype) if var in outer else var
                    self.loops[name] = substitute(low, names), substitute(extent, names)
                    names[var] = name
                case IfThenElse(condition):
                    self.sure = self.sure and not k and not reads_memory(condition)
                    self.conditions += [substitute(c, names) for c in terms_of(condition)]
                case LetStmt(var):
                    lets.add(var)
                case Seq() | Allocate():
                    pass
                case _:
                    self.sure = False
        scalars, lane, lanes = _of_lane(write.writes or ())
        if lanes > 1:
            self.loops[lane] = IntImm(0, lane.dtype), IntImm(lanes, lane.dtype)
        with analyzer.scope():
            for v, hull in self.loops.items():
                analyzer.bind(v, *hull)
            self.indices = [analyzer.simplify(substitute(i, names)) for i in scalars or ()]
        self.varying = {*varying, *outer, *self.loops, *(s.var for s, _ in read if isinstance(s, LetStmt))}
        self.telling = {v for i in self.indices for v in free_vars(i) if v in self.loops}
        self.used = {v: hull for v, hull in self.loops.items() if v in self.telling}
        self.whole = detect_iter_map(self.indices, self.used, None, analyzer)
        said = [*self.indices, *self.conditions, *(e for hull in self.loops.values() for e in hull)]
        known = self.sure and scalars is not None and not any(uses_any(e, lets) for e in said)
        self.sure = known and self.have_iterations()

    def box(self, element: tuple[Expr, ...]) -> Box | None:
        """A box around what is to be read of which the write stores every element; None: not known."""
        if not self.sure:
            return None
        cuts = self.cuts(self.conditions, element)
        if cuts is None:
            cuts = self.cuts(self.in_first_iterations(), element)
        box = self.image(cuts) if cuts is not None else None
        return None if box is None or any(uses_any(e, self.loops) for hull in box for e in hull) else box

    def cuts(self, conditions: Sequence[Expr] | None, element: tuple[Expr, ...]) -> list[Expr] | None:
        """The conditions on the loops that tell the element alone; None unless all others hold where the read runs."""
        out: list[Expr] = []
        for c in conditions or ():
            first = self.at_begin(c)
            left = free_vars(first)
            if left and all(v in self.telling for v in left):
                out.append(first)
            elif not self.analyzer.prove(self.of_element(first, element)):
                return None
        return None if conditions is None else out

    def in_first_iterations(self) -> list[Expr] | None:
        """The conditions in the first iteration of the loops around both that they name, as those of the start of a
        reduction do: it was then, if not just now. None where there are none, or one has a say in the element or in
        other loops."""
        named = {v for c in self.conditions for v in free_vars(c)}
        around = [s for s, _ in self.around if isinstance(s, For)]
        first = {s.loop_var: s.min for s in around if s.loop_var in named}
        bounds = [e for s in around for e in (s.min, s.extent)] + [e for hull in self.loops.values() for e in hull]
        if not first or any(uses_any(e, first.keys()) for e in (*self.indices, *bounds)):
            return None
        if any(s.kind == PARALLEL or reads_memory(s.min) or reads_memory(s.extent) for s in around):
            return None
        above: list[Expr] = []
        for s, k in self.around:
            if not isinstance(s, _PLAIN) or isinstance(s, IfThenElse) and reads_memory(s.condition):
                return None
            if isinstance(s, IfThenElse) and uses_any(s.condition, first.keys()):
                if k:
                    return None
                above += terms_of(s.condition)
        return [substitute(c, first) for c in (*above, *self.conditions)]

    def at_begin(self, condition: Expr) -> Expr:
        """The condition where the loops that do not tell the element begin."""
        for v, (low, _) in reversed(self.loops.items()):
            if v not in self.telling:
                condition = substitute(condition, {v: low})
        return condition

    def of_element(self, condition: Expr, element: tuple[Expr, ...]) -> Expr:
        """The condition in the iteration that writes what is read; in any, where the indices do not tell which it is.
        """
        mapping = self.whole if uses_any(condition, self.telling) else None
        return condition if mapping is None or not mapping.is_injective else substitute(
            condition, mapping.invert(element))

    def have_iterations(self) -> bool:
        """True when the loops have iterations. Those that tell the element may have none as long as they have as many
        each time: then nothing is read either."""
        with self.analyzer.scope():
            for v, (low, extent) in self.loops.items():
                if any(reads_memory(e) for e in (low, extent)):
                    return False
                alike = v in self.telling and not uses_any(extent, self.varying)
                if not alike and not self.analyzer.prove(binary("gt", extent, 0)):
                    return False
                self.analyzer.bind(v, low, extent)
        return True

    def image(self, cuts: list[Expr]) -> Box | None:
        """The elements that the loops store, cut by conditions on the loops that tell them, where these are a box."""
        mapping = detect_iter_map(self.indices, self.used, all_of(*cuts), self.analyzer) if cuts else self.whole
        if mapping is not None and mapping.is_bijective:
            return list(mapping.outputs)
        used = self.used
        hulls = [hull_of(i, used, self.analyzer) for i in self.indices]
        apart = sum(len(used.keys() & set(free_vars(i))) for i in self.indices) == len(used)
        known = [h for h in hulls if h is not None]
        return known if apart and not cuts and len(known) == len(hulls) and all(
            is_dense(i, used) for i in self.indices) else None


def _merged(boxes: list[Box], analyzer: Analyzer) -> list[Box]:
    """The boxes, and those that two of them make where they meet along one dimension and agree in the others."""
    out = list(boxes)
    for k, a in enumerate(out):                        # grows while it runs
        for b in out[:k] if len(out) < MOST_BOXES else ():
            apart = [d for d in range(len(a)) if not _same(a[d], b[d], analyzer)]
            d = apart[0] if apart else 0
            if len(apart) == 1 and _meet(a[d], b[d], analyzer):
                out.append([*a[:d], join_hulls([a[d], b[d]], analyzer), *a[d + 1:]])
    return out


def _same(a: Hull, b: Hull, analyzer: Analyzer) -> bool:
    return covers([a], [b], analyzer) and covers([b], [a], analyzer)


def _meet(a: Hull, b: Hull, analyzer: Analyzer) -> bool:
    """True when no point lies between two intervals."""
    return all(analyzer.prove(binary("le", x[0], binary("add", *y))) for x, y in ((a, b), (b, a)))
