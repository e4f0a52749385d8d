"""`build` and `compile`: functions to machine code, through the cache of compiled objects."""
from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import llvmlite

import tilewright
from tilewright import te
from tilewright.codegen import llvm
from tilewright.driver.lower import Input, check_target, functions
from tilewright.lower import lower as run_passes
from tilewright.records.objects import ObjectCache, object_cache
from tilewright.rules import apply_rules
from tilewright.runtime import Module
from tilewright.schedule.stages import StageSchedule
from tilewright.support import config
from tilewright.support.errors import LowerError, with_hint
from tilewright.support.target import Target
from tilewright.tir import THREAD_BINDING, Allocate, For, Load, PrimFunc, Store, rewrite, walk
from tilewright.tir.printer import show


@functools.cache
def compiler_digest() -> bytes:
    """A hash of the compiler's own source and of the libraries that decide what code it makes."""
    h = hashlib.sha256(f"{llvmlite.__version__} {tilewright.__version__}".encode())
    root = Path(tilewright.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".ll"):
            stat = path.stat()
            h.update(f"{path.relative_to(root)} {stat.st_size} {stat.st_mtime_ns}".encode())
    return h.digest()


def cache_key(what: bytes | str, target: Target) -> str:
    """Name of the object in the cache: the program, the target and the compiler, hashed."""
    h = hashlib.sha256(compiler_digest())
    h.update(repr((target.triple, target.mcpu, target.features, target.opt_level, config.get("STRICT_MATH"))).encode())
    h.update(what if isinstance(what, bytes) else what.encode())
    return h.hexdigest()


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """The object under key, made and kept when it is not there. Dumping forces it to be made."""
    cache: ObjectCache | None = object_cache() if config.get("CACHE") and not config.get("DUMP") else None
    found = cache.get(key) if cache else None
    if found is None:
        found = make()
        if cache:
            cache.put(key, found)
    return found


def generate(func: PrimFunc, target: Target, alias: Mapping[int, int] | None = None) -> bytes:
    """The object of one function in block form."""
    bound = next((n for n in walk(func.body) if isinstance(n, For) and n.kind == THREAD_BINDING), None)
    if bound is not None:
        raise LowerError(with_hint(
            f"{func.name}: loop {bound.loop_var.name} is bound to {bound.thread_tag}, but the target {target} has no "
            f"GPU threads\n\n{show(func, (bound,))}", "use parallel and vectorize on a CPU"))
    flat = run_passes(func, target)
    return llvm.compile_object([merge_parameters(flat, alias or {})], target)


def merge_parameters(func: PrimFunc, alias: Mapping[int, int]) -> PrimFunc:
    """func (flat) in which parameter `a` is dropped and its memory is that of parameter alias[a], written in place."""
    if not alias:
        return func
    data = {func.buffer_map[func.params[a]].data: func.buffer_map[func.params[b]].data for a, b in alias.items()}

    def retarget(node: Any) -> Any:
        if isinstance(node, (Load, Store, Allocate)) and node.buffer.data in data:
            return node.replace(buffer=node.buffer.replace(data=data[node.buffer.data]))
        return None

    params = tuple(p for k, p in enumerate(func.params) if k not in alias)
    return func.replace(params=params, body=rewrite(func.body, retarget),
                        buffer_map={p: b for p, b in func.buffer_map.items() if p in params})


def build(inputs: Input, args: Sequence[te.Tensor] | None = None, target: str | Target | None = None,
          target_host: str | Target | None = None, name: str | None = None) -> Module:
    """Machine code for exactly what is given: a schedule (with its args), a PrimFunc or an IRModule.

    name: of the function (default "default_function" for stages, the function's own otherwise). target_host is
    accepted for old programs; host code is always for this machine. Raises the error of the stage that refuses.
    """
    resolved = check_target(target)
    if isinstance(inputs, StageSchedule) and args is not None:
        name = name or "default_function"
        key = cache_key(inputs.fingerprint(args) + name.encode(), resolved)
        objects = {name: cached(key, lambda: generate(functions(inputs, args, name)[name], resolved))}
    else:
        objects = {f.name: cached(cache_key(show(f), resolved), functools.partial(generate, f, resolved))
                   for f in functions(inputs, args, name).values()}
    return Module.of_objects(objects, resolved)


def compile(inputs: Input, args: Sequence[te.Tensor] | None = None, target: str | Target | None = None,
            name: str | None = None) -> Module:
    """Machine code for what is given, scheduled by the built-in rules of the target."""
    resolved = check_target(target)
    scheduled = {key: apply_rules(f, resolved).func for key, f in functions(inputs, args, name).items()}
    return Module.of_objects({f.name: cached(cache_key(show(f), resolved), functools.partial(generate, f, resolved))
                              for f in scheduled.values()}, resolved)


def compile_kernel(func: PrimFunc, target: Target, rules: bool, alias: Mapping[int, int]) -> bytes:
    """The object of one kernel of a graph. alias: parameter -> the parameter in whose memory it is written."""
    def make() -> bytes:
        return generate(apply_rules(func, target).func if rules else func, target, alias)
    return cached(cache_key(f"{show(func)}\nrules={rules} cores={target.num_cores} alias={sorted(alias.items())}", target), make)


def compile_text(text: str, target: Target) -> bytes:
    """The object of LLVM IR text."""
    return cached(cache_key(text, target), lambda: llvm.compile_text(text, target))
