"""The state of emitting one function, and the tables through which the families of emitters are found."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.types import float_literal, int_literal, register_type, splat
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Expr, FloatImm, IntImm, Var
from tilewright.tir.stmt import Stmt

F = TypeVar("F", bound=Callable[..., Any])
EXPRESSIONS: dict[type, Callable[[FunctionEmitter, Any], str]] = {}
STATEMENTS: dict[type, Callable[[FunctionEmitter, Any], None]] = {}
CALLS: dict[str, Callable[[FunctionEmitter, Any], str]] = {}


def emits(table: dict[Any, Any], *keys: Any) -> Callable[[F], F]:
    """Decorator: the function emits nodes of these types (or calls of these names)."""
    def keep(fn: F) -> F:
        table.update((key, fn) for key in keys)
        return fn
    return keep


class FunctionEmitter(FunctionBuilder):
    """Emits expressions and statements of one flat PrimFunc into one LLVM function.

    `values` holds the operand of each scalar Var, `wide` its 64-bit form where one exists, `pointers` the address of
    each buffer by its data Var. `held` are the addresses that tw_free gets before the function returns. `time` goes on
    where memory may change: at each statement and call of unknown code.
    """

    def __init__(self, module: ModuleBuilder, name: str) -> None:
        super().__init__(module)
        self.name = name
        self.values: dict[Var, str] = {}
        self.wide: dict[Var, str] = {}
        self.pointers: dict[Var, str] = {}
        self.buffers: dict[Var, Buffer] = {}
        self.natural: dict[Var, int] = {}         # variables known to be >= 0, with a number that they do not exceed
        self.in_guard = False                     # within `likely`: comparisons of indices, which do not wrap
        self.in_parallel = False                  # it runs on several threads at once
        self.stack_bytes = 0
        self.held: list[str] = []
        self.time = 0
        self.loaded: list[Load] = []
        self.noalias = True
        self.flags = "contract " if module.contract else ""

    def expr(self, e: Expr) -> str:
        """The operand (a register or a constant, without its type) that holds e."""
        emit = EXPRESSIONS.get(type(e))
        if type(e) is Load and emit is not None:         # no store lies between two uses of it in a statement
            self.loaded.append(e)                        # so that its id stays its own
            return self.once(f"{id(e)} {self.time}", lambda: emit(self, e))
        if emit is None:
            raise CodegenError(
                f"{self.name}: an expression of type {type(e).__name__} has no machine code: {e}"
            )
        return emit(self, e)

    def stmt(self, s: Stmt) -> None:
        """Emit the statement at the end of the current block."""
        emit = STATEMENTS.get(type(s))
        if emit is None:
            raise CodegenError(
                with_hint(
                    f"{self.name}: a statement of type {type(s).__name__} has no machine code",
                    "lower the function first: tilewright.lowering.lower(func)",
                )
            )
        self.time += 1
        emit(self, s)

    def typed(self, e: Expr) -> str:
        """`type operand` of e."""
        return f"{register_type(e.dtype)} {self.expr(e)}"

    def broadcast(self, operand: str, scalar_type: str, lanes: int) -> str:
        """The vector of `lanes` copies of a scalar operand."""
        if not operand.startswith("%"):
            return f"splat ({scalar_type} {operand})"
        vector = f"<{lanes} x {scalar_type}>"
        one = self.value(f"insertelement {vector} poison, {scalar_type} {operand}, i64 0")
        return self.value(f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def any_of(self, mask: str) -> str:
        """True when a lane of the mask (`type operand`) is."""
        lanes = mask.split(" ")[0][1:]
        return self.value(f"icmp ne i{lanes} {self.value(f'bitcast {mask} to i{lanes}')}, 0")

    def all_of(self, mask: str) -> str:
        """True when all lanes of the mask (`type operand`) are."""
        lanes = mask.split(" ")[0][1:]
        return self.value(f"icmp eq i{lanes} {self.value(f'bitcast {mask} to i{lanes}')}, -1")

    def select(self, condition: str, condition_type: str, a: str, b: str, type_: str) -> str:
        return a if a == b else self.value(f"select {condition_type} {condition}, {type_} {a}, {type_} {b}")

    @contextmanager
    def bound(self, var: Var, operand: str, wide: str | None = None) -> Iterator[None]:
        """var stands for operand inside."""
        self.values[var] = operand
        if wide is not None:
            self.wide[var] = wide
        yield
        del self.values[var]
        self.wide.pop(var, None)

    def call(
        self,
        name: str,
        result: str,
        arguments: tuple[tuple[str, str], ...],
        mangled: tuple[str, ...] | None = None,
        flags: str = "",
    ) -> str:
        """The value of the LLVM intrinsic `llvm.<name>` of (type, operand) arguments."""
        types = tuple(t for t, _ in arguments)
        symbol = self.module.intrinsic(name, result, types, (result,) if mangled is None else mangled)
        return self.value(f"call {flags}{result} {symbol}({', '.join(f'{t} {v}' for t, v in arguments)})")


@emits(EXPRESSIONS, Var)
def emit_var(fn: FunctionEmitter, e: Var) -> str:
    """A scalar variable, or the address behind a handle."""
    found = fn.values.get(e) or fn.pointers.get(e)
    if found is not None:
        return found
    wide = fn.wide.get(e)
    if wide is None:
        raise CodegenError(f"{fn.name}: variable {e.name} is used where it is not defined")
    bits = dt.bits_of(e.dtype)
    return wide if bits == 64 else fn.value(f"trunc i64 {wide} to i{bits}")


@emits(EXPRESSIONS, IntImm)
def emit_int(fn: FunctionEmitter, e: IntImm) -> str:
    return int_literal(e.value, e.type)


@emits(EXPRESSIONS, FloatImm)
def emit_float(fn: FunctionEmitter, e: FloatImm) -> str:
    return float_literal(e.value, e.type)


def constant_of(dtype: str, value: float) -> str:
    """The constant `value` as an operand of dtype (a splat for vectors)."""
    element, _ = dt.parse(dtype)
    text = float_literal(value, element) if dt.is_float(element) else int_literal(int(value), element)
    return splat(register_type(dtype), text)
