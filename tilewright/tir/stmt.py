"""Statements, blocks and functions of the loop IR."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.support.errors import IRError, described
from tilewright.support.registry import hook, register_hook
from tilewright.tir.buffer import Buffer, BufferRegion, MatchBuffer
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.functions import BaseFunc, GlobalVar, Shown
from tilewright.tir.iter_var import COMM_REDUCE, IterVar, Range
from tilewright.tir.node import map_children, walk
from tilewright.tir.structure import STRUCTURE, Effect, Node, structure

__all__ = [
    "Allocate", "BaseFunc", "Block", "BlockRealize", "Evaluate", "FOR_KINDS", "For", "GlobalVar", "IRModule",
    "IfThenElse", "LetStmt", "NOP", "PARALLEL", "PrimFunc", "SERIAL", "Seq", "Stmt", "Store", "THREAD_BINDING",
    "UNROLLED", "VECTORIZED", "While", "loop", "range_of", "seq",
]
SERIAL, PARALLEL, VECTORIZED, UNROLLED = "serial", "parallel", "vectorized", "unroll"
THREAD_BINDING = "thread_binding"
FOR_KINDS = (SERIAL, PARALLEL, VECTORIZED, UNROLLED, THREAD_BINDING)


@structure(statement=True)
@dataclass(slots=True, eq=False, repr=False)
class Stmt(Node):
    """Something that is executed."""


@structure(effect=Effect.WRITES)
@dataclass(slots=True, eq=False, repr=False)
class Store(Stmt):
    """buffer[indices] = value; lanes where predicate (bool lanes) is false are left alone."""
    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]
    predicate: Expr | None = None


@structure(defines=("loop_var",), within=("body",))
@dataclass(slots=True, eq=False, repr=False)
class For(Stmt):
    """for loop_var in range(min, min + extent): body. kind is one of FOR_KINDS.

    A thread_binding loop has a thread_tag ("blockIdx.x", "threadIdx.y", "vthread.x", ...).
    """
    loop_var: Var
    min: Expr
    extent: Expr
    kind: str
    body: Stmt
    thread_tag: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)


THREAD_TAGS = (*(f"{kind}.{d}" for kind in ("blockIdx", "threadIdx", "vthread") for d in "xyz"), "vthread", "cthread")


def is_thread_axis(tag: str) -> bool:
    """True for the axes of the threads of one block, real or virtual: they see one copy of memory in shared scope."""
    return tag.startswith(("threadIdx", "vthread"))


@dataclass(slots=True, eq=False, repr=False)
class While(Stmt):
    condition: Expr
    body: Stmt


@dataclass(slots=True, eq=False, repr=False)
class IfThenElse(Stmt):
    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None


@structure(defines=("var",), within=("body",))
@dataclass(slots=True, eq=False, repr=False)
class LetStmt(Stmt):
    """body with var bound to value."""
    var: Var
    value: Expr
    body: Stmt


@dataclass(slots=True, eq=False, repr=False)
class Seq(Stmt):
    """Statements one after the other. Built with `seq`, which never nests them."""
    stmts: tuple[Stmt, ...]

    @property
    def seq(self) -> tuple[Stmt, ...]:
        """The statements, as TVM calls them."""
        return self.stmts

    def __getitem__(self, position: Any) -> Any:
        return self.stmts[position]

    def __len__(self) -> int:
        return len(self.stmts)

    def __bool__(self) -> bool:
        return True                              # also without statements: it is a statement


@dataclass(slots=True, eq=False, repr=False)
class Evaluate(Stmt):
    """Evaluate value for its effect."""
    value: Expr


@structure(defines=("buffer",), within=("body",))
@dataclass(slots=True, eq=False, repr=False)
class Allocate(Stmt):
    """body with fresh, uninitialised memory for buffer (after block lowering)."""
    buffer: Buffer
    body: Stmt
    annotations: Mapping[str, Any] = field(default_factory=dict)


@structure(defines=("iter_vars", "alloc_buffers", "match_buffers"), labels=("name",), runs=("init", "body"),
           within=("reads", "writes", "annotations", "init", "body"))
@dataclass(slots=True, eq=False, repr=False)
class Block(Stmt):
    """A computation over iter_vars, isolated from the loops that drive it.

    reads and writes are the regions touched by one instance. `init` runs before the first reduction step of
    each spatial point. alloc_buffers are live inside the block only.
    """
    name: str
    iter_vars: tuple[IterVar, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBuffer, ...] = ()
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name_hint(self) -> str:
        """The name, as TVM calls it."""
        return self.name


@dataclass(slots=True, eq=False, repr=False)
class BlockRealize(Stmt):
    """Run one instance of block with iter_values bound to its iter_vars, where predicate holds."""
    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: Block

    @property
    def bound(self) -> list[tuple[IterVar, Expr]]:
        """Each axis of the block with the value that it is bound to."""
        return list(zip(self.block.iter_vars, self.iter_values, strict=True))

    def reduces_over(self, *variables: Var) -> bool:
        """True when one of the variables drives a reduction axis of the block."""
        drivers = {*variables}
        return any(iv.iter_type == COMM_REDUCE and any(n in drivers for n in walk(value)) for iv, value in self.bound)


def map_sub_statements(stmt: Stmt, fn: Callable[[Any], Stmt]) -> Stmt:
    """stmt with fn applied to the statements directly below it; stmt itself when nothing changed."""
    new = map_children(stmt, fn, STRUCTURE[type(stmt)].statements)
    return seq(new.stmts) if type(new) is Seq and new is not stmt else new


@structure(defines=("params", "buffer_map"), sizes=("shape", "strides", "elem_offset"), within=("body", "attrs"))
@dataclass(slots=True, eq=False, repr=False)
class PrimFunc(Node, BaseFunc):
    """A kernel. params are handle or scalar Vars; buffer_map gives the Buffer behind each handle.

    attrs has "global_symbol" (the name) and "tir.noalias". A PrimFunc of blocks has a root block as its body.
    """
    params: tuple[Var, ...]
    body: Stmt
    buffer_map: Mapping[Any, Buffer] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.attrs.get("global_symbol", "main")

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The argument buffers, in parameter order."""
        return tuple(self.buffer_map[p] for p in self.params if p in self.buffer_map)

    def with_body(self, body: Stmt) -> PrimFunc:
        return self if body is self.body else self.replace(body=body)

    def with_attrs(self, **attrs: Any) -> PrimFunc:
        """This function with these attributes; a "global_symbol" of None is none."""
        changed = {**self.attrs, **attrs}
        if changed.get("global_symbol", "") is None:
            del changed["global_symbol"]
        return self.replace(attrs=changed)

    def with_attr(self, key: str | Mapping[str, Any], value: Any = None) -> PrimFunc:
        """This function with an attribute, or with those of a dict."""
        return self.with_attrs(**key) if isinstance(key, Mapping) else self.with_attrs(**{key: value})

    def without_attr(self, key: str) -> PrimFunc:
        """This function without an attribute."""
        return self.replace(attrs={k: v for k, v in self.attrs.items() if k != key})

    def specialize(self, param_map: Mapping[Any, Any]) -> PrimFunc:
        """This function with parameters fixed: {n: 128}, or {a: decl_buffer((128, 128))} for a buffer's parameter.

        Raises IRError for a key that is no parameter, and for a buffer that does not fit.
        """
        return hook("tir.specialize")(self, param_map)


@dataclass(slots=True, eq=False, repr=False)
class IRModule(Node, Shown):
    """Named functions: PrimFuncs, and functions of higher floors beside them."""
    functions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.functions = {GlobalVar(name): f for name, f in _functions(self.functions, "IRModule").items()}

    @staticmethod
    def from_expr(func: Any) -> IRModule:
        """The module of one function, under its name."""
        return IRModule({func.name: func})

    def __getitem__(self, name: str) -> Any:
        if name not in self.functions:
            known = ", ".join(self.functions) or "none"
            raise IRError(f"the module has no function {name!r}; it has {known}")
        return self.functions[name]

    def __setitem__(self, name: str, func: BaseFunc) -> None:
        self.update_func(name, func)

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def get_global_var(self, name: str) -> GlobalVar:
        """The name of a function as TVM has it. Raises IRError where there is none."""
        self[name]
        return GlobalVar(name)

    def get_global_vars(self) -> list[GlobalVar]:
        """The names of the functions."""
        return [GlobalVar(name) for name in self.functions]

    def functions_items(self) -> list[tuple[str, Any]]:
        """(name, function) of each function, as TVM calls it."""
        return list(self.functions.items())

    def clone(self) -> IRModule:
        """A module of the same functions, which can be changed by itself."""
        return IRModule(dict(self.functions))

    def update_func(self, name: str, func: BaseFunc) -> None:
        """Put func in the place of the function of that name, or add it, in this module."""
        self.update({name: func})

    def update(self, other: IRModule | Mapping[str, BaseFunc]) -> None:
        """Put the functions of other into this module. Raises IRError, before it changes, for what is no function."""
        added = _functions(other, "update")
        wrong = next((f for f in added.values() if not isinstance(f, BaseFunc)), None)
        if wrong is not None:
            raise IRError(f"a module holds functions, not {type(wrong).__name__}")
        self.functions = {**self.functions, **{GlobalVar(name): f for name, f in added.items()}}


def _functions(source: Any, what: str) -> Mapping[str, Any]:
    """The named functions that a call was given. Raises IRError for something else."""
    found = source.functions if isinstance(source, IRModule) else source
    if not isinstance(found, Mapping):
        raise IRError(f"{what} takes functions by their names, a dict or an IRModule, not {described(source)}")
    wrong = next((name for name in found if not isinstance(name, str) or not name), None)
    if wrong is not None:
        raise IRError(f"{what}: the name of a function is a text, not {described(wrong)}")
    return found


@register_hook("tir.store")
def _store(buffer: Buffer, value: Expr, indices: tuple[Expr, ...]) -> Store:
    return Store(buffer, value, indices)


def seq(stmts: Iterable[Stmt]) -> Stmt:
    """The statements in order as one: flattened; the statement itself when there is only one."""
    flat: list[Stmt] = []
    for s in stmts:
        flat.extend(s.stmts if isinstance(s, Seq) else (s,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


NOP = Seq(())


def loop(var: Var, extent: Any, body: Stmt, kind: str = SERIAL, thread_tag: str = "", min: Any = 0,
         **annotations: Any) -> For:
    """A For from 0 (or min); integers become constants of the variable's dtype."""
    def imm(x: Any) -> Expr:
        return x if isinstance(x, Expr) else IntImm(int(x), var.dtype)
    return For(var, imm(min), imm(extent), kind, body, thread_tag, annotations)


def range_of(min: Any, extent: Any) -> Range:
    """A Range from expressions or integers."""
    lo, size = (x if isinstance(x, Expr) else IntImm(int(x)) for x in (min, extent))
    return Range(lo, size)
