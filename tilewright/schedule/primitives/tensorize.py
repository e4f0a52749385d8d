"""Tensor intrinsics: a block is computed by one."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.density import is_dense
from tilewright.schedule.analysis.domains import domains_of
from tilewright.schedule.analysis.required import Place
from tilewright.schedule.matching.leaves import Leaf, late_start, leaves, runs_whole_domain, unproven
from tilewright.schedule.matching.match import Operand, match
from tilewright.schedule.matching.view import TensorView, pointers_of, vectors_of, viewed_again
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.blockize_loop import blockize_loop
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer, strided_pointer
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, rewrite, statements, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt, Store
from tilewright.tir.symbols import fresh_copy
from tilewright.tir.tensor_intrin import TensorIntrin, parameter_buffers, root_block, scalar_parameters


@primitive
def tensorize(sch: Schedule, block_or_loop: BlockRV | LoopRV | str, tensor_intrin: str | TensorIntrin,
              preserve_unit_iters: bool = True) -> None:
    """Let an intrinsic compute what a block, or all below a loop, computes.

        for i_0 in range(n // 4):                     for i_0 in range(n // 4):
            for i_1 in range(4):                          with block("B_o"):
                with block("B"):                 ->           vi_o = i_0
                    B[vi] = A[vi] + 1                         X = match_buffer(A[vi_o*4:vi_o*4 + 4])
                                                              Y = match_buffer(B[vi_o*4:vi_o*4 + 4])
                                                              add_one_to_four(X, Y)           # the implementation

    tensor_intrin: a TensorIntrin or the name of a registered one. The loop (or a block that holds no other) is
    made a block first, as by blockize; preserve_unit_iters is for that. The buffers of the implementation become
    views of the parts of the program's buffers that the description's stand for. Where the description has no init
    and the block has one, that stays as it is. Returns nothing.

    Legal when
    - the block computes what the description says, on boxes of the program's buffers: with the same extents, dtypes,
      scopes and operators, up to the order of axes and of operands that commute; where these start a reduction, at the
      first of its steps;
    - the boxes lie inside the buffers, and have the strides and offsets that the implementation asks for;
    - no buffer that is written stands for two of the description's.
    """
    intrin = tensor_intrin if isinstance(tensor_intrin, TensorIntrin) else _registered(tensor_intrin)
    desc, impl = intrin.desc, intrin.impl
    described = leaves(root_block(desc).body)
    require(len(described) > 0, f"the description of {intrin.name} has no block inside its root block")
    keeps_init = any(leaf.init is not None for leaf in described)
    name = _block_of(sch, block_or_loop, preserve_unit_iters, keeps_init)
    realize = sch.realize(name)
    outer = realize.block
    _check_description(intrin, described)
    _check_domains(sch, realize, intrin.name)
    require(not (keeps_init and outer.init is not None), "steps of the reduction run outside of the part that is "
            f"to be tensorized, and the description of {intrin.name} starts the reduction", realize,
            hint="decompose_reduction first, and use an intrinsic for the update")
    analyzer = _analyzer(sch, outer)
    params = parameter_buffers(desc)
    operands, scalars = match(root_block(desc), params, scalar_parameters(desc), outer.body, analyzer, realize)
    _check_memory(params, operands, realize)
    _check_aliases(described, params, operands, realize)
    _check_written(params, operands, described, realize)
    body = root_block(impl)
    pointers, vectors, again = pointers_of(body), vectors_of(body), viewed_again(body)
    views = [TensorView(a, b, operands[a], b in pointers or b.data in pointers, b in vectors, vectors.get(b, False))
             for a, b in zip(params, parameter_buffers(impl), strict=True)]
    for view in views:
        view.check(analyzer, realize)
        require(view.in_order or view.param not in again, f"the implementation views parts of {view.param.name}, which "
                f"lies across the dimensions of {view.operand.buffer.name} in another order", realize)
    values = {b: scalars[a] for a, b in zip(scalar_parameters(desc), scalar_parameters(impl), strict=True)}
    root = Instantiation(sch, views, values).run(body)
    sch.replace(realize, realize.replace(block=_tensorized(outer, root, views, described)))


def _registered(name: object) -> TensorIntrin:
    found = TensorIntrin.get(name, allow_missing=True) if isinstance(name, str) else None
    require(found is not None, f"no tensor intrinsic {name!r} is registered",
            hint=f"registered: {', '.join(TensorIntrin.list()) or 'none'}")
    assert found is not None
    return found


def _block_of(sch: Schedule, target: BlockRV | LoopRV | str, keep_units: bool, keeps_init: bool) -> str:
    """The name of the block to tensorize; made of a loop or of a block that holds no other."""
    if isinstance(target, LoopRV):
        return blockize_loop(sch, sch.loop(target), keep_units, start_outside=not keeps_init)
    realize = sch.realize(target)
    require(realize is not sch.root, "the root block cannot be tensorized", hint="name a block or a loop inside it")
    require(not realize.block.match_buffers, f"block {realize.block.name} has views of buffers (match_buffer)", realize)
    if any(isinstance(s, BlockRealize) for s in statements(realize.block.body)):
        return realize.block.name
    return blockize_loop(sch, realize, keep_units, start_outside=not keeps_init)


def _analyzer(sch: Schedule, outer: Block) -> Analyzer:
    return sch.analyzer_at(outer.body)


def _check_description(intrin: TensorIntrin, described: Sequence[Leaf]) -> None:
    """The loops of the description run the domains of its blocks, without conditions."""
    body = root_block(intrin.desc).body
    for leaf in described if not intrin.checked else ():
        name = leaf.realize.block.name
        require(runs_whole_domain(body, leaf, Analyzer()) and unproven(body, leaf, Analyzer()) is None,
                f"the description of {intrin.name} does not run each point of block {name} once")
        late = late_start(body, leaf, Analyzer())
        require(not late, f"the description of {intrin.name}: {late}")
        loops = domains_of(s for s in statements(body) if isinstance(s, For))
        for w in leaf.realize.block.writes:
            require(is_dense(leaf.realize, w, loops, Place(Analyzer(), frozenset())),
                    f"block {name} of the description of {intrin.name} is not known to write every element of a box of "
                    f"{w.buffer.name}")
    intrin.checked = True


def _check_domains(sch: Schedule, realize: BlockRealize, intrin: str) -> None:
    """The loops of the program run the domains of their blocks, without conditions."""
    body = realize.block.body
    analyzer = _analyzer(sch, realize.block)
    for leaf in leaves(body):
        name = leaf.realize.block.name
        condition = unproven(body, leaf, analyzer)
        require(condition is None, f"block {name} runs only where {condition}, so it may compute a part only of what "
                f"{intrin} computes", leaf.realize, hint="pad the extents (pad_einsum), or split by a divisor")
        require(runs_whole_domain(body, leaf, analyzer),
                f"the loops inside do not run each point of block {name} exactly once", leaf.realize)
        late = late_start(body, leaf, analyzer)
        legal(not late, f"{late}, and {intrin} starts it", leaf.realize,
              hint="decompose_reduction first, and use an intrinsic for the update")


def _check_written(params: Sequence[Buffer], operands: Mapping[Buffer, Operand], described: Sequence[Leaf],
                   at: Stmt) -> None:
    """What is written has no holes: later primitives take the box for written."""
    written = {w.buffer for leaf in described for w in leaf.realize.block.writes}
    for b in params:
        gaps = [step for step, extent in zip(operands[b].steps, b.shape, strict=True)
                if step != 1 and not (isinstance(extent, IntImm) and extent.value == 1)]
        require(b not in written or not gaps, f"{operands[b].buffer.name} is written in steps of "
                f"{max(gaps, default=1)} elements, which leaves gaps", at)


def _check_memory(params: Sequence[Buffer], operands: Mapping[Buffer, Operand], at: BlockRealize) -> None:
    """No operand is memory of a block inside: that goes with the block."""
    inside = {b for n in walk(at.block.body) if isinstance(n, Block) for b in n.alloc_buffers}
    for b in params:
        require(operands[b].buffer not in inside, f"{operands[b].buffer.name}, which stands for {b.name}, is memory of "
                "a block that is to be replaced", at)


def _check_aliases(described: Sequence[Leaf], params: Sequence[Buffer], operands: Mapping[Buffer, Operand],
                   at: Stmt) -> None:
    written = {w.buffer for leaf in described for w in leaf.realize.block.writes}
    for b in params:
        others = [o.name for o in params if o is not b and operands[o].buffer is operands[b].buffer]
        legal(b not in written or not others, f"{operands[b].buffer.name} stands for {b.name}, which is written, and "
              f"for {others[0] if others else ''}", at)


def _tensorized(outer: Block, impl: Block, views: Sequence[TensorView], described: Sequence[Leaf]) -> Block:
    """outer with the implementation as its body."""
    region = {v.described: v.region for v in views}
    reads = _touched("reads", described, region)
    if outer.init is not None:
        reads = [*(r for r in _touched("writes", described, region) if all(r.buffer is not x.buffer for x in reads)),
                 *reads]
        reads = [r for r in reads if not any(r.buffer is w.buffer for w in outer.writes)]
    matched = tuple(MatchBuffer(v.buffer, v.region) for v in views)
    return outer.replace(body=impl.body, reads=tuple(reads), match_buffers=matched,
                         alloc_buffers=outer.alloc_buffers + impl.alloc_buffers,
                         annotations={**outer.annotations, **impl.annotations})


def _touched(kind: str, described: Sequence[Leaf], region: Mapping[Buffer, BufferRegion]) -> list[BufferRegion]:
    buffers = dict.fromkeys(r.buffer for leaf in described
                            for r in getattr(leaf.realize.block, kind))
    return [region[b] for b in buffers if b in region]


class Instantiation:
    """A copy of the implementation's body with its own loops and blocks, on views."""

    def __init__(self, sch: Schedule, views: Sequence[TensorView], scalars: Mapping[Var, Expr]) -> None:
        self.sch, self.views = sch, {v.param: v for v in views}
        self.table: dict[Var, Expr] = dict(scalars)
        for v in views:
            self.table[v.param.data] = v.buffer.data
            if isinstance(v.param.elem_offset, Var):
                self.table[v.param.elem_offset] = v.buffer.elem_offset
            for k, stride in enumerate(v.param.strides):
                if isinstance(stride, Var) and v.operand.axes[k] is not None:
                    self.table.setdefault(stride, v.stride(k))
        self.taken: set[str] = set()

    def run(self, root: Block) -> Block:
        """The root block of the implementation, on the views."""
        own = fresh_copy(root, self.name)
        assert isinstance(own, Block)
        return rewrite(substitute(own, self.table), self.step)

    def name(self, old: str) -> str:
        """A name for a block that neither the function nor the copy has."""
        k, name = 0, self.sch.fresh_block(old)
        while name in self.taken:
            k += 1
            name = self.sch.fresh_block(f"{old}_{k}")
        self.taken.add(name)
        return name

    def step(self, n: Node) -> Node | None:
        if isinstance(n, (Load, Store)) and n.buffer in self.views:
            view = self.views[n.buffer]
            return n.replace(buffer=view.buffer, indices=view.place(n.indices))
        if isinstance(n, Call) and n.op == "access_ptr":
            return self.pointer(n)
        if isinstance(n, BufferRegion) and n.buffer in self.views:
            return self.region(n)
        return None

    def region(self, n: BufferRegion) -> BufferRegion:
        view = self.views[n.buffer]
        lows = view.place([r.min for r in n.region])
        sizes: list[Expr] = [IntImm(1, d.dtype) for d in view.buffer.shape]
        for r, axis, step in zip(n.region, view.operand.axes, view.operand.steps, strict=True):
            if axis is not None:
                sizes[axis - view.first] = binary("add", binary("mul", binary("sub", r.extent, 1), step), 1)
        return BufferRegion(view.buffer, tuple(Range(a, b) for a, b in zip(lows, sizes, strict=True)))

    def pointer(self, n: Call) -> Expr | None:
        """A pointer into a view carries the strides of the parameter that it was a pointer into."""
        first = n.args[0]
        if not isinstance(first, Load):
            return None
        view = next((v for v in self.views.values() if v.buffer is first.buffer), None)
        if view is None or len(n.args) != 1 + len(view.operand.axes):
            return None
        strides = [view.stride(k) for k in range(len(view.operand.axes))]
        return strided_pointer(first, n.args[1:], strides)
