"""From a fused group of values to one kernel: its te program, its name, and where it may write in place."""
from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright import te
from tilewright.graph.fuse import Group
from tilewright.graph.value import TensorType, Value
from tilewright.support.errors import GraphError, described
from tilewright.te.fingerprint import graph_text
from tilewright.tir import IntImm, PrimFunc


@dataclass(frozen=True)
class Kernel:
    """A group to be compiled, under a name that says what it computes.

    args: its te program, the inputs in order and then the output. When `inplace` is a position in inputs, the output is
    written into that input, which is then the only parameter for both.
    """
    name: str
    group: Group
    args: tuple[te.Tensor, ...]
    inplace: int | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.group.inputs

    @property
    def output(self) -> Value:
        return self.group.output

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The values whose addresses the kernel takes."""
        return self.inputs if self.inplace is not None else (*self.inputs, self.output)

    @functools.cached_property
    def func(self) -> PrimFunc:
        """The group as a function of blocks: params are its inputs in order, then the output."""
        return te.create_prim_func(list(self.args), name=self.name)


def program(group: Group, types: Mapping[Value, TensorType]) -> tuple[te.Tensor, ...]:
    """The te program of a group: its inputs in order, then its output."""
    tensors: dict[Value, te.Tensor] = {}
    for v in group.values:
        for x in v.inputs:
            if x not in tensors:
                t = types[x]
                tensors[x] = te.placeholder(t.shape, t.dtype, name=f"in{len(tensors)}")
        tensors[v] = _checked(v, v.op.compute(*(tensors[x] for x in v.inputs)), types[v])
    return tuple(tensors[v] for v in (*group.inputs, group.output))


def _checked(v: Value, made: object, wanted: TensorType) -> te.Tensor:
    """What the operator of v computes, which is of the type that memory is planned for."""
    if not isinstance(made, te.Tensor):
        raise GraphError(f"{v.op}: compute gives {described(made)}, not a tensor")
    shape = tuple(n.value if isinstance(n, IntImm) else None for n in made.shape)
    if (shape, made.dtype) != (wanted.shape, wanted.dtype):
        found = f"{made.dtype}[{', '.join(map(str, made.shape))}]"
        raise GraphError(f"{v.op}: compute gives {found}, infer says {wanted}", "the two describe one result")
    return made


def make_kernel(group: Group, types: Mapping[Value, TensorType], inplace: int | None = None) -> Kernel:
    """The kernel of a group; its name has the operators and a digest of what it computes.

    The digest is that of the te program: what operators are called, and how they print, decides nothing.
    """
    args = program(group, types)
    digest = hashlib.sha256(f"{graph_text(args)}\ninplace {inplace}".encode()).hexdigest()[:16]
    name = "_".join([type(v.op).__name__.lower() for v in group.values][-4:] + [digest])
    return Kernel(name, group, args, inplace)


def inplace_candidates(group: Group) -> list[int]:
    """Positions in group.inputs that the output may overwrite: read by operators at the index they write only.

    Every operator between such a read and the output must be elementwise too, or the output element would be
    written before another one is computed from the same input.
    """
    aligned = {group.output}
    for v in reversed(group.values):
        if v in aligned:
            aligned.update(x for k, x in enumerate(v.inputs) if k in v.op.inplace)
    return [k for k, x in enumerate(group.inputs) if x in aligned and _only_aligned_reads(group, x, aligned)]


def _only_aligned_reads(group: Group, x: Value, aligned: set[Value]) -> bool:
    return all(k in v.op.inplace and v in aligned
               for v in group.values for k, i in enumerate(v.inputs) if i is x and k not in v.op.shape_only)
