"""What the names of T are: the texts of `help(T.grid)`. The first line is how a name is written."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from tilewright.tir.ops import BINARY, INTRINSICS

_BUFFER = 'dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=64, offset_factor=0'

FORMS: dict[str, str] = {
    "grid": """T.grid(*extents)
Nested serial loops from 0, outermost first: `for i, j in T.grid(8, 8):`.""",
    "serial": """T.serial(start, stop=None, *, annotations=None)
A loop that runs in order, over [0, start) or [start, stop): `for i in T.serial(8):`. `range(8)` is the same.""",
    "parallel": """T.parallel(start, stop=None, *, annotations=None)
A loop whose iterations run on several threads: `for i in T.parallel(8):`. They must not depend on each other.""",
    "vectorized": """T.vectorized(start, stop=None, *, annotations=None)
A loop whose iterations are the lanes of vectors: `for i in T.vectorized(16):`. The extent is a constant.""",
    "unroll": """T.unroll(start, stop=None, *, annotations=None)
A loop that is written out: `for i in T.unroll(4):`.""",
    "thread_binding": """T.thread_binding(start, stop=None, thread="", *, annotations=None)
A loop that is bound to a thread axis: `for i in T.thread_binding(32, thread="threadIdx.x"):`.""",
    "block": """T.block(name)
A computation over axes, isolated from the loops around it:

    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]

Schedules find it by its name. T.reads, T.writes, T.where, T.init and T.block_attr may stand in it.""",
    "init": """T.init()
What runs before the first step of a reduction, in its block: `with T.init(): C[vi, vj] = T.float32(0)`.""",
    "launch_thread": """T.launch_thread(thread, extent)
A loop bound to a thread axis: `with T.launch_thread("threadIdx.x", 32) as tx:`, or without `with` for all that
follows. thread: its name, or what T.env_thread gave.""",
    "LetStmt": """T.LetStmt(value, var=None)
A variable for what stands inside: `with T.LetStmt(i * 8) as x:`. `x = i * 8` is the same for all that follows. var: an
`x = T.int32()` that takes the value.""",
    "let": """T.let(value)
A variable for what stands inside: `with T.let(i * 8) as x:`, or `with T.let(x, i * 8):` after `x = T.int32()`.""",
    "Let": """T.Let(body, where={name: value})
The expression body with a variable in it: `T.Let(x * x, where={x: A[0]})`.""",
    "allocate": """T.allocate(extents, dtype, scope="global", *, annotations=None)
Memory for what follows, or inside `with`: `b = T.allocate([64], "float32")`. T.Buffer(..., data=b) gives it a
shape.""",
    "allocate_const": """T.allocate_const(data, dtype, extents)
Constants, which a buffer then gives a shape: `K = T.allocate_const([1, 2, 3], "int32", [3])`, `B = T.Buffer((3,),
"int32", data=K)`. At most 1024: a larger table is an argument.""",
    "decl_buffer": f"""T.decl_buffer(shape, {_BUFFER})
Memory with a shape for what follows, or inside `with`: `B = T.decl_buffer((8, 8))`; with data=A.data a view of A.""",
    "alloc_buffer": f"""T.alloc_buffer(shape, {_BUFFER})
A buffer of the block around, or of the function: `B = T.alloc_buffer((128, 128), "float32")`.""",
    "match_buffer": f"""T.match_buffer(param, shape, {_BUFFER})
The buffer behind a parameter of type T.handle: `A = T.match_buffer(a, (n, 16), "float32")`; variables in the shape
are bound by the call. In a block, of a region: a view, `W = T.match_buffer(A[0:16, 0:16], (16, 16))`.""",
    "env_thread": """T.env_thread(thread_tag)
The variable of a thread axis, for T.launch_thread: `tx = T.env_thread("threadIdx.x")`.""",
    "Assert": """T.Assert(condition, message="")
A condition that is checked when the kernel runs; the call raises where it does not hold. `assert condition, message`
is the same, and `with T.Assert(...):` puts it before a body. What is known while the script is parsed is decided then.
The kernel stops there: of a parallel loop the part of the iterations in which it failed, and what follows the loop.
What was written before stays.""",
    "attr": """T.attr(node, attr_key, value)
`with T.attr(tx, "thread_extent", 32):` is T.launch_thread(tx, 32), for tx = T.env_thread(...); an attribute
"pragma_..." becomes an annotation of the loop inside.""",
    "buffer_store": """T.buffer_store(buffer, value, indices, predicate=None)
buffer[indices] = value.""",
    "reads": """T.reads(*regions)
What a block reads: `T.reads(A[vi, 0:16], B[vj])`. Found by itself where it is left out.""",
    "writes": """T.writes(*regions)
What a block writes: `T.writes(C[vi, vj])`. Found by itself where it is left out.""",
    "where": """T.where(condition)
The block runs only where the condition holds: `T.where(i * 8 + j < n)`.""",
    "block_attr": """T.block_attr(attrs)
Annotations of a block: `T.block_attr({"key": 1})`.""",
    "func_attr": """T.func_attr(attrs)
Attributes of the function: `T.func_attr({"global_symbol": "main", "tir.noalias": True})`.""",
    "evaluate": """T.evaluate(value)
A value that is computed for its effect: `T.evaluate(T.call_extern("int32", "f", A.data))`.""",
    "prim_func": """@T.prim_func
A Python function as a kernel: its body is parsed, not run.""",
    "macro": """@T.macro
Statements that stand wherever they are called: `@T.macro` above `def fill(A, i, value):`, then `fill(A, i, 0)` on a
line of its own. Parameters are what the call gives, buffers too. Other names are those of the place where the macro is
written; under @T.macro(hygienic=False) those of the place where it is called.""",
    "axis.spatial": """T.axis.spatial(domain, value)
An axis of a block along which every point is independent: `vi = T.axis.spatial(128, i)`.""",
    "axis.reduce": """T.axis.reduce(domain, value)
An axis of a block over which values are combined: `vk = T.axis.reduce(128, k)`.""",
    "axis.scan": """T.axis.scan(domain, value)
An axis of a block whose points run in order.""",
    "axis.opaque": """T.axis.opaque(domain, value)
An axis of a block of which nothing is known.""",
    "axis.remap": """T.axis.remap(kinds, loops)
One axis for each loop, S spatial and R reduce: `vi, vj, vk = T.axis.remap("SSR", [i, j, k])`.""",
}
FORMS |= {"axis.S": FORMS["axis.spatial"].replace(".spatial", ".S"),
          "axis.R": FORMS["axis.reduce"].replace(".reduce", ".R")}

FUNCTIONS: dict[str, str] = {
    "if_then_else": """T.if_then_else(condition, a, b, dtype=None)
a where the condition holds, else b; only the one chosen is evaluated. `a if condition else b` is the same.""",
    "ret": """T.ret(value)
What the function returns, a number. It is the last thing that the function does, on every way through it.""",
    "Ptr": """T.Ptr(dtype, storage_scope="global")
The type of a parameter that is the address of elements, T.handle("float32"): `A = T.decl_buffer((4,), data=p)` says
how they lie.""",
    "target": """T.target(target_config, host=None)
A target, by its text or a dict: `T.func_attr({"target": T.target("llvm -mcpu=znver4")})`.""",
    "Select": "T.Select(condition, a, b)\na where the condition holds, else b; both may be evaluated.",
    "cast": "T.cast(value, dtype)\nvalue converted to dtype.",
    "Cast": "T.Cast(dtype, value)\nvalue converted to dtype: floats are rounded, to integers towards zero.",
    "Ramp": "T.Ramp(base, stride, lanes)\nThe vector base, base + stride, ...",
    "Broadcast": "T.Broadcast(value, lanes)\nThe vector of `lanes` times value.",
    "Shuffle": """T.Shuffle(vectors, indices)
The lanes at the indices, constants, of all vectors one behind the other: T.Shuffle([a, b], [0, 4, 1, 5]).""",
    "reinterpret": "T.reinterpret(dtype, value)\nThe bits of value read as dtype of the same size.",
    "call_extern": """T.call_extern(dtype, name, *args)
Call the C function `name` that gives dtype; A.access_ptr("r") passes a buffer.""",
    "call_function": """T.call_function(dtype, name, *args)
Call the function `name` of the module around: `M.name(A.data, n)` of a class M. A buffer is passed whole, A.data.""",
    "call_packed": """T.call_packed(name, *args)
Call the packed function that `tilewright.register_func` registered; A.access_ptr("rw") passes a buffer as a tensor.""",
    "call_parallel": """T.call_parallel(name, min, extent, *args)
Run `name(begin, end, *args)` of the module around on threads, for ranges that make up min to min + extent. Code is made
of such functions: each parallel loop becomes one.""",
    "call_kernel": """T.call_kernel(name, *axes_and_extents, *args)
Run `name(*args)` of the module around on a device, with a grid and blocks of these extents:
`T.call_kernel("main__kernel0", "blockIdx.x", 4, "threadIdx.x", 32, A.data)`. For GPUs, code is made of such
functions.""",
    "call_llvm_pure_intrin": """T.call_llvm_pure_intrin(dtype, name, *args)
Call an intrinsic function of LLVM without effects: `T.call_llvm_pure_intrin("int32", "llvm.ctpop", x)`.""",
    "call_llvm_intrin": "T.call_llvm_intrin(dtype, name, *args)\nCall an intrinsic function of LLVM.",
    "min_value": "T.min_value(dtype)\nThe least value of a dtype; minus infinity of floats.",
    "max_value": "T.max_value(dtype)\nThe greatest value of a dtype; infinity of floats.",
    "infinity": "T.infinity(dtype)\nThe infinity of a float dtype.",
    "ceildiv": "T.ceildiv(a, b)\na / b rounded up.",
    "floordiv": "T.floordiv(a, b)\na / b rounded to minus infinity: a // b.",
    "floormod": "T.floormod(a, b)\na - b * floordiv(a, b): a % b.",
    "truncdiv": "T.truncdiv(a, b)\na / b rounded to zero, as in C.",
    "truncmod": "T.truncmod(a, b)\na - b * truncdiv(a, b), as in C.",
    "min": "T.min(a, b)\nThe smaller; NaN if one is.", "max": "T.max(a, b)\nThe larger; NaN if one is.",
    "all": "T.all(*conditions)\nTrue where every condition holds.",
    "any": "T.any(*conditions)\nTrue where some condition holds.",
    "likely": "T.likely(condition)\nThe condition, marked as nearly always true.",
    "assume": "T.assume(condition)\nA condition that holds, for LLVM to use. Nothing checks it; T.Assert does.",
    "print": """T.print(*values)
Write the values as one line to Python's stdout when the kernel runs; a buffer is printed whole. A text with `%` that
comes first, with values behind it, is their format, as of Python's `%` operator: `T.print("%d: %.2f", i, A[i])`.""",
    "table": """T.table(dtype, data, index)
An element of an array that the program holds: data is its bytes, little-endian, in base 64. Tensor expressions that
index an array of NumPy print so.""",
    "checked_index": """T.checked_index(index, extent)
An index of an access. Where it is not in [0, extent) the access is left out (a read gives 0), and the call raises.
Printed functions have it where a tensor expression reads at an index that is not known to stay inside.""",
    "address_of": "T.address_of(A[i])\nThe address of an element.",
    "meta_var": "T.meta_var(value)\nThe value itself, where an assignment would otherwise make a variable.",
    "const": "T.const(value, dtype=\"int32\")\nA constant.",
    "tvm_storage_sync": "T.tvm_storage_sync(scope)\nA barrier of the threads of a block.",
    "abs": "T.abs(x)\n|x| of a float or an integer.", "power": "T.power(a, b)\na to the power of b, of floats.",
}
BUFFER = f"""T.Buffer(shape, {_BUFFER})
The type of a parameter that is a buffer: `A: T.Buffer((128, 128), "float32")`; `T.Buffer[(128, 128), "float32"]` is
the older spelling. With data=, another view of the memory of a buffer: `B = T.Buffer((64,), data=A.data)`."""


def of_dtype(name: str) -> str:
    """The text of T.float32."""
    return (f"T.{name}(value=None)\nThe type {name}: of a parameter, `n: T.{name}`; T.{name}(1) is a constant, "
            f"T.{name}(x) a cast, T.{name}() a new variable.")


def of_function(name: str, fn: Callable[..., Any]) -> str:
    """The text of a function of T: its own, or how many arguments of which kind it takes."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    row = INTRINSICS.get(name)
    if row is not None and row.operands:
        names = ", ".join("abcdefgh"[:row.arity])
        return f"T.{name}({names})\nThe function {name} of {row.operands}s, lane by lane on vectors."
    try:
        parameters = [p.replace(annotation=p.empty) for p in inspect.signature(fn).parameters.values()]
    except (TypeError, ValueError):
        return f"T.{name}(...)"
    return f"T.{name}({', '.join(map(str, parameters))})\n{inspect.getdoc(fn) or ''}".rstrip()


def of_operator(op: str) -> str:
    """What a row of BINARY computes."""
    row = BINARY[op]
    return f"a {row.symbol} b, kept as it is written." if row.infix else f"{row.symbol}(a, b), kept as it is written."


def of_group(name: str, members: Iterable[str]) -> str:
    """The text of T.axis."""
    return "\n\n".join([f"T.{name}", *(FORMS[f"{name}.{member}"] for member in members)])
