"""Exported functions for C: entries that take plain pointers and sizes, and the header that declares them.

An entry makes DLTensors of its arguments and calls the packed function, so that C programs get every check and every
message that Python programs get. It returns 0, or -1 with a text in tilewright_last_error().
"""
from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Mapping

from tilewright.runtime.dtypes import dl_dtype
from tilewright.runtime.signature import Dim, Param, Signature, dim_text

_TENSOR, _INT, _FLOAT, _POINTER = 7, 1, 3, 4    # type indices of a TVMFFIAny
_C_TYPES = {"bool": "bool", "float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t",
            "float8_e4m3fn": "uint8_t", "float8_e5m2": "uint8_t"}
# of C and C++, and macros that compilers and the headers of C define; more by their form: `is_reserved`
_KEYWORDS = frozenset("""
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
    char class co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
    imaginary inline int long main mutable namespace new noexcept noreturn not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert
    static_cast struct switch synchronized template this thread_local throw true try typedef typeid typename typeof
    typeof_unqual union unsigned using virtual void volatile while xor xor_eq
    I assert errno i386 linux stderr stdin stdout unix""".split())
# Functions of the C library and our own: a library that defines one takes it from the whole program; and types.
LIBRARY = frozenset("""
    tilewright_last_error tilewright_set_num_threads
    abort abs accept access acos acosh alarm asin asinh atan atan2 atanh atexit atof atoi atol bind brk bsearch calloc
    cbrt ceil chdir chmod clock close connect copysign cos cosh ctime div dup erf erfc exec exit exp exp2 expm1 fabs
    fclose fdim feof fflush floor fma fmax fmin fmod fopen fork fprintf fputs fread free frexp fscanf fseek fwrite getc
    getenv gets hypot ilogb index ioctl isnan kill labs ldexp lgamma link listen llrint log log10 log1p log2 logb lrint
    lround malloc memchr memcmp memcpy memmove memset modf nan nearbyint nextafter nice open pause perror pipe poll pow
    printf putc puts qsort raise rand read realloc recv remainder remove remquo rename rewind rint round scalbn scanf
    select send signal sin sinh sleep socket sprintf sqrt srand stat stdin stdout strcat strchr strcmp strcpy strlen
    strncpy strstr strtod strtol sync system tan tanh tgamma time toupper trunc umask uname unlink wait write
    y0 y1 yn j0 j1 jn gamma
    alloca fd_set u_char u_int u_long u_short uint ulong ushort""".split())


def c_names(signatures: Mapping[str, Signature]) -> dict[str, str]:
    """The name in C of every function: its own one, or tilewright_NAME where C, its library, the support code or a
    kernel has that already."""
    out: dict[str, str] = {}
    for name in signatures:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        free = plain == name and not name[0].isdigit() and not name.startswith(("_", "tw_")) and not is_reserved(name) \
            and name not in LIBRARY and not any(hasattr(library, name) for library in _libraries()) \
            and not any(name.startswith(f"{other}__") for other in signatures)
        out[name] = _unused(plain if free else f"tilewright_{plain}", set(out.values()))
    return out


def is_reserved(name: str) -> bool:
    """True for a word of C or C++: a keyword, a name like `_Bool`, a type like `int64_t`, or a macro."""
    return name in _KEYWORDS or re.fullmatch(r"_[A-Z_]\w*|\w+_t|[A-Z][A-Z0-9_]+", name, re.ASCII) is not None


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """The C library of this machine, for the names that the list above has not."""
    found = []
    for path in ("libSystem.dylib",) if sys.platform == "darwin" else ("libc.so.6", "libm.so.6"):
        try:
            found.append(ctypes.CDLL(path))
        except OSError:                                   # another C library: the list must do
            continue
    return tuple(found)


def _unused(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    return name


def parameters(s: Signature) -> dict[str, str]:
    """The name in C of every parameter and symbol, in the order of the prototype."""
    out: dict[str, str] = {}
    for name in (*(p.name for p in s.params), *s.symbols):
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = f"_{plain}" if plain[:1].isdigit() else plain
        out[name] = _unused(f"{plain}_" if is_reserved(plain) else plain, set(out.values()))
    return out


def c_type(dtype: str) -> str:
    element = dtype.partition("x")[0]
    if element in _C_TYPES:
        return _C_TYPES[element]
    return f"{element}_t"


def scalar_type(p: Param) -> str:
    """Floats of 16 bits are passed as float, which every C compiler has."""
    return "float" if dl_dtype(p.dtype)[1] == 16 and "float" in p.dtype else c_type(p.dtype)


# ---- the header

def header(signatures: Mapping[str, Signature], guard: str,
           threads: str = "the CPUs of the process, or TILEWRIGHT_NUM_THREADS") -> str:
    """A header for C and C++ with the prototypes of all functions.

    guard: a text of which the guard's name is made. threads: what their number is unless it is set.
    """
    macro = f"TILEWRIGHT_{re.sub(r'[^A-Z0-9]', '_', guard.upper())}"
    parts = [f"#ifndef {macro}\n#define {macro}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n"
             '#ifdef __cplusplus\nextern "C" {\n#endif\n',
             "/* Functions return 0, or -1 after an error: nothing was written then, unless an index that was read\n"
             "   from memory was out of bounds. Tensors are dense, the last axis runs fastest. */\n",
             "/* The text of this thread's last error. */\nconst char *tilewright_last_error(void);\n",
             f"/* Threads of parallel loops; by default {threads}. */\n"
             "void tilewright_set_num_threads(int n);\n"]
    parts += [_prototype(name, signatures[original]) for original, name in c_names(signatures).items()]
    parts.append("#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    return "\n".join(parts)


def declaration(name: str, s: Signature) -> str:
    """The head of the function in C, without a semicolon."""
    names = parameters(s)
    arguments = [f"{'' if p.written else 'const '}{c_type(p.dtype)} *{names[p.name]}" if p.is_buffer else
                 f"{scalar_type(p)} {names[p.name]}" for p in s.params]
    arguments += [f"int64_t {names[symbol]}" for symbol in s.symbols]
    return f"int {name}({', '.join(arguments) or 'void'})"


def _prototype(name: str, s: Signature) -> str:
    names = parameters(s)
    lines = []
    for p in s.params:
        shown = names[p.name]
        if not p.is_buffer:
            lines.append(f"{shown}: {p.dtype}")
            continue
        shape = ", ".join(dim_text(_renamed(d, names)) for d in p.shape or ())
        strides = "" if p.strides is None else \
            f", strides in elements [{', '.join(dim_text(_renamed(d, names)) for d in p.strides)}]"
        use = "read" if not p.written else "written, overlaps no other argument" if p.exclusive else "read and written"
        lines.append(f"{shown}: {p.dtype}[{shape}]{strides}, {use}")
    comment = "\n   ".join(lines).replace("*/", "* /")
    return f"/* {comment} */\n{declaration(name, s)};\n"


def _renamed(d: Dim, names: Mapping[str, str]) -> Dim:
    if isinstance(d, tuple):
        return d[0], _renamed(d[1], names), _renamed(d[2], names)
    return names[d] if isinstance(d, str) else d


# ---- the entries, as LLVM IR

def entries(signatures: Mapping[str, Signature], triple: str) -> str:
    """LLVM IR of the entry of every function."""
    parts = [f'target triple = "{triple}"',
             "%any = type { i32, i32, i64 }",
             "%tensor = type { ptr, i32, i32, i32, i32, ptr, ptr, i64 }",
             *(f"declare i64 @llvm.{f}.i64(i64, i64)" for f in ("smin", "smax")),
             "declare i32 @tw_refuse_negative(ptr, ptr, i64)"]
    for original, name in c_names(signatures).items():
        parts.append(f'declare i32 {_symbol(f"__tvm_ffi_{original}")}(ptr, ptr, i32, ptr)')
        parts.append(_Entry(name, original, signatures[original]).text())
    return "\n".join([*parts, ""])


def _symbol(name: str) -> str:
    return '@"' + "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else
                          "".join(f"\\{b:02X}" for b in c.encode()) for c in name) + '"'


class _Entry:
    """Writes the entry of one function."""

    def __init__(self, name: str, original: str, signature: Signature) -> None:
        self.name, self.original, self.signature = name, original, signature
        self.lines: list[str] = []
        self.values: dict[str, str] = {}             # scalar parameter or symbol -> its i64
        self.texts: list[str] = []

    def text(self) -> str:
        s, arguments = self.signature, []
        for k, p in enumerate(s.params):
            type_ = "ptr" if p.is_buffer else self._register(p)
            arguments.append(f"{type_} %p{k}")
            if not p.is_buffer and type_.startswith("i"):
                self.values[p.name] = self._wide(p, f"%p{k}")
        for k, symbol in enumerate(s.symbols):
            arguments.append(f"i64 %n{k}")
            self.values[symbol] = f"%n{k}"
        self._refuse_negative_extents()
        count = max(1, len(s.params))
        self._do(f"%args = alloca [{count} x %any], align 16", "%ret = alloca %any, align 16")
        for k, p in enumerate(s.params):
            kind, value = self._tensor(k, p) if p.is_buffer else self._scalar(k, p)
            self._field("[1 x %any]", "%args", k, 0, kind)
            self._field("[1 x %any]", "%args", k, 1, "i32 0")
            self._field("[1 x %any]", "%args", k, 2, value)
        self._do(f"%status = call i32 {_symbol(f'__tvm_ffi_{self.original}')}"
                 f"(ptr null, ptr %args, i32 {len(s.params)}, ptr %ret)", "ret i32 %status")
        body = "\n".join(f"  {line}" for line in self.lines)
        start = f"define weak i32 @{self.name}({', '.join(arguments)}) nounwind {{"
        return "\n".join([*self.texts, start, body, "}\n"])

    def _refuse_negative_extents(self) -> None:
        """The checker never sees one: a tensor has none."""
        extents = {d for p in self.signature.buffers for d in p.shape or () if isinstance(d, str)}
        for k, name in enumerate(n for n in self.values if n in extents):
            negative = self._new(f"icmp slt i64 {self.values[name]}, 0")
            self._do(f"br i1 {negative}, label %negative{k}, label %fine{k}")
            self.lines.append(f"negative{k}:")
            texts = ", ".join(f"ptr {self._text(t)}" for t in (self.name, name))
            refused = self._new(f"call i32 @tw_refuse_negative({texts}, i64 {self.values[name]})")
            self._do(f"ret i32 {refused}")
            self.lines.append(f"fine{k}:")

    def _text(self, text: str) -> str:
        """A constant with the zero-terminated text."""
        data = text.encode() + b"\0"
        symbol = f"@{self.name}.text{len(self.texts)}"
        escaped = "".join(f"\\{b:02X}" for b in data)
        self.texts.append(f'{symbol} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"')
        return symbol

    def _do(self, *lines: str) -> None:
        self.lines += lines

    def _new(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _field(self, array: str, base: str, k: int, number: int, value: str) -> None:
        at = self._new(f"getelementptr {array}, ptr {base}, i64 0, i64 {k}, i32 {number}")
        self._do(f"store {value}, ptr {at}")

    @staticmethod
    def _register(p: Param) -> str:
        scalar = scalar_type(p)
        if scalar in ("float", "double"):
            return scalar
        return "i8" if scalar == "bool" else f"i{dl_dtype(p.dtype)[1]}"

    def _wide(self, p: Param, operand: str) -> str:
        type_ = self._register(p)
        if type_ == "i64":
            return operand
        extend = "zext" if p.dtype == "bool" or p.dtype.startswith("uint") else "sext"
        return self._new(f"{extend} {type_} {operand} to i64")

    def _scalar(self, k: int, p: Param) -> tuple[str, str]:
        """(type index, value) of a scalar argument, both with their types."""
        if p.dtype == "uint64":                          # `scalars.py` says what goes as a pointer
            large = self._new(f"icmp slt i64 %p{k}, 0")
            return f"i32 {self._new(f'select i1 {large}, i32 {_POINTER}, i32 {_INT}')}", f"i64 %p{k}"
        if p.name in self.values:
            return f"i32 {_INT}", f"i64 {self.values[p.name]}"
        if self._register(p) == "float":
            return f"i32 {_FLOAT}", f"double {self._new(f'fpext float %p{k} to double')}"
        return f"i32 {_FLOAT}", f"double %p{k}"

    def _tensor(self, k: int, p: Param) -> tuple[str, str]:
        """(type index, value), both with their types, of a tensor argument: the address of a DLTensor on the stack."""
        code, bits, lanes = dl_dtype(p.dtype)
        shape = self._extents(p.shape or ())
        strides = "null" if p.strides is None else self._extents(p.strides)
        tensor = self._new("alloca %tensor, align 16")
        fields = (f"ptr %p{k}", f"i32 {p.device}", "i32 0", f"i32 {len(p.shape or ())}",
                  f"i32 {code | bits << 8 | lanes << 16}", f"ptr {shape}", f"ptr {strides}", "i64 0")
        for number, value in enumerate(fields):
            self._field("[1 x %tensor]", tensor, 0, number, value)
        return f"i32 {_TENSOR}", f"ptr {tensor}"

    def _extents(self, dims: tuple[Dim, ...]) -> str:
        array = self._new(f"alloca [{max(1, len(dims))} x i64], align 8")
        for k, d in enumerate(dims):
            value = self._dim(d)
            at = self._new(f"getelementptr i64, ptr {array}, i64 {k}")
            self._do(f"store i64 {value}, ptr {at}")
        return array

    def _dim(self, d: Dim) -> str:
        if isinstance(d, int):
            return str(d)
        if isinstance(d, str):
            return self.values[d]
        op, a, b = d[0], self._dim(d[1]), self._dim(d[2])
        if op in ("add", "mul"):
            return self._new(f"{op} i64 {a}, {b}")
        if op in ("min", "max"):
            return self._new(f"call i64 @llvm.s{op}.i64(i64 {a}, i64 {b})")
        return self._quotient(op, a, b)

    def _quotient(self, op: str, a: str, b: str) -> str:
        """a // b or a % b, rounded towards minus infinity; of a divisor that is no positive number, 0 for the check."""
        positive = self._new(f"icmp sgt i64 {b}, 0")
        safe = self._new(f"select i1 {positive}, i64 {b}, i64 1")
        rest = self._new(f"srem i64 {a}, {safe}")
        negative = self._new(f"icmp slt i64 {rest}, 0")
        up = self._new(f"add i64 {rest}, {safe}")
        modulo = self._new(f"select i1 {negative}, i64 {up}, i64 {rest}")
        value = modulo if op == "floormod" else \
            self._new(f"sdiv i64 {self._new(f'sub i64 {a}, {modulo}')}, {safe}")
        return self._new(f"select i1 {positive}, i64 {value}, i64 0")

