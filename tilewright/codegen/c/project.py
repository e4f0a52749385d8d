"""Files of C that need nothing of Tilewright: a header, the kernels, a program that calls them once."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.c.compile import GCC_FLAGS
from tilewright.codegen.c.functions import define_kernel
from tilewright.codegen.c.helpers import FAULT_BYTES
from tilewright.codegen.c.types import memory_type, value_type
from tilewright.codegen.c.unit import Unit
from tilewright.codegen.layout import KernelLayout, layouts
from tilewright.runtime import c_interface
from tilewright.runtime.signature import Dim, Signature
from tilewright.support.errors import CodegenError, with_hint
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Call
from tilewright.tir.node import walk
from tilewright.tir.returns import result_dtype
from tilewright.tir.stmt import PrimFunc

_SUPPORT = f"""\
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct {{ const char *message; char text[{FAULT_BYTES}]; }} tw_message;
static _Thread_local tw_message tw_own, *tw_call;         /* of this thread's last call; of the call it works for */
static _Thread_local const char *tw_last_error = "";
static int tw_threads = 0;

const char *tilewright_last_error(void) {{ return tw_last_error; }}
void tilewright_set_num_threads(int n) {{ tw_threads = n; }}

"""
_OWN = {"tw_alloc": """\

static inline void *tw_alloc(int64_t bytes) {
    return bytes < 0 || bytes > INT64_MAX - 64 ? NULL : aligned_alloc(64, (size_t)((bytes + 64) / 64 * 64));
}
""", "tw_free": """\

static inline void tw_free(void *memory) { free(memory); }
""", "tw_fault": """\

static inline tw_message *tw_fault(tw_message *own) { return tw_call != NULL ? tw_call : own; }
""", "tw_parallel": """\

/* The iterations of a parallel loop: in OpenMP's threads, where the file is compiled with -fopenmp. */
static inline void tw_parallel(void (*part)(int64_t, int64_t, void *), void *environment, int64_t extent) {
#ifdef _OPENMP
    tw_message *call = tw_call;
    int most = tw_threads > 0 ? tw_threads : omp_get_max_threads();
#pragma omp parallel num_threads(most)
    {
        int64_t n = omp_get_num_threads(), k = omp_get_thread_num();
        int64_t begin = extent / n * k + (k < extent % n ? k : extent % n);
        int64_t end = begin + extent / n + (k < extent % n);
        tw_call = call;
        if (begin < end) part(begin, end, environment);
    }
#else
    if (extent > 0) part(0, extent, environment);
#endif
}
"""}
_INNER = "static __attribute__((used, noinline)) "        # what others call by its symbol
_CONSTANTS = """\

/* {file}.bin, in the folder in which this file is compiled. */
__asm__(".section .rodata\\n.balign 64\\n{name}__data:\\n.incbin \\"{file}.bin\\"\\n.byte 0\\n.previous");
extern const uint8_t {name}__data[] __attribute__((visibility("hidden")));
{inner}void *{name}__constant(int64_t offset) {{ return (void *)({name}__data + offset); }}
"""
_PSABI = """
#pragma GCC diagnostic ignored "-Wpsabi"        /* functions that take vectors are private to this file */
"""
_COMMENT = """\
/* {name}: made by Tilewright. cc -std=gnu11 -O3 -march=native -fwrapv -fno-math-errno [-fopenmp] -c {file}.c
   GCC 12 at -O3 needs {flags}. Vectors are types of GCC and Clang; -DTILEWRIGHT_SCALAR
   makes plain loops of those that were vectorised. */
"""


def files(vectors: Sequence[PrimFunc], loops: Sequence[PrimFunc], target: Target, entry: str = "",
          constants: bytes = b"") -> dict[str, str | bytes]:
    """{name: what is in it} of the functions, flat with vectors, and flat with loops in their place.

    entry: the one function that programs call, where it calls the others, and reads constants by ENTRY__constant.
    Raises CodegenError for what C has no form for without Tilewright: results, scalars of 16 bits, packed functions.
    """
    kernels = layouts(vectors)
    packed = next((n for f in vectors for n in walk(f.body) if isinstance(n, Call) and n.op == "call_packed"), None)
    if packed is not None:
        raise CodegenError(with_hint(f"{vectors[0].name} calls the packed function {packed.args[0]}, which files of C "
                                     "cannot", "call_extern a function of C"))
    for func, layout in kernels.items():
        small = next((v for v in layout.values if v.dtype in dt.SMALL_FLOATS), None)
        if small is not None or result_dtype(func) is not None:
            what = "a result" if small is None else f"the {small.dtype} {small.name}"
            raise CodegenError(with_hint(f"{func.name} has {what}, which files of C cannot have",
                                         "export_library(...) makes a library"))
    public = [layout for layout in kernels.values() if entry in ("", layout.name)]
    signatures = {layout.name: layout.signature for layout in public}
    names = c_interface.c_names(signatures)
    file = names[next(iter(signatures))]
    fma = target.has_feature("fma")
    entries = "\n".join(_entry(names[layout.name], layout) for layout in public)
    comment = _COMMENT.format(name=", ".join(names.values()), file=file, flags=" ".join(GCC_FLAGS))
    head = f'{comment}#include "{file}.h"\n{_PSABI}'
    held = _CONSTANTS.format(file=file, name=entry, inner=_INNER) if constants else ""
    text = "\n".join([head + held, "#ifdef TILEWRIGHT_SCALAR", _kernels(loops, fma, entry), "#else",
                      _kernels(vectors, fma, entry), "#endif", "", entries])
    return {f"{file}.h": c_interface.header(signatures, f"{file}.h", "those of OpenMP, or one"), f"{file}.c": text,
            "main.c": _program(file, names, signatures), **({f"{file}.bin": constants} if constants else {})}


def _kernels(funcs: Sequence[PrimFunc], fma: bool, entry: str) -> str:
    unit = Unit(fma, _OWN)
    unit.declare("tilewright_last_error", _SUPPORT)
    unit.functions = {f.name: f for f in funcs}
    for func, layout in layouts(funcs).items():
        define_kernel(unit, func, layout, "static " if entry in ("", func.name) else _INNER)
    return unit.source()


def _entry(name: str, layout: KernelLayout) -> str:
    """The function that the header declares."""
    parameters = c_interface.parameters(layout.signature)
    arguments = [f"({memory_type(b.dtype)} *){parameters[p.name]}"
                 for b, p in zip(layout.buffers, layout.signature.buffers)]
    scalars = [*(p.name for p in layout.signature.scalars), *layout.signature.symbols]
    arguments += [f"({value_type(v.dtype)}){parameters[s]}" for v, s in zip(layout.values, scalars)]
    return (f"{c_interface.declaration(name, layout.signature)} {{\n"
            "    tw_own.message = NULL;\n    tw_call = &tw_own;\n"
            f"    {layout.name}__kernel({', '.join(arguments)});\n"
            "    if (tw_own.message == NULL) return 0;\n    tw_last_error = tw_own.message;\n    return -1;\n}\n")


def _program(file: str, names: dict[str, str], signatures: dict[str, Signature]) -> str:
    """A program that calls each function once: on numbers 0 to 6, with 16 for every size that is open."""
    lines = [f'#include "{file}.h"', "#include <stdio.h>", "#include <stdlib.h>", "", "enum { SIZE = 16 };", "",
             "int main(void) {"]
    for original, s in signatures.items():
        parameters, arguments = c_interface.parameters(s), []
        lines.append("    {")
        for p in s.params:
            name = f"arg_{parameters[p.name]}"
            if not p.is_buffer:
                lines.append(f"        {c_interface.scalar_type(p)} {name} = 1;")
                arguments.append(name)
                continue
            type_, count = c_interface.c_type(p.dtype), " * ".join(map(_extent, p.shape or ())) or "1"
            lines += [f"        {type_} *{name} = calloc({count} + 1, sizeof *{name});",
                      f"        for (int64_t k = 0; k < {count}; ++k) {name}[k] = k % 7;"]
            arguments.append(name)
        arguments += ["SIZE" for _ in s.symbols]
        last = next((f"arg_{parameters[p.name]}" for p in reversed(s.params) if p.is_buffer), None)
        shown = f'printf("{names[original]}: %g\\n", (double){last}[0])' if last else f'puts("{names[original]}")'
        lines += [f"        if ({names[original]}({', '.join(arguments)}) != 0) {{",
                  "            fputs(tilewright_last_error(), stderr);", "            return 1;", "        }",
                  f"        {shown};",
                  *(f"        free(arg_{parameters[p.name]});" for p in s.params if p.is_buffer), "    }"]
    return "\n".join([*lines, "    return 0;", "}", ""])


def _extent(dim: Dim) -> str:
    if isinstance(dim, tuple):
        signs = {"add": "+", "sub": "-", "mul": "*", "floordiv": "/", "floormod": "%"}
        if dim[0] not in signs:
            return "SIZE * SIZE"
        return f"({_extent(dim[1])} {signs[dim[0]]} {_extent(dim[2])})"
    return str(dim) if isinstance(dim, int) else "SIZE"
