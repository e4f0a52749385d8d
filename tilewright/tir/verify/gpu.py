"""Limits of a GPU that a kernel must keep: threads, shared and local memory, vector width."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from tilewright.support.errors import IRError, StructuralError, described
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load, scope_kind
from tilewright.tir.expr import IntImm
from tilewright.tir.node import Node, children
from tilewright.tir.printer import show
from tilewright.tir.stmt import THREAD_BINDING, Allocate, Block, For, PrimFunc, Store


@dataclass(frozen=True)
class GPULimits:
    """What one launch may ask for; the defaults are what every NVIDIA GPU since Maxwell grants without opting in
    (CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability").

    Memory in bytes: shared per block of threads, local per thread.
    """
    max_threads_per_block: int = 1024
    max_thread_x: int = 1024
    max_thread_y: int = 1024
    max_thread_z: int = 64
    max_vthread: int = 64
    max_shared_memory_per_block: int = 48 * 1024
    max_local_memory_per_block: int = 512 * 1024
    max_vector_bytes: int = 16


def verify_gpu(func: PrimFunc, limits: GPULimits | None = None) -> None:
    """Raises StructuralError where a kernel of func asks for more than a GPU grants.

    A kernel is what stands below an outermost loop that is bound to a thread axis; func may be in block form or
    lowered. Also raises where memory in shared or local scope is used outside of every kernel, and for a thread
    axis or an allocation whose size is no constant. Raises IRError for limits that are no GPULimits.
    """
    if limits is not None and not isinstance(limits, GPULimits):
        raise IRError(f"verify_gpu: the limits are {described(limits)}, not GPULimits",
                      "limits_from(a dict) makes them")
    _Limits(func, limits or GPULimits()).statement(func.body, None)


@dataclass
class _Kernel:
    """What the kernel that is being looked at uses so far."""
    threads: dict[str, int]
    shared: int = 0
    local: int = 0


class _Limits:
    def __init__(self, func: PrimFunc, limits: GPULimits) -> None:
        self.func, self.limits = func, limits

    def fail(self, message: str, at: Node, hint: str = "") -> NoReturn:
        raise StructuralError(f"{self.func.name}: {message}\n\n{show(self.func, (at,))}", hint)

    def at_most(self, limit: str, value: int, what: str, at: Node, unit: str = "") -> None:
        allowed = getattr(self.limits, limit)
        if value > allowed:
            self.fail(f"{what} is {value}{unit}, the limit is {allowed} ({limit})", at)

    def statement(self, s: Node, kernel: _Kernel | None) -> None:
        if isinstance(s, For) and s.kind == THREAD_BINDING:
            kernel = _Kernel({}) if kernel is None else kernel
            self.axis(s, kernel)
        elif isinstance(s, Allocate):
            self.memory(s.buffer, kernel, s)
        elif isinstance(s, Block):
            for b in s.alloc_buffers:
                self.memory(b, kernel, s)
        for access in _vectors(s):
            lanes = dt.lanes_of(access.indices[-1].dtype)
            width = lanes * dt.bytes_of(access.buffer.dtype)
            if kernel is not None:
                what = f"an access to {access.buffer.name} of {lanes} lanes"
                self.at_most("max_vector_bytes", width, what, s, " bytes")
        for below in children(s):
            if not isinstance(below, Load):
                self.statement(below, kernel)

    def axis(self, s: For, kernel: _Kernel) -> None:
        if not s.thread_tag.startswith(("threadIdx", "vthread")):
            return
        if not isinstance(s.extent, IntImm):
            self.fail(f"{s.thread_tag} has extent {s.extent}, not a constant", s,
                      "split the loop by a constant and bind the inner part")
        kind, _, axis = s.thread_tag.partition(".")
        extent = s.extent.value
        if kind == "vthread":
            self.at_most("max_vthread", extent, "the number of virtual threads", s)
            return
        self.at_most(f"max_thread_{axis}", extent, f"the extent of {s.thread_tag}", s)
        kernel.threads[axis] = max(extent, kernel.threads.get(axis, 1))
        self.at_most("max_threads_per_block", math.prod(kernel.threads.values()), "the number of threads of a block", s)

    def memory(self, b: Buffer, kernel: _Kernel | None, at: Node) -> None:
        kind = scope_kind(b.scope)
        if kind not in ("shared", "local"):
            return
        size = dt.bytes_of(b.dtype)
        for d in b.shape:
            if not isinstance(d, IntImm):
                self.fail(f"{b.name} in scope {b.scope} has the extent {d}, not a constant", at)
            size *= d.value
        kernel = _Kernel({}) if kernel is None else kernel
        if kind == "shared":
            kernel.shared += size
            self.at_most("max_shared_memory_per_block", kernel.shared, f"shared memory, with {b.name},", at, " bytes")
        else:
            kernel.local += size
            self.at_most("max_local_memory_per_block", kernel.local, f"local memory, with {b.name},", at, " bytes")


def _vectors(s: Node) -> Iterator[Any]:
    """The vector accesses that s itself makes."""
    if isinstance(s, Store) and s.indices and dt.lanes_of(s.indices[-1].dtype) > 1:
        yield s
    for e in children(s):
        if isinstance(e, Load) and e.indices and dt.lanes_of(e.indices[-1].dtype) > 1:
            yield e


def limits_from(constraints: dict[str, int]) -> GPULimits:
    """Limits from a dict of names and numbers. Raises StructuralError for a name that is no limit."""
    known = [f.name for f in fields(GPULimits)]
    for name in constraints:
        if name not in known:
            raise StructuralError(f"{name!r} is not a limit of a GPU", f"the limits are {', '.join(known)}")
    return GPULimits(**constraints)
