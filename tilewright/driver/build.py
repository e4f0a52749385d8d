"""`build` and `compile`: functions to machine code, through the cache of compiled objects."""
from __future__ import annotations

import functools
import hashlib
import os
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tilewright
from tilewright import te
from tilewright.codegen.layout import kernel_layout
from tilewright.codegen.registry import back_end
from tilewright.driver.lower import Input, check_listed, check_name, check_target, common_target, functions
from tilewright.lowering import PassOptions, split
from tilewright.lowering import lower as run_passes
from tilewright.lowering.options import current_options
from tilewright.records.objects import ObjectCache, object_cache
from tilewright.runtime import Module
from tilewright.runtime.loader import Image
from tilewright.runtime.signature import Signature
from tilewright.runtime.signature_table import decode, encode
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.support import config
from tilewright.support.errors import CodegenError, LowerError
from tilewright.support.registry import load
from tilewright.support.target import Target
from tilewright.te.prim_func import argument_list
from tilewright.tir import THREAD_BINDING, For, PrimFunc, walk
from tilewright.tir.printer import show

_RULES = "tilewright.rules"                # loaded with the first use: a program with schedules of its own needs none


@functools.cache
def compiler_digest() -> bytes:
    """A hash of the compiler's own source."""
    h = hashlib.sha256(tilewright.__version__.encode())
    for name, size, changed in sorted(_sources(str(Path(tilewright.__file__).parent))):
        h.update(f"{name} {size} {changed}\n".encode())
    return h.digest()


def _sources(folder: str, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """(relative path, bytes, time of change) of every source file below folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".ll")):
                stat = entry.stat()
                yield prefix + entry.name, stat.st_size, stat.st_mtime_ns
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path, f"{prefix}{entry.name}/")


def cache_key(what: bytes | str, target: Target, options: PassOptions | None = None) -> str | None:
    """Name of the object in the cache: the target, the options, the program and the compiler, hashed.

    None: the object depends on passes or rules of the program, and is not kept.
    """
    settings = (current_options() if options is None else options).key
    if settings is None:
        return None
    h = hashlib.sha256(compiler_digest())
    h.update(repr((*target.code_record, back_end(target).version(), config.get("STRICT_MATH"), settings)).encode())
    h.update(what if isinstance(what, bytes) else what.encode())
    return h.hexdigest()


def cached(key: str | None, make: Callable[[], bytes]) -> bytes:
    """The object under key, made and kept when it is not there.

    TILEWRIGHT_DUMP and TILEWRIGHT_VERIFY force it to be made: they are about what happens on the way.
    """
    cache = _cache()
    if key is None or cache is None:
        return make()
    found = cache.get(key)
    if found is None:
        found = make()
        cache.put(key, found)
    return found


def is_cached(key: str) -> bool:
    """True where the cache has an object under key."""
    cache = _cache()
    return cache is not None and cache.get(key) is not None


def _cache() -> ObjectCache | None:
    usable = config.get("CACHE") and not config.get("DUMP") and not config.get("VERIFY")
    return object_cache() if usable else None


@dataclass(frozen=True)
class Compiled:
    """An object file and the signature of the function in it."""
    signature: Signature
    data: bytes

    def to_bytes(self) -> bytes:
        """Both as one entry of the cache."""
        table = encode(self.signature)
        return struct.pack("<I", len(table)) + table + self.data

    @staticmethod
    def from_bytes(entry: bytes) -> Compiled:
        size, = struct.unpack_from("<I", entry)
        return Compiled(decode(entry[4:4 + size]), entry[4 + size:])


def generate(func: PrimFunc, target: Target, options: PassOptions | None = None) -> bytes:
    """The cache entry of one function in block form: its object and signature."""
    flat = flatten(func, target, options)
    image = back_end(target).image(split(flat, target, options), target)
    return Compiled(kernel_layout(flat).signature, image).to_bytes()


def flatten(func: PrimFunc, target: Target, options: PassOptions | None = None) -> PrimFunc:
    """The flat form of a function in block form, as the back end of the target takes it."""
    end = back_end(target)
    bound = next((n for n in walk(func.body) if isinstance(n, For) and n.kind == THREAD_BINDING
                  and not n.thread_tag.startswith("vthread")), None)
    if bound is not None and not end.threads:
        raise LowerError(
            f"{func.name}: loop {bound.loop_var.name} is bound to {bound.thread_tag}, but the target {target} has no "
            f"GPU threads\n\n{show(func, (bound,))}", "use parallel and vectorize on a CPU")
    options = current_options() if options is None else options
    return run_passes(func, target, options=options)


def build(inputs: Input, args: Sequence[te.Tensor] | None = None, target: str | Target | None = None,
          target_host: str | Target | None = None, name: str | None = None, checked: bool | None = None) -> Module:
    """Machine code for exactly what is given: a schedule (with its args), a PrimFunc or an IRModule.

    name: of the function (default "default_function" for stages, the function's own otherwise). target_host is
    accepted for old programs; host code is always for this machine. checked: compare every index with its extent
    while the kernel runs, so that an access outside of its buffer raises CallError (default: TILEWRIGHT_CHECKED).
    The attribute "target" of a function overrules target; all functions of a module are for one.
    Raises the error of the stage that refuses.
    """
    check_listed(args)
    options = current_options(checked)
    resolved, name = check_target(target), check_name(name)
    if isinstance(inputs, StageSchedule) and args is not None:
        args = argument_list(args)
        called = name or "default_function"
        key = cache_key(inputs.fingerprint(args) + called.encode(), resolved, options)
        return module([Part(key, lambda: functions(inputs, args, called)[called], options,
                            lambda: te.lower_ops(args, inputs.outputs, name=called)[0])], resolved)
    funcs = functions(inputs, args, name)
    resolved = common_target(funcs, resolved)
    return module([Part(cache_key(show(f), resolved, options), as_given := functools.partial(_as_given, f), options,
                        as_given) for f in funcs.values()], resolved, _aliases(funcs))


def compile(inputs: Input, args: Sequence[te.Tensor] | None = None, target: str | Target | None = None,
            name: str | None = None) -> Module:
    """Machine code for what is given, scheduled by the built-in rules of the target.

    Raises ArgumentError where loops have been scheduled already: `build` takes those as they are.
    """
    check_listed(args)
    options, funcs = current_options(), functions(inputs, args, name)
    resolved = common_target(funcs, check_target(target))
    return module([Part(rules_key(show(f), resolved, options), functools.partial(by_rules, f, resolved), options,
                        functools.partial(_as_given, f))
                   for f in funcs.values()], resolved, _aliases(funcs))


def rules_key(what: str, target: Target, options: PassOptions | None = None) -> str | None:
    """Name of what the rules schedule in the cache; None where some rules are not those of the package."""
    built_in = load(_RULES).are_built_in()
    return cache_key(f"rules {target.num_cores}\n{what}", target, options) if built_in else None


def _aliases(funcs: Mapping[str, PrimFunc]) -> dict[str, str]:
    """The names that functions have in their IRModule -> their symbols, where these differ."""
    return {key: f.name for key, f in funcs.items() if key != f.name}


def _as_given(func: PrimFunc) -> PrimFunc:
    return func


def by_rules(func: PrimFunc, target: Target, constant: Collection[int] = ()) -> PrimFunc:
    """The function as the rules of the target schedule it. constant: positions of parameters that never change."""
    rules = load(_RULES)
    scheduled: PrimFunc = rules.apply_rules(func, target, constant).func
    return scheduled.without_attr(rules.CONSTANT)


@dataclass(frozen=True)
class Part:
    """A function of a module: where its object is kept, how the scheduled function is made, and what it computes."""
    key: str | None
    make: Callable[[], PrimFunc]
    options: PassOptions
    definition: Callable[[], PrimFunc]

    def compiled(self, target: Target) -> Compiled:
        """Its object, from the cache if it is there."""
        return Compiled.from_bytes(cached(self.key, lambda: generate(self.make(), target, options=self.options)))


def module(parts: Sequence[Part], target: Target, aliases: Mapping[str, str] | None = None) -> Module:
    """The compiled module of some functions; the first one is the entry function. aliases: their other names."""
    compiled = [part.compiled(target) for part in parts]

    def flat(*disabled: str) -> list[PrimFunc]:
        return [f for part in parts
                for o in [replace(part.options, disable=(*part.options.disable, *disabled))]
                for f in split(flatten(part.make(), target, options=o), target, o)]

    end = back_end(target)
    files, standalone = end.files, end.standalone
    sources: dict[str, Callable[[], str]] = {form: (lambda text=text: text(flat(), target))  # type: ignore[misc]
                                             for form, text in end.sources.items()}
    sources["tir"] = lambda: "\n\n".join(map(show, flat()))
    return Module([Image(end.loader or end.kind, c.data, (c.signature.name,)) for c in compiled],
                  {c.signature.name: c.signature for c in compiled},
                  compiled[0].signature.name, target.triple, sources,
                  None if standalone is None else lambda others: standalone(flat(), target, others), aliases,
                  {c.signature.name: part.definition for c, part in zip(compiled, parts)},
                  None if files is None else lambda: files(flat(), flat("vectorize"), target, "", b""))


def compile_flat(func: PrimFunc, target: Target) -> bytes:
    """The object of a function that needs no lowering."""
    return cached(cache_key(f"flat {show(func)}", target), lambda: back_end(target).image(split(func, target), target))


def compile_text(text: str, target: Target) -> bytes:
    """The object of text in the language of the target's back end: LLVM IR for "llvm". Raises CodegenError."""
    made = back_end(target).image_of_text
    if made is None:
        raise CodegenError(f"code for {target.kind!r} is made of functions, not of text")
    return cached(cache_key(text, target), lambda: made(text, target))
