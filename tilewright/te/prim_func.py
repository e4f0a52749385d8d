"""Tensor expressions -> a PrimFunc of blocks: one block per operation, loops in the order of its axes."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tilewright.support.errors import TensorExpressionError, described, listed
from tilewright.support.names import NameSupply
from tilewright.te.constant import ConstantOp
from tilewright.te.operation import ComputeOp, ExternOp, PlaceholderOp, post_order
from tilewright.te.read_checks import checked_index
from tilewright.te.reduction import Reduce
from tilewright.te.regions import regions_read
from tilewright.te.scan import ScanOp, check_scans, time_index
from tilewright.te.tensor import Operation, Tensor, TensorRead
from tilewright.tir.arithmetic import binary, if_then_else
from tilewright.tir.buffer import Buffer, Load, decl_buffer, element_region, whole_region
from tilewright.tir.constant_table import row_major_index, table_element
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, ORDERED, IterVar, Range
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, LetStmt, PrimFunc, Stmt, Store, loop, seq
from tilewright.tir.symbols import free_vars

TRUE = IntImm(1, "bool")


def create_prim_func(args: Sequence[Tensor | Var], index_dtype_override: str | None = None, *,
                     name: str = "main") -> PrimFunc:
    """The function of args (tensors, and scalar Vars, in the order of the call) that computes its outputs.

    Tensors that are neither arguments nor placeholders become buffers of the root block. index_dtype_override, in TVM
    the type of all indices ("int32" or "int64"), changes nothing: the lowering takes 64 bits where bounds ask for
    them. Raises TensorExpressionError when a placeholder is missing from args, or a variable is bound by no argument.
    """
    if index_dtype_override is not None and str(index_dtype_override) not in ("int32", "int64"):
        raise TensorExpressionError(f"create_prim_func: index_dtype_override is {described(index_dtype_override)}, not "
                                    "int32 or int64", "name= gives the name of the function")
    return lower_ops(args, name=name)[0]


def lower_ops(args: Sequence[Tensor | Var], outputs: Iterable[Operation] = (),
              name: str = "main", unwritten: Collection[Operation] = (),
              partial: bool = False) -> tuple[PrimFunc, dict[Operation, str]]:
    """(the function of args, the name of the block of each operation).

    `outputs` are computed whether they are among args or not. Arguments that operations of `unwritten` compute are
    parameters that nothing uses: their values go to buffers of the root block. partial: variables that nothing binds
    become parameters behind the others. Raises as create_prim_func does.
    """
    args = argument_list(args)
    results = [*outputs, *(a.op for a in args if isinstance(a, Tensor))]
    ops = post_order(results)
    check_scans(ops, results)
    lowering = _Lowering(args, ops, unwritten)
    nests = [nest for op in ops if not isinstance(op, PlaceholderOp) for nest in lowering.nests(op)]
    free = _free(lowering, nests)
    if free and not partial:
        raise TensorExpressionError(f"the variable {free[0].name} is bound by no argument: it is neither an axis of "
                                    "the operation that uses it, nor an extent of an argument's shape",
                                    f"pass {free[0].name} in the arguments as a scalar")
    params = [*lowering.params, *((v, None) for v in free)]
    root = Block("root", (), (), (), seq(nests), alloc_buffers=tuple(lowering.allocated))
    buffer_map = {p: b for p, b in params if b is not None}
    func = PrimFunc(tuple(p for p, _ in params), BlockRealize((), TRUE, root), buffer_map,
                    {"global_symbol": name, "tir.noalias": True})
    return func, lowering.block_names


def argument_list(args: Any) -> list[Any]:
    """The arguments of a function. Raises TensorExpressionError unless they are tensors and scalars, each once."""
    given = None if isinstance(args, Tensor) else listed(args)
    if given is None:
        raise TensorExpressionError(f"the arguments are {described(args)}, not a list", "write [A, B, C]")
    args = given
    for position, a in enumerate(args):
        if not isinstance(a, (Tensor, Var)):
            raise TensorExpressionError(f"argument {position} is {described(a)}",
                                        "arguments are te tensors and te.var scalars")
        if isinstance(a, Tensor) and isinstance(a.op, ConstantOp):
            raise TensorExpressionError(f"argument {position}, {a.name}, is a constant, which no caller gives")
        if any(a is other for other in args[:position]):
            raise TensorExpressionError(f"{a.name} is given twice in the arguments")
    return args


class _Lowering:
    """Buffers and names of one function while its operations are lowered."""

    def __init__(self, args: Sequence[Tensor | Var], ops: Sequence[Operation],
                 unwritten: Collection[Operation]) -> None:
        names = NameSupply()
        self.buffers: dict[Tensor, Buffer] = {}
        self.params: list[tuple[Var, Buffer | None]] = []
        for a in args:
            if isinstance(a, Var):
                self.params.append((a, None))
            else:
                unique = names.fresh(a.name)
                buffer = decl_buffer(a.shape, a.dtype, unique)
                self.params.append((Var(unique, "handle"), buffer))
                if a.op not in unwritten:
                    self.buffers[a] = buffer
        self.allocated: list[Buffer] = []
        self.scan_of: dict[Operation, ScanOp] = {}       # of each operation that is computed at its scan
        self.states: set[Tensor] = set()
        self.short: set[Operation] = set()               # inits that may give more steps than there are
        for scan_op in (op for op in ops if isinstance(op, ScanOp)):
            self._add_scan(scan_op, ops, names)
        for op in ops:
            for t in op.outputs:
                if t in self.buffers or isinstance(op, ConstantOp):
                    continue
                if isinstance(op, PlaceholderOp):
                    users = [other.name for other in ops if t in other.input_tensors]
                    raise TensorExpressionError(
                        f"placeholder {op.name} is used by {', '.join(users)} and is not among the arguments",
                        f"add it: [{', '.join([op.name, *(a.name for a in args)])}]")
                self.buffers[t] = decl_buffer(t.shape, t.dtype, names.fresh(t.name))
                self.allocated.append(self.buffers[t])
        self._block_supply = NameSupply(["root"])
        self.block_names: dict[Operation, str] = {}

    def _add_scan(self, scan_op: ScanOp, ops: Sequence[Operation], names: NameSupply) -> None:
        """Let inits, updates and states be the buffers of the outputs; note what the scan itself will compute."""
        for out, *parts in zip(scan_op.outputs, scan_op.init, scan_op.update, scan_op.state_placeholder):
            if out not in self.buffers:
                self.buffers[out] = decl_buffer(out.shape, out.dtype, names.fresh(out.name))
                self.allocated.append(self.buffers[out])
            self.buffers.update(dict.fromkeys(parts, self.buffers[out]))
        self.states.update(scan_op.state_placeholder)
        self.scan_of.update(dict.fromkeys(scan_op.body, scan_op))
        for t in scan_op.init:
            if not (isinstance(t.shape[0], IntImm) and isinstance(scan_op.output(0).shape[0], IntImm)):
                self.short.add(t.op)
            if not any(t.op in (i.op for i in op.input_tensors) for op in ops if op is not scan_op):
                self.scan_of[t.op] = scan_op

    def nests(self, op: Operation) -> list[Stmt]:
        """The loops and the block of op; for a scan, those of all that it computes."""
        if isinstance(op, ScanOp):
            inits = dict.fromkeys(t.op for t in op.init if self.scan_of.get(t.op) is op)
            return [*(self._nest(i) for i in inits), self._steps(op)]
        return [] if op in self.scan_of else [self._nest(op)]

    def _nest(self, op: Operation, time: Expr | None = None) -> Stmt:
        """The loops and the block of op; `time` is the step that it computes in a scan."""
        self.block_names[op] = name = self._block_supply.fresh(op.name)
        if isinstance(op, ComputeOp):
            return self._compute(op, name, time)
        assert isinstance(op, ExternOp)
        return self._extern(op, name)

    def _steps(self, op: ScanOp) -> Stmt:
        """for scan_idx in range(m - k): what one step computes"""
        domain = op.scan_axis.dom
        assert domain is not None
        index = Var(op.scan_axis.var.name, op.scan_axis.var.dtype)
        time = binary("add", index, domain.min)
        body = seq(self._nest(part, time) for part in op.body)
        self.block_names[op] = self.block_names[op.update[0].op]
        return loop(index, domain.extent, body)

    def _compute(self, op: ComputeOp, name: str, time: Expr | None) -> Stmt:
        table: dict[Any, Node] = {}
        iter_vars, loops, values = [], [], []
        axes = [*((a, DATA_PARALLEL) for a in op.axis), *((k, COMM_REDUCE) for k in op.reduce_axis)]
        if time is not None:
            step = self._step_axis(op)
            iter_vars.append(step)
            values.append(time)
            table[op.axis[0].var] = step.var
            del axes[0]
        for iv, kind in axes:
            inner = Var(_iter_name(iv.var.name), iv.var.dtype)
            iter_vars.append(IterVar(Range(IntImm(0, inner.dtype), iv.domain.extent), inner, kind))
            loops.append((Var(iv.var.name, inner.dtype), iv.domain.extent))
            values.append(loops[-1][0])
            table[iv.var] = binary("add", inner, iv.domain.min)
        point = tuple(iv.var for iv in iter_vars[:len(op.axis)])
        targets = [self.buffers[t] for t in op.outputs]
        init, body = self._statements(op, targets, point, table)
        reads = regions_read(_values_read([s for s in (init, body) if s is not None], targets, point))
        writes = tuple(element_region(b, point) for b in targets)
        if op in self.short:
            body = _with_checked_steps(body, targets)
        block = Block(name, tuple(iter_vars), reads, writes, body, init)
        nest: Stmt = BlockRealize(tuple(values), TRUE, block)
        for v, extent in reversed(loops):
            nest = loop(v, extent, nest)
        return nest

    def _step_axis(self, op: ComputeOp) -> IterVar:
        """The iter var of the steps of op: ordered where it writes the states that other steps read."""
        scan_op = self.scan_of[op]
        time = op.axis[0].var
        kind = ORDERED if any(t.op is op for t in scan_op.update) else DATA_PARALLEL
        return IterVar(scan_op.scan_axis.dom, Var(_iter_name(time.name), time.dtype), kind)

    def _statements(self, op: ComputeOp, targets: list[Buffer], point: tuple[Expr, ...],
                    table: Mapping[Any, Node]) -> tuple[Stmt | None, Stmt]:
        """(the init of a reduction, the body) at one point of the iteration space."""
        first = op.body[0]
        if not isinstance(first, Reduce):
            return None, seq(Store(b, self._value(e, table), point) for b, e in zip(targets, op.body))
        # The components of one reduction may be given in any order: output n is component value_index.
        combiner, chosen = first.combiner, [e.value_index for e in op.body if isinstance(e, Reduce)]
        if sorted(chosen) != list(range(len(first.source))):
            raise TensorExpressionError(
                f"{op.name}: the outputs must be all {len(first.source)} components of the reduction")
        target_of = dict(zip(chosen, targets))
        components = range(len(first.source))
        starts = first.init or combiner.identity
        init = seq(Store(target_of[n], self._value(starts[n], table), point) for n in components)
        terms = [self._value(e, table) for e in first.source]
        if first.condition is not None:
            condition = self._value(first.condition, table)
            terms = [if_then_else(condition, t, combiner.identity[n]) for n, t in enumerate(terms)]
        operands: dict[Any, Node] = {combiner.lhs[n]: Load(target_of[n], point) for n in components}
        operands |= {combiner.rhs[n]: terms[n] for n in components}
        results = [substitute(r, operands) for r in combiner.result]
        if len(results) == 1:
            return init, Store(target_of[0], results[0], point)
        fresh = [Var(f"{target_of[n].name}_new", r.dtype) for n, r in enumerate(results)]
        body: Stmt = seq(Store(target_of[n], fresh[n], point) for n in components)
        for v, value in zip(reversed(fresh), reversed(results)):
            body = LetStmt(v, value, body)
        return init, body

    def _value(self, e: Expr, table: Mapping[Any, Node]) -> Expr:
        def lower(node: Node) -> Node | None:
            if isinstance(node, TensorRead) and node.tensor in self.states:
                return Load(self.buffers[node.tensor], (time_index(node), *node.indices[1:]))
            if isinstance(node, TensorRead) and isinstance(node.tensor.op, ConstantOp):
                values = node.tensor.op.values
                return table_element(values, row_major_index(node.indices, values.shape), node.dtype)
            if isinstance(node, TensorRead):
                return Load(self.buffers[node.tensor], node.indices)
            return table.get(node) if isinstance(node, Var) else None
        return rewrite(e, lower)

    def _extern(self, op: ExternOp, name: str) -> Stmt:
        table = {old: self.buffers[t] for old, t in zip(op.input_buffers, op.inputs)}
        table |= {old: self.buffers[t] for old, t in zip(op.output_buffers, op.outputs)}

        def lower(node: Node) -> Node | None:
            buffer = getattr(node, "buffer", None)
            return node.replace(buffer=table[buffer]) if buffer in table else None
        reads = tuple(whole_region(self.buffers[t]) for t in op.input_tensors)
        writes = tuple(whole_region(self.buffers[t]) for t in op.outputs)
        return BlockRealize((), TRUE, Block(name, (), reads, writes, rewrite(op.body, lower)))


def _values_read(stmts: Iterable[Stmt], targets: Sequence[Buffer], point: tuple[Expr, ...]) -> list[Load]:
    """The loads in stmts other than those of the element that a reduction updates."""
    return [n for s in stmts for n in walk(s) if isinstance(n, Load) and not (
        n.buffer in targets and len(n.indices) == len(point) and all(a is b for a, b in zip(n.indices, point)))]


def _with_checked_steps(body: Stmt, targets: Sequence[Buffer]) -> Stmt:
    """body with the first index of its stores to targets checked while it runs."""
    def check(node: Node) -> Node | None:
        if isinstance(node, Store) and node.buffer in targets:
            first, extent = node.indices[0], node.buffer.shape[0]
            return node.replace(indices=(checked_index(first, extent), *node.indices[1:]))
        return None
    return rewrite(body, check)


def _iter_name(axis: str) -> str:
    """The block's name for an axis: vi for i, v_rows for rows."""
    return f"v{axis}" if len(axis) == 1 else f"v_{axis}"


def _free(lowering: _Lowering, nests: Iterable[Stmt]) -> list[Var]:
    """The variables that are no loop, no argument and no whole extent of an argument's shape."""
    bound = {v for param, buffer in lowering.params for v in ([param] if buffer is None else buffer.shape)}
    sizes = [d for buffer in lowering.buffers.values() for d in buffer.shape]
    return [v for v in dict.fromkeys(v for part in (*nests, *sizes) for v in free_vars(part)) if v not in bound]
