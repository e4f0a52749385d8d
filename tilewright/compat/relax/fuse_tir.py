"""FuseTIR: functions of calls of functions of blocks as one function of blocks each."""
from __future__ import annotations

from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.functor import PyExprMutator
from tilewright.compat.relax.ops import CALL_TIR
from tilewright.compat.relax.sizes import Sizes
from tilewright.compat.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from tilewright.compat.stmt_functor import renew_defs
from tilewright.support.errors import GraphError
from tilewright.support.names import NameSupply
from tilewright.tir import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    IntImm,
    IRModule,
    Load,
    MatchBuffer,
    Node,
    PrimFunc,
    Stmt,
    Store,
    Var,
    decl_buffer,
    rewrite,
    seq,
)
from tilewright.tir.functions import BaseFunc, GlobalVar

PRIMITIVE = "Primitive"


def fuse_tir(mod: IRModule) -> IRModule:
    """mod with every function that is primitive, and calls nothing but functions of blocks, as one of these."""
    fused: dict[str, tuple[PrimFunc, rx.Function]] = {}
    for name, f in mod.functions.items():
        if isinstance(f, rx.Function) and f.attrs.get(PRIMITIVE) and _can(f, mod):
            fused[name] = _Fusion(mod, name, f).function(), f
    work = _Callers(mod, fused)
    made: dict[str, BaseFunc] = {}
    for name, f in mod.functions.items():
        if name in fused:
            made[name] = fused[name][0]
        else:
            made[name] = work.visit_expr(f) if isinstance(f, rx.Function) else f
    inside = {c.args[0] for _, f in fused.values() for c in _calls(f)}
    used = {a for f in made.values() if isinstance(f, rx.Function) for c in _calls(f) for a in (c.op, *c.args[:1])
            if isinstance(a, GlobalVar)}
    return IRModule({n: f for n, f in made.items() if n not in inside or n in used})


def _calls(f: rx.Function) -> list[Any]:
    return [b.value for block in f.body.blocks for b in block.bindings if isinstance(b.value, rx.Call)]


def _can(f: rx.Function, mod: IRModule) -> bool:
    """Only functions of blocks are called, on tensors, and the result is one, or a tuple of them."""
    for block in f.body.blocks:
        for b in block.bindings:
            v = b.value
            if isinstance(v, rx.Var):
                continue
            if not isinstance(v, rx.Call) or v.op != CALL_TIR or not isinstance(mod.functions.get(v.args[0]), PrimFunc):
                return False
            if len(v.sinfo_args) != 1 or any(isinstance(a, rx.Constant) for a in v.args[1].fields):
                return False
    return all(isinstance(p.struct_info_, TensorStructInfo) for p in f.params)


class _Fusion:
    def __init__(self, mod: IRModule, name: str, f: rx.Function) -> None:
        self.mod, self.name, self.f, self.sizes = mod, name, f, Sizes()
        self.names, self.blocks = NameSupply(), NameSupply(["root"])
        self.buffers: dict[Any, Buffer] = {}
        self.allocated: list[Buffer] = []
        self.parts: list[Stmt] = []
        self.scalars: list[Var] = []

    def function(self) -> PrimFunc:
        """The function of blocks of all calls, one after the other."""
        inputs = [self.buffer(p, p.struct_info_, p.name_hint) for p in self.f.params]
        last = self.f.body.body
        ends = [self.root(v) for v in (last.fields if isinstance(last, rx.Tuple) else [last])]
        outputs = [self.buffer(v, v.struct_info_, "output") for v in ends if v not in self.buffers]
        if len(outputs) != len(ends):
            raise GraphError(f"FuseTIR: {self.name} gives an input, or one result twice",
                             "leave the copy to the caller")
        for call, var in self.bound():
            self.add(call, var)
        own = [*inputs, *outputs]
        params = [Var(b.name, "handle") for b in own]
        root = Block("root", (), (), (), seq(self.parts), alloc_buffers=tuple(self.allocated))
        attrs = {"global_symbol": self.name, "tir.noalias": True}
        return PrimFunc((*params, *self.scalars), BlockRealize((), IntImm(1, "bool"), root), dict(zip(params, own)),
                        attrs)

    def bound(self) -> list[tuple[Any, Any]]:
        return [(b.value, b.var) for block in self.f.body.blocks for b in block.bindings
                if isinstance(b.value, rx.Call)]

    def root(self, v: Any) -> Any:
        """The variable that v is another name of."""
        same = {b.var: b.value for block in self.f.body.blocks for b in block.bindings if isinstance(b.value, rx.Var)}
        while v in same:
            v = same[v]
        return v

    def buffer(self, var: Any, info: StructInfo | None, name: str) -> Buffer:
        t = self.sizes.type(info, f"{self.name}: {name}")
        made = self.buffers[var] = decl_buffer(t.shape, t.dtype, self.names.fresh(name))
        return made

    def add(self, call: Any, var: Any) -> None:
        """Add the blocks of a call."""
        func: PrimFunc = renew_defs(self.mod[call.args[0]])
        inputs = [self.buffers[self.root(a)] for a in call.args[1].fields]
        if var not in self.buffers:
            self.allocated.append(self.buffer(var, var.struct_info_, var.name_hint))
        tensors = [*inputs, self.buffers[var]]
        handles = [p for p in func.params if p in func.buffer_map]
        values = [self.sizes.dim(d) for e in call.args[2:] for d in e]
        scalars = [p for p in func.params if p not in func.buffer_map]
        fitted = func.specialize({p: decl_buffer(b.shape, b.dtype) for p, b in zip(handles, tensors, strict=True)}
                                 | dict(zip(scalars, values, strict=True)))
        table = {fitted.buffer_map[p]: b for p, b in zip(handles, tensors)}
        body = rewrite(fitted.body, lambda n: self.renamed(n, table))
        root = body.block if isinstance(body, BlockRealize) and not body.iter_values else None
        for b in root.alloc_buffers if root is not None else ():
            self.allocated.append(b)
        self.parts.append(body if root is None else root.body)

    def renamed(self, n: Node, table: dict[Buffer, Buffer]) -> Node | None:
        if isinstance(n, (Load, Store, Allocate, BufferRegion)) and n.buffer in table:
            return n.replace(buffer=table[n.buffer])
        if isinstance(n, MatchBuffer) and n.source.buffer in table:
            return n.replace(source=n.source.replace(buffer=table[n.source.buffer]))
        if isinstance(n, Block) and n.name != "root":
            return n.replace(name=self.blocks.fresh(n.name))
        return None


class _Callers(PyExprMutator):
    """Calls of what has become a function of blocks."""

    def __init__(self, mod: IRModule, fused: dict[str, tuple[PrimFunc, rx.Function]]) -> None:
        super().__init__(mod)
        self.fused = fused

    def visit_call_(self, op: Any) -> Any:
        call = self.visit_expr_post_order(op)
        if not isinstance(call.op, GlobalVar) or call.op not in self.fused:
            return call
        info = call.struct_info_ or op.struct_info_ or self.fused[call.op][1].ret_struct_info
        results = info.fields if isinstance(info, TupleStructInfo) else [info]
        return rx.Call(CALL_TIR, [call.op, rx.Tuple(call.args)], {}, results)
