"""Tensor expressions -> a PrimFunc of blocks: one block per operation, loops in the order of its axes."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.support.errors import TensorExpressionError, described, with_hint
from tilewright.support.names import NameSupply
from tilewright.te.operation import ComputeOp, ExternOp, PlaceholderOp, post_order
from tilewright.te.reduction import Reduce
from tilewright.te.regions import regions_read
from tilewright.te.tensor import Operation, Tensor, TensorRead
from tilewright.tir.buffer import Buffer, BufferRegion, Load, decl_buffer
from tilewright.tir.expr import (
    COMM_REDUCE,
    DATA_PARALLEL,
    Expr,
    IntImm,
    IterVar,
    Range,
    Var,
    binary,
    if_then_else,
)
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, LetStmt, PrimFunc, Stmt, Store, loop, seq

TRUE = IntImm(1, "bool")


def create_prim_func(args: Sequence[Tensor | Var], name: str = "main") -> PrimFunc:
    """The function of args (tensors, and scalar Vars, in the order of the call) that computes its outputs.

    Tensors that are neither arguments nor placeholders become buffers of the root block. Raises
    TensorExpressionError when a placeholder is missing from args, or a variable is bound by no argument.
    """
    return lower_ops(args, name=name)[0]


def lower_ops(args: Sequence[Tensor | Var], outputs: Iterable[Operation] = (),
              name: str = "main") -> tuple[PrimFunc, dict[Operation, str]]:
    """(the function of args, the name of the block of each operation).

    `outputs` are computed whether they are among args or not. Raises as create_prim_func does.
    """
    args = argument_list(args)
    ops = post_order([*outputs, *(a.op for a in args if isinstance(a, Tensor))])
    lowering = _Lowering(args, ops)
    nests = [lowering.nest(op) for op in ops if not isinstance(op, PlaceholderOp)]
    params = lowering.params
    _check_bound(lowering, nests)
    root = Block("root", (), (), (), seq(nests), alloc_buffers=tuple(lowering.allocated))
    buffer_map = {p: b for p, b in params if b is not None}
    func = PrimFunc(tuple(p for p, _ in params), BlockRealize((), TRUE, root), buffer_map,
                    {"global_symbol": name, "tir.noalias": True})
    return func, lowering.block_names


def argument_list(args: Any) -> list[Any]:
    """The arguments of a function. Raises TensorExpressionError unless they are tensors and scalars, each once."""
    if isinstance(args, Tensor) or not isinstance(args, Iterable):
        raise TensorExpressionError(with_hint(f"the arguments are {described(args)}, not a list", "write [A, B, C]"))
    args = list(args)
    for position, a in enumerate(args):
        if not isinstance(a, (Tensor, Var)):
            raise TensorExpressionError(with_hint(f"argument {position} is {described(a)}",
                                                  "arguments are te tensors and te.var scalars"))
        if any(a is other for other in args[:position]):
            raise TensorExpressionError(f"{a.name} is given twice in the arguments")
    return args


class _Lowering:
    """Buffers and names of one function while its operations are lowered."""

    def __init__(self, args: Sequence[Tensor | Var], ops: Sequence[Operation]) -> None:
        names = NameSupply()
        self.buffers: dict[Tensor, Buffer] = {}
        self.params: list[tuple[Var, Buffer | None]] = []
        for a in args:
            if isinstance(a, Var):
                self.params.append((a, None))
            else:
                unique = names.fresh(a.name)
                self.buffers[a] = decl_buffer(a.shape, a.dtype, unique)
                self.params.append((Var(unique, "handle"), self.buffers[a]))
        self.allocated: list[Buffer] = []
        for op in ops:
            for t in op.outputs:
                if t in self.buffers:
                    continue
                if isinstance(op, PlaceholderOp):
                    users = [other.name for other in ops if t in other.input_tensors]
                    raise TensorExpressionError(with_hint(
                        f"placeholder {op.name} is used by {', '.join(users)} and is not among the arguments",
                        f"add it: [{', '.join([op.name, *(a.name for a in args)])}]"))
                self.buffers[t] = decl_buffer(t.shape, t.dtype, names.fresh(t.name))
                self.allocated.append(self.buffers[t])
        self._block_supply = NameSupply(["root"])
        self.block_names: dict[Operation, str] = {}

    def nest(self, op: Operation) -> Stmt:
        """The loops and the block of op."""
        self.block_names[op] = name = self._block_supply.fresh(op.name)
        if isinstance(op, ComputeOp):
            return self._compute(op, name)
        if isinstance(op, ExternOp):
            return self._extern(op, name)
        raise TensorExpressionError(f"{op.name}: a {type(op).__name__} cannot be lowered")

    def _compute(self, op: ComputeOp, name: str) -> Stmt:
        table: dict[Any, Node] = {}
        iter_vars, loops = [], []
        for iv, kind in [*((a, DATA_PARALLEL) for a in op.axis), *((k, COMM_REDUCE) for k in op.reduce_axis)]:
            assert iv.dom is not None
            inner = Var(_iter_name(iv.var.name), iv.var.dtype)
            iter_vars.append(IterVar(Range(IntImm(0, inner.dtype), iv.dom.extent), inner, kind))
            loops.append((Var(iv.var.name, inner.dtype), iv.dom.extent))
            table[iv.var] = binary("add", inner, iv.dom.min)
        point = tuple(iv.var for iv in iter_vars[:len(op.axis)])
        targets = [self.buffers[t] for t in op.outputs]
        init, body = self._statements(op, targets, point, table)
        reads = regions_read([s for s in (init, body) if s is not None], exclude=targets)
        writes = tuple(BufferRegion(b, tuple(Range(v, IntImm(1, v.dtype)) for v in point)) for b in targets)
        block = Block(name, tuple(iter_vars), reads, writes, body, init)
        nest: Stmt = BlockRealize(tuple(v for v, _ in loops), TRUE, block)
        for v, extent in reversed(loops):
            nest = loop(v, extent, nest)
        return nest

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
        reads = tuple(_whole(self.buffers[t]) for t in op.input_tensors)
        writes = tuple(_whole(self.buffers[t]) for t in op.outputs)
        return BlockRealize((), TRUE, Block(name, (), reads, writes, rewrite(op.body, lower)))


def _iter_name(axis: str) -> str:
    """The block's name for an axis: vi for i, v_rows for rows."""
    return f"v{axis}" if len(axis) == 1 else f"v_{axis}"


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, tuple(Range(IntImm(0, d.dtype), d) for d in buffer.shape))


def _check_bound(lowering: _Lowering, nests: Iterable[Stmt]) -> None:
    """Every variable is a loop, an argument, or a whole extent of an argument's shape."""
    bound: set[int] = set()
    for param, buffer in lowering.params:
        if buffer is None:
            bound.add(id(param))
        else:
            bound.update(id(d) for d in buffer.shape if isinstance(d, Var))
    used: dict[int, Var] = {}

    def use(node: Node) -> None:
        for inner in walk(node):
            if isinstance(inner, Var):
                used.setdefault(id(inner), inner)
            elif isinstance(inner, LetStmt):
                bound.add(id(inner.var))
    for nest in nests:
        for inner in walk(nest):
            loop_var = getattr(inner, "loop_var", None)
            if loop_var is not None:
                bound.add(id(loop_var))
            if isinstance(inner, Block):
                bound.update(id(iv.var) for iv in inner.iter_vars)
        use(nest)
    for buffer in lowering.buffers.values():
        for d in buffer.shape:
            use(d)
    for key, v in used.items():
        if key not in bound:
            raise TensorExpressionError(with_hint(
                f"the variable {v.name} is bound by no argument: it is neither an axis of the operation that "
                "uses it, nor an extent of an argument's shape",
                f"pass {v.name} in the arguments as a scalar"))
