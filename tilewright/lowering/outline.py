"""Regions of a function as functions of their own: what threads run of parallel loops, what a device runs.

The parameters of such a function are the variables and the memory of the function around that the region uses, by the
same objects; its attribute REGION names the call that stands in the place of the region. `inline_regions` is the way
back, and so says what these calls mean.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import tir
from tilewright.lowering.copying import Copier
from tilewright.lowering.serialize_loops import serial
from tilewright.lowering.storage import allocating_once
from tilewright.support.errors import LowerError
from tilewright.tir.accesses import uses_below
from tilewright.tir.arithmetic import binary, maximum
from tilewright.tir.assertion import assertion
from tilewright.tir.node import Node, rewrite, same, walk
from tilewright.tir.stmt import map_sub_statements, seq
from tilewright.tir.symbols import defined

REGION = "tilewright.region"
PARALLEL_CALL = "call_parallel"             # (StringImm name, min, extent, captured...)
KERNEL_CALL = "call_kernel"                 # (StringImm name, (StringImm axis, extent)..., captured...)
Visible = Mapping[tir.Var, tir.Buffer | None]     # what is defined here: variables, and the buffer behind each pointer


@dataclass(frozen=True)
class Region:
    """What becomes a function: parameters of its own, its body, and what a call of it passes before what it captures.
    """
    params: tuple[tir.Var, ...]
    body: tir.Stmt
    arguments: tuple[tir.Expr, ...]


def outline_parallel_loops(module: tir.IRModule) -> tir.IRModule:
    """No loop is parallel: NAME__parK(begin, end, ...) has the iterations from begin to end of one, and is called by
    call_parallel. Its iterations share memory that they allocate. Parallel loops inside of another, or of one
    iteration, run in order.
    """
    found = _outlined(module, PARALLEL_CALL, "par", _parallel_loop)
    return tir.IRModule({name: serial(f, tir.PARALLEL) for name, f in found.items()})


def _parallel_loop(s: tir.Stmt) -> Region | None:
    if not isinstance(s, tir.For) or s.kind != tir.PARALLEL or isinstance(s.extent, tir.IntImm) and s.extent.value <= 1:
        return None
    begin, end = (tir.Var(name, s.loop_var.type) for name in ("begin", "end"))
    part = s.replace(kind=tir.SERIAL, min=begin, extent=binary("sub", end, begin))
    return Region((begin, end), allocating_once(part), (s.min, s.extent))


def split_kernels(module: tir.IRModule) -> tir.IRModule:
    """What touches memory is in functions that a device runs, called by call_kernel with the extents of the grid and of
    the block: NAME__kernelK for each nest of loops over threads, and for what stands outside of them one of one thread.

    Memory of threads and their blocks, which is in no scope of the device, is allocated by each kernel that uses it.
    Raises LowerError where a kernel begins with reading such memory, and where a bound, a condition or an extent
    between kernels reads memory.
    """
    out = _outlined(module, KERNEL_CALL, "kernel", _kernel)
    for name, f in out.items():
        if REGION in f.attrs:
            continue
        out[name] = f = f.with_body(rewrite(f.body, _without_threads_memory))
        read = next((n for n in walk(f.body) if isinstance(n, tir.Load)), None)
        if read is not None:
            raise LowerError(f"{f.name}: {read} is asked for outside of kernels, where no memory of the device is")
    return tir.IRModule(out)


def _kernel(s: tir.Stmt) -> Region | None:
    if isinstance(s, tir.For) and _is_thread(s):
        extents: dict[str, tir.Expr] = {}
        for n in walk(s):
            if isinstance(n, tir.For) and _is_thread(n):
                known = extents.setdefault(n.thread_tag, n.extent)
                extents[n.thread_tag] = known if same(known, n.extent) else maximum(known, n.extent)
        return Region((), s, tuple(x for tag in sorted(extents) for x in (tir.StringImm(tag), extents[tag])))
    touches = any(isinstance(n, (tir.Load, tir.Store)) for n in walk(s))
    return Region((), s, ()) if touches and not any(isinstance(n, tir.For) and _is_thread(n) for n in walk(s)) else None


def _is_thread(s: tir.For) -> bool:
    return s.thread_tag.startswith(("blockIdx", "threadIdx"))


def _on_device(b: tir.Buffer) -> bool:
    """True for memory that outlasts a kernel."""
    return b.scope in ("", "global")


def _without_threads_memory(n: Node) -> Node | None:
    return n.body if isinstance(n, tir.Allocate) and not _on_device(n.buffer) else None


class _Outliner:
    """Makes functions of the outermost statements of a function that `region` takes."""

    def __init__(self, func: tir.PrimFunc, op: str, suffix: str, region: Callable[[tir.Stmt], Region | None]) -> None:
        self.func, self.op, self.suffix, self.region = func, op, suffix, region
        self.made: dict[str, tir.PrimFunc] = {}

    def stmt(self, s: tir.Stmt, visible: Visible) -> tir.Stmt:
        """s with calls in the place of its regions."""
        found = self.region(s)
        if found is not None:
            return self.outlined(found, visible)
        inside = _with(s, visible)
        return map_sub_statements(s, lambda below: self.stmt(below, inside))

    def outlined(self, found: Region, visible: Visible) -> tir.Stmt:
        """The call of a region, whose function is made."""
        name = f"{self.func.name}__{self.suffix}{len(self.made)}"
        inner = next((v for e in found.arguments for v in walk(e) if isinstance(v, tir.Var) and v not in visible), None)
        if inner is not None:
            raise LowerError(f"{name}: an extent of its threads depends on {inner.name}, which is defined inside of it")
        captured = {v: visible[v] for v in used_variables(found.body) if v in visible}
        mine = {v: b for v, b in captured.items() if b is not None and self.op == KERNEL_CALL and not _on_device(b)}
        params = {v: v if b is None else tir.Var(b.name, "handle") for v, b in captured.items() if v not in mine}
        attrs = {"global_symbol": name, "tir.noalias": self.func.attrs.get("tir.noalias", True), REGION: self.op}
        buffers = {params[v]: b for v, b in captured.items() if b is not None and v in params}
        body = self.allocating(found.body, mine.values(), name)
        self.made[name] = tir.PrimFunc((*found.params, *params.values()), body, buffers, attrs)
        call = tir.Evaluate(tir.Call(self.op, (tir.StringImm(name), *found.arguments, *params), "int32"))
        if self.op != PARALLEL_CALL or not any(isinstance(n, tir.Call) and n.op == "Assert" for n in walk(found.body)):
            return call
        return seq([call, assertion(tir.Call("no_fault", (), "bool"))])      # what fails in there ends the function too

    def allocating(self, body: tir.Stmt, mine: Iterable[tir.Buffer], name: str) -> tir.Stmt:
        """body with allocations of the memory of its threads."""
        for b in mine:
            first = next(use for use in uses_below(body) if use.buffer is not None and use.buffer.data is b.data)
            if not first.writes:
                raise LowerError(f"{name}: {b.name}, in scope {b.scope}, is read before the kernel writes it",
                                 "what one kernel leaves for another is in memory of scope global")
            body = tir.Allocate(b, body)
        return body


def _outlined(module: tir.IRModule, op: str, suffix: str,
              region: Callable[[tir.Stmt], Region | None]) -> dict[str, tir.PrimFunc]:
    """The functions, each followed by those of its regions."""
    out: dict[str, tir.PrimFunc] = {}
    for name, func in module.functions.items():
        outliner = _Outliner(func, op, suffix, region)
        done = func if REGION in func.attrs else func.with_body(outliner.stmt(func.body, _with(func, {})))
        out |= {name: done, **outliner.made}
    return out


def _with(node: Node, visible: Visible) -> Visible:
    """What is visible inside of node."""
    here = defined(node)
    if not here:
        return visible
    buffers: dict[tir.Var, tir.Buffer | None] = {x.data: x for x in here if isinstance(x, tir.Buffer)}
    return {**visible, **{x: None for x in here if isinstance(x, tir.Var)}, **buffers}


def used_variables(body: Node) -> Iterator[tir.Var]:
    """Every variable that body needs, in program order, with repetitions: those that it mentions, the addresses of
    buffers, and what their extents depend on (indices that depend on data are compared with them).
    """
    for node in walk(body):
        if isinstance(node, tir.Var):
            yield node
        elif isinstance(node, (tir.Load, tir.Store)):
            yield node.buffer.data
            for extent in node.buffer.shape:
                yield from (n for n in walk(extent) if isinstance(n, tir.Var))


def captured_by(region: tir.PrimFunc) -> list[tir.Var]:
    """What the function of a parallel region takes of the function around: variables, and addresses of memory."""
    return [region.buffer_map[p].data if p in region.buffer_map else p for p in region.params[2:]]


def is_region_call(node: Node) -> bool:
    """True for the call of a region."""
    return isinstance(node, tir.Call) and node.op in (PARALLEL_CALL, KERNEL_CALL)


def regions_of(func: tir.PrimFunc, functions: Sequence[tir.PrimFunc]) -> list[tir.PrimFunc]:
    """The functions of the regions that func calls, and of those that these call."""
    names = {n.args[0].value for n in walk(func.body) if is_region_call(n)}         # type: ignore[attr-defined]
    found = [f for f in functions if REGION in f.attrs and f.name in names]
    return [r for f in found for r in (f, *regions_of(f, functions))]


def inline_regions(functions: Mapping[str, Any]) -> dict[str, Any]:
    """The functions that are no regions, with the regions where they are called.

    call_parallel(f, min, extent, x...) is `for i in T.parallel(min, min + extent): f(i, i + 1, x...)`,
    call_kernel(f, axis, extent, ..., x...) is `f(x...)`, which has the loops over the threads.
    Raises LowerError for a call that no region fits.
    """
    regions = {f.name: f for f in functions.values() if isinstance(f, tir.PrimFunc) and REGION in f.attrs}
    if not regions:
        return dict(functions)

    def inlined(node: Node) -> Node | None:
        if isinstance(node, tir.Seq):
            return seq(node.stmts)
        if not isinstance(node, tir.Evaluate) or not is_region_call(node.value):
            return None
        op, (name, *arguments) = node.value.op, node.value.args                         # type: ignore[attr-defined]
        func, i = regions.get(name.value), tir.Var("i", arguments[0].dtype if arguments else "int32")
        low, extent = arguments[:2] if op == PARALLEL_CALL else (tir.IntImm(0), tir.IntImm(1))
        if op == PARALLEL_CALL:
            arguments[:2] = i, binary("add", i, tir.IntImm(1, i.type))
        else:
            del arguments[:2 * sum(isinstance(x, tir.StringImm) for x in arguments)]
        if func is None or len(func.params) != len(arguments):
            raise LowerError(f"{node.value} fits no function of the module", f"its regions are {', '.join(regions)}")
        body = rewrite(_body(func, arguments), inlined)
        return body if op == KERNEL_CALL else tir.For(i, low, extent, tir.PARALLEL, body)

    return {name: f.with_body(rewrite(f.body, inlined)) if isinstance(f, tir.PrimFunc) else f
            for name, f in functions.items() if name not in regions}


def _body(func: tir.PrimFunc, arguments: Sequence[tir.Expr]) -> tir.Stmt:
    """The body of func for these arguments."""
    variables = dict(zip(func.params, arguments, strict=True))
    variables |= {b.data: variables[p] for p, b in func.buffer_map.items()}
    used = {n.buffer for n in walk(func.body) if isinstance(n, (tir.Load, tir.Store)) and n.buffer.data in variables}
    copy = Copier(variables, fresh=True)
    copy.buffers = {b: b.replace(data=variables[b.data], shape=tuple(map(copy, b.shape))) for b in used}
    return copy(func.body)  # type: ignore[no-any-return]
