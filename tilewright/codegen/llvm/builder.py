"""Text of an LLVM module under construction: functions, declarations, helpers, constants, metadata."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tilewright.codegen.llvm.types import suffix
from tilewright.tir.stmt import PrimFunc

CHOSEN = "chosen"              # label of the block after an if_then_else
LIKELY = '!{!"branch_weights", i32 2000, i32 1}'


class ModuleBuilder:
    """What the functions of one object share. Everything is emitted once, in the order of first use."""

    def __init__(self, contract: bool = True, features: frozenset[str] = frozenset()) -> None:
        self.contract = contract
        self.features = features
        self.functions: dict[str, PrimFunc] = {}          # the regions, which calls define
        self.long = False              # its functions have so much code that LLVM is to make no copies of loops
        self._declarations: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self._metadata: list[str] = []
        self._metadata_ids: dict[str, int] = {}

    def declare(self, name: str, result: str, arguments: str, attributes: str = "") -> str:
        """`@name`, declared with this signature."""
        self._declarations.setdefault(name, f"declare {result} @{name}({arguments}) {attributes}".rstrip())
        return f"@{name}"

    def signature_of(self, name: str) -> str | None:
        """The declaration of name so far."""
        return self._declarations.get(name)

    def define(self, name: str, text: str) -> None:
        """Add a whole function definition."""
        assert name not in self._functions, f"{name} is defined twice"
        self._functions[name] = text

    def helper(self, name: str, make: Callable[[], str]) -> str:
        """`@name`, a function that `make` gives the text of at the first request."""
        if name not in self._functions:
            self._functions[name] = ""           # keeps its place, and stops a recursion
            self._functions[name] = make()
        return f"@{name}"

    def global_data(self, name: str, text: str) -> str:
        """`@name`, a global with this right-hand side, e.g. `private constant i32 4`."""
        self._globals.setdefault(name, text)
        return f"@{name}"

    def has_global(self, name: str) -> bool:
        return name in self._globals

    def c_string(self, value: str) -> str:
        """`@.str.K`, the zero-terminated UTF-8 text; lone surrogates, which it has no form for, as `\\ud800`."""
        data = value.encode(errors="backslashreplace") + b"\0"
        text = f"private unnamed_addr constant [{len(data)} x i8] {bytes_literal(data)}"
        for name, known in self._globals.items():
            if known == text:
                return f"@{name}"
        return self.global_data(f".str.{len(self._globals)}", text)

    def metadata(self, text: str, distinct: bool = False) -> str:
        """`!N` for a metadata node; equal nodes share a number unless distinct (`{self}` is its
        own number).
        """
        if not distinct and text in self._metadata_ids:
            return f"!{self._metadata_ids[text]}"
        number = len(self._metadata)
        self._metadata_ids[text] = number
        self._metadata.append(
            f"!{number} = " + ("distinct " if distinct else "") + text.replace("{self}", f"!{number}")
        )
        return f"!{number}"

    def intrinsic(self, name: str, result: str, arguments: tuple[str, ...], mangled: tuple[str, ...]) -> str:
        """`@llvm.<name>.<types>`, declared."""
        full = ".".join(("llvm", name, *map(suffix, mangled)))
        return self.declare(full, result, ", ".join(arguments))

    def text(self, extra: str = "") -> str:
        """The module, with `extra` IR, whose definitions replace our declarations."""
        parts = [f"@{name} = {text}" for name, text in self._globals.items()]
        parts += [text for name, text in self._declarations.items()
                  if name not in self._functions and f" @{name}(" not in extra]
        parts += self._functions.values()
        parts += self._metadata
        return "\n".join((*parts, extra, ""))


def bytes_literal(data: bytes) -> str:
    """data as an LLVM string constant."""
    return 'c"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data) + '"'


class FunctionBuilder:
    """Instructions of one function, in text, with local value numbering.

    A pure instruction whose text was already emitted in this region or one around it is reused: regions are
    nested as the program is, so such a value dominates the new use.
    """

    def __init__(self, module: ModuleBuilder) -> None:
        self.module = module
        self.lines: list[str] = []
        self.entry: list[str] = []               # allocas, placed before everything else
        self.label = "entry"
        self._counter = itertools.count(1)
        self._known: dict[str, str] = {}
        self._undo: list[str] = []

    def fresh(self, hint: str = "v") -> str:
        """A new local name, with %."""
        return f"%{hint}{next(self._counter)}"

    def value(self, text: str) -> str:
        """The result of a pure instruction."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = f"%v{next(self._counter)}"
            self._undo.append(text)
            self.lines.append(f"  {known} = {text}")
        return known

    def once(self, key: str, make: Callable[[], str]) -> str:
        """The operand that `make` gives, and the same one for this key in the rest of the region."""
        key = f"once {key}"                      # no instruction
        if key not in self._known:
            self._known[key] = make()
            self._undo.append(key)
        return self._known[key]

    def effect(self, text: str, hint: str = "v") -> str:
        """The result of an instruction that must not be merged with another (loads, calls)."""
        name = self.fresh(hint)
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def alloca(self, text: str, hint: str = "buf") -> str:
        """A stack slot in the entry block."""
        name = self.fresh(hint)
        self.entry.append(f"  {name} = alloca {text}")
        return name

    def new_label(self, hint: str) -> str:
        return f"{hint}{next(self._counter)}"

    def start(self, label: str) -> None:
        """Begin the basic block `label`."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str, extra: str = "") -> None:
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{otherwise}{extra}")

    @contextmanager
    def region(self) -> Iterator[None]:
        """Instructions inside are not reused after it."""
        mark = len(self._undo)
        yield
        for text in self._undo[mark:]:
            del self._known[text]
        del self._undo[mark:]

    def body(self) -> str:
        """The text between the braces."""
        return "\n".join(["entry:", *self.entry, *self.lines])
