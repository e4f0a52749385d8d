"""One stage of the façade: the loops of one operation, and what the user asked of them."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.schedule.stages.axes import axis_name
from tilewright.schedule.stages.groups import Placed, require_place
from tilewright.schedule.stages.layouts import LayoutCalls
from tilewright.schedule.stages.records import Attachment, Call, Mark, Relation
from tilewright.schedule.stages.scan import loop_axes
from tilewright.schedule.stages.tensorize import Tensorization, tensorization
from tilewright.support.errors import described, no_attribute
from tilewright.te.intrin.call import TensorComputeOp
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.tensor import Operation
from tilewright.tir.buffer import KINDS_OF_SCOPES, is_scope
from tilewright.tir.iter_var import COMM_REDUCE, ORDERED, THREAD_INDEX, IterVar


class Stage(LayoutCalls, Placed):
    """The loops of one operation. Axis handles stay valid until they are split or fused.

    Every method checks what it can at the call and records the rest; nothing is transformed before `replay`.
    """

    def __init__(self, schedule: Any, op: Operation, key: str, is_output: bool = False) -> None:
        super().__init__(schedule, op)
        Placed.__init__(self)
        self.origin_op = op
        self.key = key                      # where the stage comes from, equal in every process
        self.is_output = is_output
        self.scope = ""
        self.scope_call: Call | None = None
        self.tensorized: Tensorization | None = None

    def __getattr__(self, name: str) -> Any:
        raise no_attribute("a stage", name, dir(self))

    def __repr__(self) -> str:
        return f"stage({self.op.name})"

    def row(self) -> tuple[str, str, str]:
        """Its name, where it is computed, and its loops with how they run, outermost first."""
        at, where = self.attachment, "at the root"
        if isinstance(self.op, PlaceholderOp):
            where = "by the caller"
        elif at is not None:
            where = "inline" if at.stage is None or at.axis is None else f"at {at.axis.var.name} of {at.stage.op.name}"
        scope = f", in {self.scope}" if self.scope else ""
        loops = [iv.var.name + (f" ({self.marks[id(iv)].done})" if id(iv) in self.marks else "") for iv in self._leaves]
        return self.op.name, where + scope, ", ".join(loops)

    # ---- how loops run; what was said last of a loop holds

    def vectorize(self, var: IterVar) -> None:
        """Compute the iterations of a spatial loop in the lanes of vectors.

        Legal when the loop is one of this stage, none of its reduction and not the steps of a scan. Its extent is a
        constant where the schedule is used.
        """
        self._mark("vectorize", var)

    def parallel(self, var: IterVar) -> None:
        """Run the iterations of a spatial loop on several threads.

        Legal when the loop is one of this stage, none of its reduction and not the steps of a scan, and no iteration
        writes what another one reads or writes.
        """
        self._mark("parallel", var)

    def unroll(self, var: IterVar) -> None:
        """Write out the iterations of a loop one after the other.

        Legal when the loop is one of this stage. Its extent is a constant where the schedule is used.
        """
        self._mark("unroll", var)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Give each iteration of a loop to a thread or block of threads of a GPU.

        Legal when ivar is a loop of this stage, thread_ivar is a thread axis (`te.thread_axis`), and no other loop of
        the stage is bound to it; a virtual thread may be bound again.
        """
        call = self._call("bind", [ivar, thread_ivar])
        if not isinstance(thread_ivar, IterVar) or thread_ivar.iter_type != THREAD_INDEX:
            call.refuse(f"{axis_name(thread_ivar)} is not a thread axis",
                        'make one with te.thread_axis("threadIdx.x")')
        for key, mark in self.marks.items():                 # virtual threads are as many axes as there are loops
            if mark.thread_tag == thread_ivar.thread_tag and key != id(ivar) and not mark.thread_tag.startswith("vth"):
                call.refuse(f"{thread_ivar.thread_tag} is already bound to another loop of {self.op.name}",
                            "use another thread axis, or fuse the loops")
        self._mark("bind", ivar, call, thread_ivar)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Annotate a loop with `pragma_<type>`: for code generators that know it.

        "auto_unroll_max_step" unrolls short loops inside; "unroll_explicit" of 0 leaves a serial loop to the code
        generator; "import_llvm" links LLVM IR, the text or the path of a .ll
        file, whose functions call_extern can then call.

        Legal when the loop is one of this stage and pragma_type is a string other than "import_c": there is no C
        compiler here.
        """
        call = self._call("pragma", [var], repr(pragma_type))
        self._require_leaf(call, var)
        if not isinstance(pragma_type, str):
            call.refuse(f"the pragma {pragma_type!r} is not a string")
        if pragma_type == "import_llvm":
            pragma_value = llvm_text(call, pragma_value)
        elif pragma_type == "import_c":
            call.refuse("there is no C compiler here", "clang -S -emit-llvm -O2 -o f.ll f.c, then pragma(axis, "
                        '"import_llvm", "f.ll"); or call_packed a Python function')
        self.pragmas.append((var, f"pragma_{pragma_type}", 1 if pragma_value is None else pragma_value, call))

    def tensorize(self, var: IterVar, tensor_intrin: Any) -> None:
        """Let a tensor intrinsic compute all below a loop (`te.decl_tensor_intrin`, or a name of `tir.TensorIntrin`).

        Where no loop outside runs steps of the reduction, it is the intrinsic's whole computation; else its reset
        starts the reduction and its update runs the steps.

        Legal when the loop is one of this stage, no other loop of it is tensorized, and the loops from there on compute
        what the intrinsic declares.
        """
        call = self._call("tensorize", [var], getattr(tensor_intrin, "name", repr(tensor_intrin)))
        self._require_leaf(call, var)
        if self.tensorized is not None and self.tensorized.axis is not var:
            earlier = self.tensorized
            call.refuse(f"{self.op.name} is tensorized at {earlier.axis.var.name} ({earlier.call.site})", "one "
                        "intrinsic computes a stage; another one for the same axis takes its place")
        self.tensorized = tensorization(call, var, tensor_intrin)

    def call_intrinsic(self) -> None:
        """Let the intrinsic that the operation calls, if any, run its inner loops."""
        if isinstance(self.op, TensorComputeOp):
            inner = self.op.inner
            call = self._call("tensorize", inner[:1], self.op.intrin.name)
            order = [iv for iv in self._leaves if not any(iv is own for own in inner)] + list(inner)
            if any(a is not b for a, b in zip(self._leaves, order, strict=True)):
                self._leaves = order
                self.relations.append(Relation("reorder", tuple(order), (), (), call))
            self.tensorized = Tensorization(inner[0], self.op.intrin, call)

    def give_intrinsic(self, cache: Stage) -> None:
        """Let the intrinsic run the same loops of a stage that computes what this one did."""
        table = {id(a): b for a, b in zip((*self.op.axis, *self.op.reduce_axis),
                                          (*cache.op.axis, *cache.op.reduce_axis), strict=True)}
        if self.tensorized is not None:
            order = [table[id(iv)] for iv in self._leaves]
            cache._leaves = order
            cache.relations.append(Relation("reorder", tuple(order), (), (), self.tensorized.call))
            cache.tensorized = replace(self.tensorized, axis=table[id(self.tensorized.axis)])
            self.tensorized = None

    def _mark(self, kind: str, var: IterVar, call: Call | None = None, thread: IterVar | None = None) -> None:
        call = call or self._call(kind, [var])
        self._require_leaf(call, var)
        if var.iter_type == COMM_REDUCE and kind in ("vectorize", "parallel"):
            call.refuse(f"cannot {kind} the reduction axis {axis_name(var)}: its steps update the same element",
                        f"{kind} a spatial axis of {self.op.name}, or write the reduction in two stages")
        if var.iter_type == ORDERED and kind != "unroll":
            call.refuse(f"cannot {kind} the scan axis {axis_name(var)}: its steps run in order, each reads earlier "
                        "ones", f"{kind} another axis of the update")
        if thread is None:
            self.marks[id(var)] = Mark(kind, call)
        else:
            extent = None if thread.dom is None else thread.dom.extent
            self.marks[id(var)] = Mark(kind, call, thread.thread_tag, extent, thread.var)

    # ---- where the stage is computed

    @property
    def is_inlined(self) -> bool:
        return self.attachment is not None and self.attachment.stage is None

    @property
    def is_scheduled(self) -> bool:
        """True when loops of the stage were changed, or it was said where it is computed."""
        return bool(self.relations) or self.attachment is not None

    @property
    def may_inline(self) -> bool:
        """True when compute_inline would not refuse."""
        return isinstance(self.op, ComputeOp) and not (
            self.is_output or self.op.reduce_axis or len(self.op.outputs) > 1 or self._schedule.scans.is_bound(self))

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute what one iteration of the loop `scope` of `parent` needs, inside that iteration.

        Legal when this stage is computed and no output, scope is a loop of the stage parent, which needs this stage
        directly or through others, and parent is not computed inside this stage. Every other reader of this stage is
        below that loop too.
        """
        where = parent.op.name if isinstance(parent, Stage) else repr(parent)
        call = self._call("compute_at", [], f"s[{where}], {axis_name(scope)}")
        require_place(call, self._schedule, [self], parent, scope, self.group)
        self.own_place = Attachment(call, parent, scope)

    def compute_inline(self) -> None:
        """Compute the elements of this stage where they are read, and store none.

        Legal when this stage is computed, has one output that is none of the schedule, reduces nothing, and is not part
        of a scan.
        """
        call = self._call("compute_inline", [])
        self._require_computed(call)
        if self.is_output:
            call.refuse(f"{self.op.name} is an output of the schedule",
                        "only intermediate tensors can be inlined")
        self._schedule.scans.require_free(call, self)
        if self.op.reduce_axis:
            call.refuse(f"{self.op.name} is a reduction, which has no expression for one element",
                        "use compute_at instead")
        if len(self.op.outputs) > 1:
            call.refuse(f"{self.op.name} has {len(self.op.outputs)} outputs", "use compute_at instead")
        self.own_place = Attachment(call)

    def compute_root(self) -> None:
        """Compute this stage on its own, before everything that reads it (the default), or where its group is.

        Legal when the stage is one of the schedule.
        """
        self._call("compute_root", [])
        self.own_place = None

    def set_scope(self, scope: str) -> None:
        """Keep the result in memory of the given scope ("local", "shared", ...).

        Legal when scope is a kind of memory, and the result is neither an argument of the function nor the state of a
        scan.
        """
        call = self._call("set_scope", [], repr(scope))
        require_scope_of(call, scope)
        if isinstance(self.op, PlaceholderOp) or self.is_output:
            call.refuse(f"{self.op.name} is an argument of the function, its memory belongs to the caller",
                        f"s.cache_read or s.cache_write makes a copy in {scope!r}")
        self._schedule.scans.require_free(call, self)
        self.scope, self.scope_call = scope, call

    # ---- for the schedule

    def replace_op(self, op: Operation) -> None:
        """Let op, with the same spatial axes, be computed by this stage from now on."""
        kept = {id(iv) for iv in (*op.axis, *op.reduce_axis)}
        gone = {id(iv) for iv in self.op.reduce_axis if id(iv) not in kept}
        self.op = op
        self._leaves = [iv for iv in self._leaves if id(iv) not in gone]
        self._all = [iv for iv in self._all if id(iv) not in gone]

    def said_of(self, iv: IterVar) -> Call | None:
        tensorized = self.tensorized is not None and self.tensorized.axis is iv
        return self.tensorized.call if self.tensorized and tensorized else super().said_of(iv)

    def restart(self, op: Operation, how: str) -> None:
        """Let op be computed by this stage, with its own axes for loops."""
        self._consumed.update((id(iv), how) for iv in self._leaves)
        self.op, self.relations = op, []
        self.layouts = [layout.of_memory() for layout in self.layouts]
        self._leaves = [*loop_axes(op)]
        self._all += [iv for iv in self._leaves if not self.has_axis(iv)]


def require_scope_of(call: Call, scope: object) -> None:
    """Refuse what names no kind of memory."""
    if not is_scope(scope):
        call.refuse(f"{described(scope)} is not a storage scope", KINDS_OF_SCOPES)


def llvm_text(call: Call, source: Any) -> str:
    """LLVM IR as text, or as the path of a .ll file, which is read now."""
    if isinstance(source, Path) or isinstance(source, str) and source.endswith((".ll", ".bc")):
        path = Path(source)
        if path.suffix != ".ll":
            call.refuse(f"{path} is no text of LLVM IR", "clang -S -emit-llvm writes a .ll file, llvm-dis makes it of "
                        "a .bc file")
        try:
            return path.read_text()
        except (OSError, ValueError) as error:
            why = str(error)
        call.refuse(f"{path} cannot be read: {why}")
    if not isinstance(source, str) or "define" not in source:
        call.refuse(f"{described(source)} is no LLVM IR that defines a function",
                    "the text that clang -S -emit-llvm writes, or the path of a .ll file")
    return source
