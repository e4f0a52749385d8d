"""Run a PrimFunc at any stage on NumPy arrays, one element at a time: the definition of what the IR means.

Stricter than hardware. It raises InterpreterError when an access is out of bounds, when memory is read that
nothing has written, when two iterations of a parallel, vectorized or thread-bound loop touch one element and
one of them writes it, when two lanes of a store meet, and when a block axis leaves its domain.
"""
from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.runtime.scalars import number
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, InterpreterError, described
from tilewright.support.registry import hook
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.empty_reductions import start_empty_reductions
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.interp.memory import MemoryCompiler
from tilewright.tir.interp.scalars import V, literal
from tilewright.tir.interp.statements import Compiler
from tilewright.tir.interp.support import FLOATS
from tilewright.tir.shared_work import share_work
from tilewright.tir.stmt import IRModule, PrimFunc

_CACHE_SIZE = 256
_PROGRAMS: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()  # holds the IR too, so that ids stay unique


def run(func: PrimFunc | IRModule, *args: Any, check: bool = True,
        externs: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """Execute func in place: args[k] is the array (or number) for func.params[k]. Gives what it returns, or None.

    `check=False` leaves out the search for races. `externs` gives the functions behind call_extern and
    call_packed by name; they receive arrays and numbers. Raises InterpreterError, also for arguments that do
    not fit. Of a module its function "main", or the first, with what that calls.
    """
    if isinstance(func, IRModule):
        functions = hook("tir.link")(func.functions)
        if not functions:
            raise InterpreterError("run takes a PrimFunc, not a module without functions")
        return run(functions.get("main") or next(iter(functions.values())), *args, check=check, externs=externs)
    arrays, scalars, symbols = _bind(func, args)

    def build() -> tuple[Callable[..., Any], set[int]]:
        return _compile(func, arrays, scalars, symbols, check, externs or {})

    program, stored = build() if externs else _cached((id(func), check, *symbols.values()), func, build)
    lists = {p: _to_list(func.buffer_map[p], a, symbols) for p, a in arrays.items()}
    _refuse_aliases(func, arrays, stored)
    results = program.results                                       # type: ignore[union-attr]
    results.clear()
    with np.errstate(all="ignore"):
        program(*lists.values(), *scalars.values())
    for p, a in arrays.items():
        if id(func.buffer_map[p].data) in stored:
            _write_back(func.buffer_map[p], a, lists[p], symbols)
    return results[0] if results else None


def evaluate(e: Expr, env: Mapping[Var, Any] | None = None) -> Any:
    """The value of an expression that reads no memory: an int, a bool, a NumPy float, or a list of lanes."""
    env = env or {}
    names = {v: f"a{k}" for k, v in enumerate(env)}

    def build() -> Callable[..., Any]:
        c = MemoryCompiler("evaluate", e)
        c.indent = " "
        for v, name in names.items():
            low, high = dt.integer_range(v.dtype) if dt.is_integer(v.dtype) else (0, 0)
            c.env[id(v)] = V(name, low, high)
        result = c.emit(e)
        return _program(c, list(names.values()), f" return {result.text}")

    program = _cached((id(e), *map(id, env)), (e, tuple(env)), build)
    with np.errstate(all="ignore"):
        value = program(*[_scalar(x, v.dtype, f"evaluate: {v.name}") for v, x in env.items()])
    return list(value) if isinstance(value, range) else value


def source(func: PrimFunc, *args: Any, check: bool = True) -> str:
    """The Python source that `run` would execute, for debugging."""
    arrays, scalars, symbols = _bind(func, args)
    program, _ = _compile(func, arrays, scalars, symbols, check, {})
    return program.source  # type: ignore[attr-defined]


# compilation ------------------------------------------------------------------------------------------
def _cached(key: Any, owner: Any, build: Callable[[], Any]) -> Any:
    if key in _PROGRAMS:
        _PROGRAMS.move_to_end(key)
        return _PROGRAMS[key][1]
    program = build()
    _PROGRAMS[key] = (owner, program)
    if len(_PROGRAMS) > _CACHE_SIZE:
        _PROGRAMS.popitem(last=False)
    return program


def _program(c: MemoryCompiler, params: list[str], last: str) -> Callable[..., Any]:
    text = "\n".join([f"def program({', '.join(params)}):", *c.lines, last])
    space = dict(c.globals)
    exec(compile(text, "<tilewright interpreter>", "exec"), space)
    program = space["program"]
    program.source = text
    return program


def _compile(func: PrimFunc, arrays: Mapping[Var, np.ndarray], scalars: Mapping[Var, Any], symbols: Mapping[Var, int],
             check: bool, externs: Mapping[str, Callable[..., Any]]) -> tuple[Callable[..., Any], set[int]]:
    """(program over the lists of arrays and then scalars, the data Vars that it writes)."""
    func = share_work(start_empty_reductions(func))
    c = Compiler(func, check, externs)
    c.indent = " "
    for v, value in symbols.items():
        c.env[id(v)] = literal(value)
    for k, v in enumerate(scalars):
        c.env[id(v)] = V(f"s{k}")
    names = [f"p{k}" for k in range(len(arrays))]
    for p, name in zip(arrays, names, strict=True):
        b = func.buffer_map[p]
        shape, strides, offset = _layout(b, arrays[p].shape, symbols)
        c.add_memory(b, name, list(map(literal, shape)), list(map(literal, strides)), literal(offset), not b.strides)
        c.env[id(p)] = c.env[id(b.data)] = V(name)
    c.stmt(func.body)
    program = _program(c, names + [f"s{k}" for k in range(len(scalars))], " return None")
    program.results = c.results                                                # type: ignore[attr-defined]
    return program, c.plan.stored


# arguments --------------------------------------------------------------------------------------------
def _bind(func: PrimFunc, args: tuple[Any, ...]) -> tuple[dict[Var, np.ndarray], dict[Var, Any], dict[Var, int]]:
    """(array of each buffer parameter, value of each float parameter, value of each integer and shape variable)."""
    if not isinstance(func, PrimFunc):
        raise InterpreterError(f"run takes a PrimFunc, not {described(func)}",
                               'sch.mod["main"] is the function of a schedule, mod["name"] one of a module')
    if len(args) != len(func.params):
        raise InterpreterError(f"{func.name} takes {len(func.params)} argument(s), {len(args)} given")
    arrays: dict[Var, np.ndarray] = {}
    scalars: dict[Var, Any] = {}
    symbols: dict[Var, int] = {}
    for p, x in zip(func.params, args, strict=True):
        if p in func.buffer_map:
            arrays[p] = _array(func, func.buffer_map[p], x)
        elif dt.is_integer(p.dtype):
            symbols[p] = _scalar(x, p.dtype, f"{func.name}: argument {p.name}")
        else:
            scalars[p] = _scalar(x, p.dtype, f"{func.name}: argument {p.name}")
    pairs = [(func.buffer_map[p], e, n) for p, a in arrays.items() for e, n in zip(func.buffer_map[p].shape, a.shape)]
    for _, e, n in pairs:
        if isinstance(e, Var):
            symbols.setdefault(e, n)
    for b, e, n in pairs:
        expected = _known(e, symbols)
        if expected != n:
            raise InterpreterError(f"{func.name}: an extent of argument {b.name} is {n}, expected "
                                   f"{expected if isinstance(e, IntImm) else f'{e} = {expected}'}")
    for p, a in arrays.items():
        b, strides = func.buffer_map[p], _compact(a.shape)
        for e, n in [*zip(b.strides, strides), (b.elem_offset, 0)]:
            if isinstance(e, Var):
                symbols.setdefault(e, n)
    return arrays, scalars, symbols


def _array(func: PrimFunc, b: Buffer, x: Any) -> np.ndarray:
    if not hasattr(x, "__dlpack__"):
        raise InterpreterError(f"{func.name}: argument {b.name} is a {type(x).__name__}, expected an array")
    try:
        a = as_numpy(x)
    except ArgumentError as why:
        raise InterpreterError(f"{func.name}: argument {b.name}: {why}") from None
    if a.ndim != len(b.shape):
        raise InterpreterError(f"{func.name}: argument {b.name} has {a.ndim} dimension(s), expected {len(b.shape)}")
    if a.dtype != dt.numpy_dtype(b.dtype):
        raise InterpreterError(f"{func.name}: argument {b.name} is {a.dtype}, expected {b.dtype}")
    return a


def _scalar(x: Any, dtype: str, what: str) -> Any:
    """x as a call takes it, in the form that the interpreter computes with."""
    try:
        value = number(x, dtype)
    except ArgumentError as why:
        raise InterpreterError(f"{what} {why}") from None
    with np.errstate(all="ignore"):
        return FLOATS[dtype](value) if dt.is_float(dtype) else value


def _known(e: Expr, symbols: Mapping[Var, int]) -> int:
    return e.value if isinstance(e, IntImm) else evaluate(e, symbols)


def _compact(shape: tuple[int, ...]) -> list[int]:
    strides, size = [], 1
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return strides[::-1]


def _layout(b: Buffer, shape: tuple[int, ...], symbols: Mapping[Var, int]) -> tuple[tuple[int, ...], list[int], int]:
    """(shape, strides, offset) in elements."""
    strides = [_known(e, symbols) for e in b.strides] or _compact(shape)
    return shape, strides, 0 if b.elem_offset is None else _known(b.elem_offset, symbols)


def _positions(b: Buffer, a: np.ndarray, symbols: Mapping[Var, int]) -> np.ndarray | None:
    """The element of memory that holds each element of a; None when they are in order from 0."""
    shape, strides, offset = _layout(b, a.shape, symbols)
    if not offset and strides == _compact(shape):
        return None
    grid = np.indices(shape).reshape(len(shape), -1)
    return offset + np.asarray(strides, "int64") @ grid if shape else np.array([offset])


def _to_list(b: Buffer, a: np.ndarray, symbols: Mapping[Var, int]) -> list[Any]:
    flat = a.ravel()
    values = list(flat) if dt.is_float(b.dtype) else flat.tolist()
    at = _positions(b, a, symbols)
    if at is None:
        return values
    memory: list[Any] = [None] * (int(at.max(initial=-1)) + 1)
    for k, value in zip(at.tolist(), values, strict=True):
        memory[k] = value
    return memory


def _write_back(b: Buffer, a: np.ndarray, memory: list[Any], symbols: Mapping[Var, int]) -> None:
    at = _positions(b, a, symbols)
    values = memory if at is None else [memory[k] for k in at.tolist()]
    a[...] = np.array(values, a.dtype).reshape(a.shape)


def _refuse_aliases(func: PrimFunc, arrays: Mapping[Var, np.ndarray], stored: set[int]) -> None:
    for (p, a), (q, b) in itertools.combinations(arrays.items(), 2):
        x, y = func.buffer_map[p], func.buffer_map[q]
        written = id(x.data) in stored or id(y.data) in stored
        if written and np.may_share_memory(a, b) and np.shares_memory(a, b):
            raise InterpreterError(f"{func.name}: arguments {x.name} and {y.name} overlap and one is written")
