"""Recurrences: scan gives the tensors whose step t is computed from the k steps before it."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.operation import ComputeOp, PlaceholderOp, post_order
from tilewright.te.read_checks import guarded_reads
from tilewright.te.tensor import Operation, Tensor, TensorRead, shape_text
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import OPAQUE, ORDERED, IterVar, Range
from tilewright.tir.node import walk


class ScanOp(Operation):
    """Output n is init[n] for the first steps, and from then on step by step update[n], which reads the outputs'
    earlier steps as state_placeholder.

    scan_axis: the steps that update computes, [k, m). spatial_axis_: the other dimensions, output by output.
    """

    def __init__(self, name: str, scan_axis: IterVar, init: tuple[Tensor, ...], update: tuple[Tensor, ...],
                 state_placeholder: tuple[Tensor, ...], inputs: tuple[Tensor, ...], tag: str = "",
                 attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, tag, attrs)
        self.scan_axis, self.init, self.update = scan_axis, init, update
        self.state_placeholder, self.inputs = state_placeholder, inputs
        self._outputs = tuple(Tensor(self, s.shape, s.dtype, n) for n, s in enumerate(state_placeholder))
        self.spatial_axis_ = tuple(IterVar.over(e, f"{name}.out{n}.i{d}", OPAQUE)
                                   for n, s in enumerate(state_placeholder) for d, e in enumerate(s.shape[1:], 1))
        self.body = scan_body(update, state_placeholder)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys((*self.init, *self.update)))


def scan(init: Any, update: Any, state_placeholder: Any, inputs: Any = None, name: str = "scan", tag: str = "",
         attrs: Mapping[str, Any] | None = None) -> Any:
    """The tensors s with s[t] = init[t] for t < k, and s[t] = update[t] where update reads s as state_placeholder.

    init: T[k, ...], update and state_placeholder: T[m, ...]; one of each, or lists for several states, which give a
    tuple. What update needs of other tensors may itself read states: those tensors are computed in every step, their
    first axis is the step. inputs, the tensors that the steps read, is accepted for TVM's sake.

    Raises TensorExpressionError where shapes or dtypes differ, where a step reads a state in itself, in a later step
    or more than k steps before the first one it computes, or another tensor of the steps in another step.
    """
    what = f"scan {name}"
    states = _tensors(state_placeholder, "state_placeholder", what)
    inits, updates = _tensors(init, "init", what), _tensors(update, "update", what)
    if not len(inits) == len(updates) == len(states) or not states:
        raise TensorExpressionError(f"{what}: {len(inits)} init(s), {len(updates)} update(s) and {len(states)} state "
                                    "placeholder(s)", "give one of each for every state")
    _check_states(states, updates, what)
    steps = states[0].shape[0]
    first = cast(steps.dtype, inits[0].shape[0])
    _check_shapes(inits, updates, states, first, steps, what)
    axis = IterVar(Range(first, binary("sub", steps, first)), Var(f"{name}.idx", steps.dtype), ORDERED)
    op = ScanOp(name, axis, _own(inits, updates), updates, states, _tensors(inputs or (), "inputs", what), tag, attrs)
    for part in op.body:
        _check_step(op, part, first, what)
    return op.outputs if len(states) > 1 else op.output(0)


def scan_body(update: Iterable[Tensor], states: Iterable[Tensor]) -> tuple[Operation, ...]:
    """The operations of one step, producers first: the updates, and what they need that depends on a state."""
    wanted, targets = set(states), {t.op for t in update}
    inside: dict[Operation, None] = {}
    for op in post_order(t.op for t in update):
        if op in targets or any(t in wanted or t.op in inside for t in op.input_tensors):
            inside[op] = None
    return tuple(inside)


def time_index(read: TensorRead) -> Expr:
    """The step that a read of a state is for, without the check that only other tensors need."""
    index = read.indices[0]
    return index.args[0] if isinstance(index, Call) and index.op == "checked_index" else index


def check_scans(ops: Sequence[Operation], results: Iterable[Operation] = ()) -> None:
    """Raise TensorExpressionError unless what the steps of scans compute is used in these steps only.

    `results` are the operations whose outputs the caller sees. Reads before the first step are errors outside of
    scans.
    """
    home: dict[Operation, ScanOp] = {}
    for scan_op in ops:
        if isinstance(scan_op, ScanOp):
            for op in dict.fromkeys((*(t.op for t in scan_op.init), *scan_op.body, *(
                    s.op for s in scan_op.state_placeholder))):
                if op in home:
                    raise TensorExpressionError(
                        f"{op.name} is a part of {home[op].name} and of another scan, {scan_op.name}",
                        "give each scan states, inits and updates of its own")
                home[op] = scan_op
    inside = {op for scan_op in home.values() for op in scan_op.body}
    for op in ops:
        if isinstance(op, ComputeOp) and op.before_start is not None and op not in inside:
            raise op.before_start
        for t in op.input_tensors:
            if t.op in inside and op is not home[t.op] and home.get(op) is not home[t.op]:
                raise TensorExpressionError(f"{op.name} reads {t.name}, which exists only in the steps of scan "
                                            f"{home[t.op].name}", f"read an output of {home[t.op].name}")
    for op in results:
        if op in home:
            raise TensorExpressionError(
                f"{op.name} is a part of scan {home[op].name} and cannot be a result",
                f"take an output of {home[op].name}, or a copy: te.compute({op.name}.shape, ...)")


def _tensors(given: Any, role: str, what: str) -> tuple[Tensor, ...]:
    tensors = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for t in tensors:
        if not isinstance(t, Tensor):
            raise TensorExpressionError(f"{what}: {role} is {described(t)}, not a tensor")
    return tensors


def _check_states(states: tuple[Tensor, ...], updates: tuple[Tensor, ...], what: str) -> None:
    for n, s in enumerate(states):
        if not isinstance(s.op, PlaceholderOp):
            raise TensorExpressionError(f"{what}: the state {s.name} is computed, not a placeholder",
                                        "te.placeholder(shape) stands for the state")
        if not s.shape:
            raise TensorExpressionError(f"{what}: the state {s.name} has no dimension for the steps")
        if s in states[:n] or updates[n] in updates[:n]:
            twice = s if s in states[:n] else updates[n]
            raise TensorExpressionError(f"{what}: {twice.name} is given for two states")
    for u in updates:
        if not isinstance(u.op, ComputeOp):
            raise TensorExpressionError(f"{what}: the update {u.name} is no te.compute",
                                        "te.compute(shape, lambda t, ...: ...) gives the value of a step")


def _check_shapes(inits: tuple[Tensor, ...], updates: tuple[Tensor, ...], states: tuple[Tensor, ...], first: Expr,
                  steps: Expr, what: str) -> None:
    analyzer = Analyzer()
    for i, u, s in zip(inits, updates, states):
        for t in (i, u):
            same = len(t.shape) == len(s.shape) and all(map(analyzer.equal, t.shape[1:], s.shape[1:]))
            if not same or t.dtype != s.dtype:
                raise TensorExpressionError(
                    f"{what}: {t.name} is {t.dtype}{shape_text(t.shape)}, its state {s.name} is "
                    f"{s.dtype}{shape_text(s.shape)}: they may differ in the number of steps only")
        for t, count in ((i, first), (u, steps), (s, steps)):
            if not analyzer.equal(t.shape[0], count):
                raise TensorExpressionError(f"{what}: {t.name} has {t.shape[0]} steps, another one has {count}")
    if isinstance(first, IntImm) and (first.value < 1 or isinstance(steps, IntImm) and steps.value < first.value):
        raise TensorExpressionError(f"{what}: {inits[0].name} gives the first {first} steps of {steps}",
                                    "the init has at least one step and no more than there are")


def _own(inits: tuple[Tensor, ...], updates: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The inits as computations of their own: a tensor that is given, or given twice, is copied."""
    out: list[Tensor] = []
    for n, t in enumerate(inits):
        if isinstance(t.op, ComputeOp) and t not in inits[:n] and t not in updates:
            out.append(t)
            continue
        axis = tuple(IterVar.over(e, f"i{d}") for d, e in enumerate(t.shape))
        out.append(ComputeOp(f"{t.op.name}_init", axis, (TensorRead(t, tuple(iv.var for iv in axis)),)).output(0))
    return tuple(out)


def _check_step(scan_op: ScanOp, op: Operation, first: Expr, what: str) -> None:
    """The operation op of a step reads states of steps that are there, and what else a step computes in that step."""
    steps = scan_op.state_placeholder[0].shape[0]
    if not isinstance(op, ComputeOp):
        raise TensorExpressionError(
            f"{what}: {op.name}, which reads a state, is {'a scan' if isinstance(op, ScanOp) else 'no te.compute'}",
            "a step is made of te.compute operations")
    analyzer = Analyzer()
    domains = [iv.domain for iv in (*op.axis, *op.reduce_axis)]
    for v in (n for e in (first, *(e for d in domains for e in (d.min, d.extent))) for n in walk(e)):
        if isinstance(v, Var):
            analyzer.assume_nonneg(v)
    if not op.axis or op.axis[0].dom is None or not analyzer.equal(op.axis[0].dom.extent, steps):
        raise TensorExpressionError(f"{what}: {op.name} reads a state and has no axis for the steps, of extent "
                                    f"{steps}, as its first", f"te.compute(({steps}, ...), lambda t, ...: ...)")
    analyzer.assume(binary("ge", first, 1))
    time = op.axis[0].var
    analyzer.bind(time, first, binary("sub", steps, first))
    for iv in (*op.axis[1:], *op.reduce_axis):
        analyzer.bind(iv.var, iv.domain.min, iv.domain.extent)
    for g in (g for e in op.body for g in guarded_reads(e)):
        with ExitStack() as stack:
            for guard in g.guards:
                stack.enter_context(analyzer.branch(guard.condition))
            remembers = g.read.tensor in scan_op.state_placeholder
            follow = [i.args[0] if isinstance(i, Call) and i.op == "checked_index" else i
                      for i in g.read.indices[remembers:] if any(n is time for n in walk(i))]
            if op.before_start is not None and not all(analyzer.prove(binary("ge", i, 0)) for i in follow):
                raise op.before_start
            if remembers:
                _check_state_read(g.read, time, first, analyzer, f"{what}: {op.name}")
            elif g.read.tensor.op in scan_op.body and not analyzer.equal(time_index(g.read), time):
                raise TensorExpressionError(
                    f"{what}: {op.name} reads {g.read}, which another step computes",
                    f"only states remember steps: read {g.read.tensor.name} at {time.name}, or make it a state")


def _check_state_read(read: TensorRead, time: Var, first: Expr, analyzer: Analyzer, who: str) -> None:
    index, state = time_index(read), read.tensor.name
    if not analyzer.prove(binary("lt", index, time)):
        raise TensorExpressionError(f"{who} reads state {state} at step {index}, which is not before step {time.name}",
                                    f"a step reads earlier ones: {state}[{time.name} - 1, ...]")
    if not analyzer.prove(binary("ge", index, 0)):
        raise TensorExpressionError(f"{who} reads state {state} at step {index}, and init gives no more than the first "
                                    f"{first} step(s), so {time.name} starts at {first}",
                                    "give the first steps with a longer init")
