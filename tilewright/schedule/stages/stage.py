"""One stage of the façade: the loops of one operation, and what the user asked of them."""
from __future__ import annotations

import difflib
import operator
from typing import Any

from tilewright.schedule.primitives.scopes import SCOPES
from tilewright.schedule.stages.axes import axis_name
from tilewright.schedule.stages.memory import MemoryCalls
from tilewright.schedule.stages.pragmas import llvm_text
from tilewright.schedule.stages.records import Attachment, Call, Mark, Relation
from tilewright.schedule.stages.scan import loop_axes
from tilewright.schedule.stages.tensorize import Tensorization, tensorization
from tilewright.support.errors import described, with_hint
from tilewright.te.operation import PlaceholderOp
from tilewright.te.tensor import Operation
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, ORDERED, THREAD_INDEX, IterVar


class Stage(MemoryCalls):
    """The loops of one operation. Axis handles stay valid until they are split or fused.

    Every method checks what it can at the call and records the rest; nothing is transformed before `replay`.
    """

    def __init__(self, schedule: Any, op: Operation, key: str, is_output: bool = False) -> None:
        super().__init__(schedule, op)
        self.origin_op = op
        self.key = key                      # where the stage comes from, equal in every process
        self.is_output = is_output
        self.scope = ""
        self.scope_call: Call | None = None
        self.relations: list[Relation] = []
        self.attachment: Attachment | None = None
        self.tensorized: Tensorization | None = None

    def __getattr__(self, name: str) -> Any:
        near = [] if name.startswith("_") else difflib.get_close_matches(name, dir(type(self)), 1, 0.8)
        raise AttributeError(with_hint(f"a stage has no attribute {name!r}",
                                       f"did you mean {near[0]}?" if near else ""))

    def __repr__(self) -> str:
        return f"stage({self.op.name})"

    # ---- loops

    def split(self, parent: IterVar, factor: int | None = None,
              nparts: int | None = None) -> tuple[IterVar, IterVar]:
        """Split a loop in (outer, inner): the inner runs `factor` times, or the outer `nparts` times.

        An extent that does not divide is guarded. Raises ScheduleError for a parent that is not a loop of
        this stage, or a factor that is not a positive integer.
        """
        given = ", ".join([f"{k}={v}" for k, v in (("factor", factor), ("nparts", nparts)) if v is not None])
        call = self._call("split", [parent], given)
        self._require_free(call, parent)
        if (factor is None) == (nparts is None):
            call.refuse("give one of factor and nparts",
                        "factor is the extent of the inner loop, nparts that of the outer")
        size = _size(call, "factor", factor) if nparts is None else _size(call, "nparts", nparts)
        outer, inner = (IterVar(None, Var(f"{parent.var.name}.{end}", parent.dtype), parent.iter_type)
                        for end in ("outer", "inner"))
        self._consume([parent], [outer, inner], f"split into {outer.var.name} and {inner.var.name}")
        factors = (None, size) if nparts is None else (size, None)
        self.relations.append(Relation("split", (parent,), (outer, inner), factors, call))
        return outer, inner

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: int, y_factor: int) -> tuple[IterVar, ...]:
        """Split two loops and reorder them to (x.outer, y.outer, x.inner, y.inner), which is returned."""
        call = self._call("tile", [x_parent, y_parent], f"{x_factor}, {y_factor}")
        if x_parent is y_parent:
            call.refuse(f"the axis {axis_name(x_parent)} is given twice")
        for iv, what, factor in ((x_parent, "x_factor", x_factor), (y_parent, "y_factor", y_factor)):
            self._require_free(call, iv)
            _size(call, what, factor)
        xo, xi = self.split(x_parent, factor=x_factor)
        yo, yi = self.split(y_parent, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def fuse(self, *args: IterVar) -> IterVar:
        """One loop over the product of adjacent loops, all spatial or all of the reduction."""
        call = self._call("fuse", args)
        if not args:
            call.refuse("there is no axis to fuse")
        places = self._places(call, args)
        if places[-1] - places[0] != len(places) - 1:
            loops = ", ".join(iv.var.name for iv in self._leaves)
            call.refuse(f"the axes are not next to each other; the loops are {loops}",
                        "reorder brings them together")
        nest = tuple(self._leaves[p] for p in places)
        if len(nest) == 1:
            return nest[0]
        for iv in nest:
            if iv.iter_type != nest[0].iter_type:
                reduced = next(x for x in nest if x.iter_type == COMM_REDUCE)
                spatial = next(x for x in nest if x.iter_type != COMM_REDUCE)
                call.refuse(f"{axis_name(spatial)} is a spatial axis and {axis_name(reduced)} a reduction axis",
                            "fuse axes of one kind")
        for iv in nest:
            self._require_free(call, iv)
        name = nest[0].var.name
        for iv in nest[1:]:
            name = f"{name}.{iv.var.name}.fused"
        fused = IterVar(None, Var(name, nest[0].dtype), nest[0].iter_type)
        self._consume(nest, [fused], f"fused into {name}")
        self.relations.append(Relation("fuse", nest, (fused,), (), call))
        return fused

    def reorder(self, *args: IterVar) -> None:
        """Put the given loops in the given order, outermost first, on the places that they have together."""
        call = self._call("reorder", args)
        for place, iv in zip(self._places(call, args), args):
            self._leaves[place] = iv
        if len(args) > 1:
            self.relations.append(Relation("reorder", tuple(args), (), (), call))

    # ---- how loops run

    def vectorize(self, var: IterVar) -> None:
        """Compute the iterations of a spatial loop in the lanes of vectors."""
        self._mark("vectorize", var)

    def parallel(self, var: IterVar) -> None:
        """Run the iterations of a spatial loop on several threads."""
        self._mark("parallel", var)

    def unroll(self, var: IterVar) -> None:
        """Write out the iterations of a loop one after the other."""
        self._mark("unroll", var)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Give each iteration of a loop to a thread or block of threads of a GPU."""
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

        "auto_unroll_max_step" unrolls short loops inside; "import_llvm" links LLVM IR, the text or the path of a .ll
        file, whose functions call_extern can then call.
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
        """
        call = self._call("tensorize", [var], getattr(tensor_intrin, "name", repr(tensor_intrin)))
        self._require_leaf(call, var)
        if self.tensorized is not None:
            call.refuse(f"{self.op.name} is tensorized already ({self.tensorized.call.site})")
        self.tensorized = tensorization(call, var, tensor_intrin)

    def _mark(self, kind: str, var: IterVar, call: Call | None = None, thread: IterVar | None = None) -> None:
        call = call or self._call(kind, [var])
        self._require_leaf(call, var)
        if var.iter_type == COMM_REDUCE and kind in ("vectorize", "parallel"):
            call.refuse(f"cannot {kind} the reduction axis {axis_name(var)}: its steps update the same element",
                        f"{kind} a spatial axis of {self.op.name}, or write the reduction in two stages")
        if var.iter_type == ORDERED and kind != "unroll":
            call.refuse(f"cannot {kind} the scan axis {axis_name(var)}: its steps run in order, each reads earlier "
                        "ones", f"{kind} another axis of the update")
        if id(var) in self.marks:
            call.refuse(f"{axis_name(var)} is already {self.marks[id(var)].done} "
                        f"({self.marks[id(var)].call.site})", "a loop runs in one way; split makes two of it")
        if thread is None:
            self.marks[id(var)] = Mark(kind, call)
        else:
            extent = None if thread.dom is None else thread.dom.extent
            self.marks[id(var)] = Mark(kind, call, thread.thread_tag, extent, thread.var)

    # ---- where the stage is computed

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute what one iteration of the loop `scope` of `parent` needs, inside that iteration.

        Raises ScheduleError when parent does not need this stage, scope is not one of its loops, or the
        stages would be computed inside each other.
        """
        where = parent.op.name if isinstance(parent, Stage) else repr(parent)
        call = self._call("compute_at", [], f"s[{where}], {axis_name(scope)}")
        if not isinstance(parent, Stage) or parent._schedule is not self._schedule:
            call.refuse(f"{where} is not a stage of this schedule", "pass s[T] for a tensor T")
        self._require_computed(call)
        if self.is_output:
            call.refuse(f"{self.op.name} is an output of the schedule",
                        "only intermediate tensors can be moved")
        if parent is self:
            call.refuse("a stage cannot be computed inside itself")
        self._schedule.scans.require_group(call, self, parent)
        parent._require_leaf(call, scope)
        above: Stage | None = parent
        while above is not None and above.attachment is not None:
            above = above.attachment.stage
            if above is self:
                call.refuse(f"{where} is computed inside {self.op.name}, so this would be a cycle")
        if not self._schedule.needs(parent, self):
            call.refuse(f"{where} does not need {self.op.name}, neither directly nor through other stages",
                        f"attach {self.op.name} to a stage that reads it")
        self.attachment = Attachment(call, parent, scope)

    def compute_inline(self) -> None:
        """Compute the elements of this stage where they are read, and store none."""
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
        self.attachment = Attachment(call)

    def compute_root(self) -> None:
        """Compute this stage on its own, before everything that reads it (the default)."""
        self._call("compute_root", [])
        self.attachment = None

    def set_scope(self, scope: str) -> None:
        """Keep the result in memory of the given scope ("local", "shared", ...)."""
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

    def restart(self, op: Operation, how: str) -> None:
        """Let op be computed by this stage, with its own axes for loops."""
        self._consumed.update((id(iv), how) for iv in self._leaves)
        self.op, self.relations = op, []
        self._leaves = [*loop_axes(op)]
        self._all += [iv for iv in self._leaves if not self.has_axis(iv)]


def require_scope_of(call: Call, scope: object) -> None:
    """Refuse a scope that is none of SCOPES."""
    if not isinstance(scope, str) or scope not in SCOPES:
        call.refuse(f"{described(scope)} is not a storage scope", f"the scopes are {', '.join(SCOPES)}")


def _size(call: Call, what: str, value: Any) -> int:
    if isinstance(value, IntImm):
        value = value.value
    if isinstance(value, (bool, Expr)):
        call.refuse(f"{what} is {value}, not a constant integer")
    size = operator.index(value) if hasattr(value, "__index__") else None
    if size is None:
        call.refuse(f"{what} is {described(value)}, not an integer")
    if size <= 0:
        call.refuse(f"{what} is {size}, which is not positive", f"{what} is at least 1")
    if size >= 1 << 63:
        call.refuse(f"{what} is {size}, which does not fit 64 bits")
    return size
