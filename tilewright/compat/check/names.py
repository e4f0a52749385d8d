"""What of TVM a script uses and we do not have, names and forms of calls: found in its syntax tree, nothing is run."""
from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewright import runtime, te, tir
from tilewright.compat import adapters, building, namespace, nodes
from tilewright.compat.check.calls import misfit
from tilewright.compat.schedules import TvmSchedule
from tilewright.driver import Target, target
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.stages.stage import Stage
from tilewright.support.errors import ArgumentError, nearest
from tilewright.tir import ir_builder
from tilewright.tir.ir_builder import BufferVar, IRBuilder


@dataclass(frozen=True, order=True)
class Missing:
    """A use, in a line of the script, of a name that we lack; `call`: of one that we have, with other arguments."""
    line: int
    name: str
    hint: str
    call: bool = False

    def __str__(self) -> str:
        return f"{self.name}" + (f": {self.hint}" if self.hint else "")


@dataclass(frozen=True)
class Instance:
    """A value of which only the class is known."""
    kind: type


@dataclass(frozen=True)
class Path:
    """A name of TVM, and what it is here."""
    name: str
    value: Any


@dataclass(frozen=True)
class Gap:
    """A name that we lack."""
    name: str
    hint: str


# What calls give, by the function; a class gives an instance of itself.
_RESULTS: dict[Any, type] = {
    te.create_schedule: StageSchedule, te.placeholder: te.Tensor, te.compute: te.Tensor, te.extern: te.Tensor,
    building.build: runtime.Module, building.lower: tir.IRModule,
    te.create_prim_func: tir.PrimFunc, adapters.array: runtime.Tensor,
    adapters.empty: runtime.Tensor, ir_builder.create: IRBuilder,
    runtime.load_module: runtime.Module, tir.decl_buffer: tir.Buffer, adapters.device: runtime.Device,
    target: Target, runtime.cpu: runtime.Device,
}
_ITEMS: dict[type, type] = {StageSchedule: Stage}                       # s[C]
_METHODS = {(StageSchedule, "cache_read"): te.Tensor, (StageSchedule, "cache_write"): te.Tensor,
            (IRBuilder, "buffer_ptr"): BufferVar, (IRBuilder, "allocate"): BufferVar}
_NAMED = {StageSchedule: "Schedule", TvmSchedule: "tir.Schedule", runtime.Tensor: "NDArray", runtime.Module: "Module"}


def missing_names(source: str | bytes, file: str = "script") -> list[Missing]:
    """The uses of names that we lack and the calls that do not fit, in the order of lines, each once per line.

    Aliases of imports and of assignments are followed, and the methods of values whose class the call that makes them
    tells (schedules, stages, tensors, modules). Bytes are read as Python reads a file, by their coding line. Raises
    ArgumentError for a script that is not Python, or is nested too deeply to be read.
    """
    visitor = _Uses()
    try:
        visitor.visit(ast.parse(source, file))
    except (SyntaxError, ValueError) as why:
        raise ArgumentError(f"{file} is not Python: {why}") from None
    except (RecursionError, MemoryError):
        raise ArgumentError(f"{file} is nested too deeply to be read") from None
    return sorted(set(visitor.found))


def member(of: Any, name: str) -> Any:
    """`of.name`: a Path, Instance or Gap where it is known, None otherwise."""
    if isinstance(of, Gap):
        full = f"{of.name}.{name}"
        return Gap(full, namespace.hint_for(full) if full.startswith("tvm.") else of.hint)
    if isinstance(of, Path) and isinstance(of.value, namespace.Namespace):
        full = f"{of.name}.{name}"
        found = of.value.__dict__.get(name, _ABSENT)
        return Gap(full, namespace.hint_for(full)) if found is _ABSENT else Path(full, found)
    if isinstance(of, Path) and isinstance(of.value, types.ModuleType):
        full = f"{of.name}.{name}"
        return Path(full, getattr(of.value, name)) if hasattr(of.value, name) else Gap(full, "")
    kind = of.kind if isinstance(of, Instance) else of.value if isinstance(of, Path) else None
    if isinstance(kind, nodes.Kind) and kind.of is not None and name not in vars(kind):
        kind = kind.of
    if not isinstance(kind, type) or name.startswith("__"):
        return None
    if has(kind, name):
        return _Method(kind, name, isinstance(of, Instance))
    owner = of.name if isinstance(of, Path) else _NAMED.get(kind, kind.__name__)
    return Gap(f"{owner}.{name}", nearest(name, [n for n in dir(kind) if not n.startswith("_")], cutoff=0.8))


_ABSENT = object()


class _Uses(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[Missing] = []
        self.env: dict[str, Any] = {}

    # names

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.split(".")[0]
            if root not in ("tvm", "topi"):
                continue
            whole = self.reported(node, self.resolved(alias.name))
            self.env[alias.asname or root] = whole if alias.asname else self.resolved(root)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or node.module.split(".")[0] not in ("tvm", "topi"):
            return
        home = self.resolved(node.module)
        for alias in node.names:
            if alias.name != "*":
                self.env[alias.asname or alias.name] = self.reported(node, member(home, alias.name))
        if node.names[0].name == "*":
            self.reported(node, home)

    def resolved(self, dotted: str) -> Any:
        """What a dotted module name is."""
        first, *rest = dotted.split(".")
        at: Any = Path("tvm", namespace.tvm) if first == "tvm" else Path("tvm.topi", namespace.MODULES["tvm.topi"])
        for name in rest:
            at = member(at, name)
        return at

    def reported(self, node: ast.AST, value: Any) -> Any:
        """value; a Gap is noted."""
        if isinstance(value, Gap):
            self.found.append(Missing(getattr(node, "lineno", 1), value.name, value.hint))
        return value

    # expressions: visiting one gives what is known of its value

    def value(self, node: ast.AST | None) -> Any:
        if isinstance(node, ast.Name):
            return self.env.get(node.id)
        if isinstance(node, ast.Attribute):
            return self.reported(node, self.attribute(node))
        if isinstance(node, ast.Call):
            called = self.value(node.func)
            for part in (*node.args, *(k.value for k in node.keywords)):
                self.value(part)
            self.fitting(node, called)
            return _result(called)
        if isinstance(node, ast.Subscript):
            of = self.value(node.value)
            self.value(node.slice)
            kind = _ITEMS.get(of.kind) if isinstance(of, Instance) else None
            return None if kind is None else Instance(kind)
        if node is not None:
            self.generic_visit(node)
        return None

    def fitting(self, node: ast.Call, called: Any) -> None:
        """Note a call whose arguments do not fit."""
        if isinstance(called, Path):
            name, wrong = called.name, misfit(node, called.value)
        elif isinstance(called, _Method) and callable(getattr(called.kind, called.name, None)):
            owner = _NAMED.get(called.kind, called.kind.__name__)
            static = isinstance(inspect.getattr_static(called.kind, called.name), (staticmethod, classmethod))
            function = getattr(called.kind, called.name)
            name, wrong = f"{owner}.{called.name}", misfit(node, function, method=called.bound and not static)
        else:
            return
        if wrong:
            self.found.append(Missing(node.lineno, f"{name}(...)", wrong, True))

    def attribute(self, node: ast.Attribute) -> Any:
        """The value of a chain of attributes, of which a Gap is to be noted once, in full."""
        inner = node.value
        return member(self.attribute(inner) if isinstance(inner, ast.Attribute) else self.value(inner), node.attr)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.value(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.value(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.value(node)

    # what binds names

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for name in node.targets:
            self.bind(name, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        self.bind(node.target, self.value(node.value))

    def visit_For(self, node: ast.For) -> None:
        self.value(node.iter)
        self.bind(node.target, None)
        for s in (*node.body, *node.orelse):
            self.visit(s)

    def visit_withitem(self, node: ast.withitem) -> None:
        value = self.value(node.context_expr)
        if node.optional_vars is not None:
            self.bind(node.optional_vars, value)

    def bind(self, target: ast.AST, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for t in target.elts:
                self.bind(t, None)
        else:
            self.visit(target)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *(a.annotation for a in node.args.args), node.returns):
            if part is not None:
                self.visit(part)
        with self.inner(node.args):
            for s in node.body:
                self.visit(s)
        self.env[node.name] = None

    def visit_Lambda(self, node: ast.Lambda) -> None:
        with self.inner(node.args):
            self.value(node.body)

    @contextmanager
    def inner(self, args: ast.arguments) -> Iterator[None]:
        """The scope of a function: its parameters hide names, and its own names end with it."""
        outer, self.env = self.env, dict(self.env)
        every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
        self.env.update({a.arg: None for a in every if a is not None})
        yield
        self.env = outer


@dataclass(frozen=True)
class _Method:
    kind: type
    name: str
    bound: bool                      # of an object, not of the class itself


def _result(called: Any) -> Any:
    """What is known of the result of a call."""
    if isinstance(called, _Method):
        kind = _METHODS.get((called.kind, called.name))
        return None if kind is None else Instance(kind)
    if not isinstance(called, Path):
        return None
    if isinstance(called.value, type):
        made = called.value.of if isinstance(called.value, nodes.Kind) else called.value
        return None if made is None else Instance(made)
    plain: Callable[..., Any] | None = called.value if isinstance(called.value, types.FunctionType) else None
    kind = _RESULTS.get(plain)
    return None if kind is None else Instance(kind)


def has(kind: type, name: str) -> bool:
    """True when instances of the class have the attribute."""
    declared = any(name in vars(k).get("__annotations__", {}) or name in _slots(k) for k in kind.__mro__)
    return declared or hasattr(kind, name) or name in _set_in_init(kind)


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _set_in_init(kind: type) -> set[str]:
    """Attributes that the constructors assign: names of `self.x = ...` in their code."""
    codes = [f.__code__ for k in kind.__mro__ if isinstance(f := vars(k).get("__init__"), types.FunctionType)]
    return {name for code in codes for name in code.co_names}
