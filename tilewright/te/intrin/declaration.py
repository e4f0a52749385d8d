"""decl_tensor_intrin: an instruction, said as a tensor expression and the code that runs it."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.intrin.call import IntrinCall, call
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.prim_func import create_prim_func
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.buffer import Buffer, BufferRegion, Load, decl_buffer, whole_region
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, Evaluate, For, PrimFunc, Stmt, Store
from tilewright.tir.tensor_intrin import TensorIntrin as Intrinsic

TRUE = IntImm(1, "bool")


class TensorIntrin:
    """What `decl_tensor_intrin` gives: the intrinsics for a whole computation, its start and one step of it.

    `compute`, `reset` and `update` are pairs of description and implementation (tir.TensorIntrin); reset and update
    are None where fcompute gave none.
    """

    def __init__(self, name: str, op: ComputeOp, buffers: Mapping[Tensor, Buffer], scalars: Sequence[Var],
                 body: Stmt, reset: Stmt | None, update: Stmt | None) -> None:
        self.name, self.op, self.buffers = name, op, dict(buffers)
        self.inputs, self.scalar_params = op.input_tensors, tuple(scalars)
        self.body, self.reduce_init, self.reduce_update = body, reset, update
        whole, start, step = _descriptions(op, self.buffers, self.scalar_params, name)
        outputs = {t: self.buffers[t] for t in op.outputs}
        self.compute = Intrinsic(whole, _implementation(name, self.buffers, outputs, self.scalar_params, body), name)
        self.reset = self.update = None
        if reset is not None and start is not None:
            impl = _implementation(f"{name}_reset", outputs, outputs, self.scalar_params, reset)
            self.reset = Intrinsic(start, impl, f"{name}_reset")
        if update is not None and step is not None:
            impl = _implementation(f"{name}_update", self.buffers, outputs, self.scalar_params, update)
            self.update = Intrinsic(step, impl, f"{name}_update")

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name})"

    def __call__(self, *args: Any, reduce_axis: Any = None) -> IntrinCall:
        """Its computation on parts of tensors, for the function of a te.compute: `add(A[i, 0:4], B[i, 0:4])`.

        args: tensors or parts, in the order in which the operation reads its placeholders, and a value for each of
        scalar_params. reduce_axis: axes over which the results are reduced too, by the update. Raises
        TensorExpressionError where these do not fit.
        """
        return call(self, args, reduce_axis)

    @property
    def text(self) -> str:
        """All that it says, equal for equal intrinsics in every process."""
        parts = [i for i in (self.compute, self.reset, self.update) if i is not None]
        return "\n".join(f"{f}" for i in parts for f in (i.desc, i.impl))


def decl_tensor_intrin(op: Operation, fcompute: Callable[..., Any], name: str = "tensor_intrin",
                       binds: Mapping[Tensor, Buffer] | None = None, scalar_params: Sequence[Var] | None = None,
                       default_buffer_params: Mapping[str, Any] | None = None) -> TensorIntrin:
    """An instruction that computes op, run by what fcompute(inputs, outputs[, scalars]) gives.

    fcompute gets the buffers of the tensors that op reads, and of those that it computes, and returns a statement or
    a call: the whole computation. For a reduction it may return (whole, reset, update): reset starts the outputs,
    update runs the reduction on top of them; each may be None. binds gives the buffer of some tensors (inputs and
    outputs), with strides and offsets that may be variables; the others are compact, made by decl_buffer with
    default_buffer_params. scalar_params are variables that op and fcompute use: whatever stands in their place in a
    program is handed on.

    Raises TensorExpressionError for an op that is no computation on placeholders, for buffers that do not fit, and for
    anything else that fcompute returns.
    """
    if not isinstance(op, ComputeOp):
        raise TensorExpressionError(f"decl_tensor_intrin: {described(op)} is no computation",
                                    "pass y.op of a tensor made by te.compute")
    for t in op.input_tensors:
        if not isinstance(t.op, PlaceholderOp):
            raise TensorExpressionError(f"decl_tensor_intrin: {op.name} reads {t.name}, which is no placeholder")
    if not callable(fcompute):
        raise TensorExpressionError(f"decl_tensor_intrin: {described(fcompute)} is no function of inputs and outputs")
    for what, x, kind in (("binds", binds, Mapping), ("scalar_params", scalar_params, Sequence),
                          ("default_buffer_params", default_buffer_params, Mapping)):
        if x is not None and not isinstance(x, kind):
            raise TensorExpressionError(f"decl_tensor_intrin: {what} is {described(x)}, not a {kind.__name__.lower()}")
    buffers = _buffers(op, binds or {}, default_buffer_params or {})
    inputs, outputs = [buffers[t] for t in op.input_tensors], [buffers[t] for t in op.outputs]
    scalars = list(scalar_params or ())
    given = fcompute(inputs, outputs, scalars) if scalars else fcompute(inputs, outputs)
    parts = list(given) if isinstance(given, (tuple, list)) else [given, None, None]
    if len(parts) != 3 or parts[0] is None:
        raise TensorExpressionError(f"decl_tensor_intrin: fcompute returned {described(given)}, not a statement or "
                                    "(compute, reset, update)")
    if (parts[1] is not None or parts[2] is not None) and not op.reduce_axis:
        raise TensorExpressionError(f"decl_tensor_intrin: {op.name} is no reduction, so it has no reset and update")
    body, reset, update = (_statement(p) for p in parts)
    assert body is not None
    return TensorIntrin(name, op, buffers, scalars, body, reset, update)


def _statement(part: Any) -> Stmt | None:
    if isinstance(part, Expr):
        return Evaluate(part)
    if part is not None and not isinstance(part, Stmt):
        raise TensorExpressionError(f"decl_tensor_intrin: fcompute returned {described(part)}, not a statement or call")
    return part


def _buffers(op: ComputeOp, binds: Mapping[Tensor, Buffer], params: Mapping[str, Any]) -> dict[Tensor, Buffer]:
    tensors = [*op.input_tensors, *op.outputs]
    out: dict[Tensor, Buffer] = {}
    for t in binds:
        if t not in tensors:
            raise TensorExpressionError(f"decl_tensor_intrin: binds has {described(t)}, which {op.name} neither reads "
                                        "nor computes")
    known = {"strides", "elem_offset", "scope", "data_alignment", "offset_factor"}
    for key in params:
        if key not in known:
            raise TensorExpressionError(f"decl_tensor_intrin: default_buffer_params has {key!r}; known are "
                                        f"{', '.join(sorted(known))}")
    for t in tensors:
        out[t] = binds[t] if t in binds else decl_buffer(t.shape, t.dtype, t.name, **params)
        if not isinstance(out[t], Buffer) or out[t].dtype != t.dtype:
            raise TensorExpressionError(f"decl_tensor_intrin: the buffer of {t.name} is {described(out[t])}, not a "
                                        f"buffer of {t.dtype}")
    return out


def _function(name: str, buffers: Sequence[Buffer], scalars: Sequence[Var], block: Block) -> PrimFunc:
    params = [Var(b.name, "handle") for b in buffers]
    return PrimFunc((*params, *scalars), BlockRealize((), TRUE, block), dict(zip(params, buffers, strict=True)),
                    {"global_symbol": name})


def _implementation(name: str, buffers: Mapping[Tensor, Buffer], outputs: Mapping[Tensor, Buffer],
                    scalars: Sequence[Var], body: Stmt) -> PrimFunc:
    """The function of buffers, with variables of its own, that runs body."""
    reads = tuple(whole_region(b) for t, b in buffers.items() if t not in outputs)
    block = Block("root", (), reads, tuple(map(whole_region, outputs.values())), body)
    return _function(name, list(buffers.values()), scalars, block)


def _descriptions(op: ComputeOp, buffers: Mapping[Tensor, Buffer], scalars: Sequence[Var],
                  name: str) -> tuple[PrimFunc, PrimFunc | None, PrimFunc | None]:
    """The functions that compute op, its start, and one reduction on top of what is there."""
    func = create_prim_func([*op.input_tensors, *op.outputs, *scalars], name=f"{name}_desc")
    tensors = [*op.input_tensors, *op.outputs]
    table = {b: b.replace(scope=buffers[t].scope) for t, b in zip(tensors, func.buffers, strict=True)}
    func = func.replace(body=rewrite(func.body, lambda n: _on(n, table)),
                        buffer_map={p: table[b] for p, b in func.buffer_map.items()})
    assert isinstance(func.body, BlockRealize)
    realize = next(n for n in walk(func.body.block.body) if isinstance(n, BlockRealize))
    if realize.block.init is None:
        return func, None, None
    update = realize.block.replace(init=None, reads=realize.block.writes + realize.block.reads)
    step = func.replace(body=rewrite(func.body, lambda n: update if n is realize.block else None))
    return func, _start(func, realize, scalars, len(op.outputs)), step


def _on(n: Node, table: Mapping[Buffer, Buffer]) -> Node | None:
    if isinstance(n, (Load, Store, BufferRegion)) and n.buffer in table:
        return n.replace(buffer=table[n.buffer])
    return None


def _start(func: PrimFunc, realize: BlockRealize, scalars: Sequence[Var], outputs: int) -> PrimFunc:
    """The function that gives the outputs their initial values."""
    old = realize.block
    assert old.init is not None and isinstance(func.body, BlockRealize)
    kept = [n for n, iv in enumerate(old.iter_vars) if iv.iter_type != COMM_REDUCE]
    axes = {old.iter_vars[n].var: Var(old.iter_vars[n].var.name, old.iter_vars[n].var.dtype) for n in kept}
    iters = tuple(old.iter_vars[n].replace(var=axes[old.iter_vars[n].var]) for n in kept)
    values = [realize.iter_values[n] for n in kept]
    loops = [n for n in walk(func.body) if isinstance(n, For) and n.loop_var in values]
    fresh = {a.loop_var: Var(a.loop_var.name, a.loop_var.dtype) for a in loops}
    block = Block(f"{old.name}_init", iters, (), tuple(substitute(w, axes) for w in old.writes),
                  substitute(old.init, axes))
    body: Stmt = BlockRealize(tuple(substitute(v, fresh) for v in values), TRUE, block)
    for a in reversed(loops):
        body = a.replace(loop_var=fresh[a.loop_var], body=body)
    buffers = func.buffers[len(func.buffers) - outputs:]
    root = func.body.block.replace(body=body, reads=(), writes=())
    return _function(f"{func.name}_init", buffers, scalars, root)
