"""`tilewright info`: what Tilewright finds on this machine. `tilewright bench`: how fast the machine is."""
from __future__ import annotations

import os
import platform
import re
import textwrap
from importlib import metadata

import click

from tilewright import __version__
from tilewright.driver import target
from tilewright.driver.peaks import Peaks, measure, store, stored_peaks
from tilewright.records.objects import object_cache
from tilewright.runtime import get_num_threads, llvm
from tilewright.runtime.export import has_linker, linker
from tilewright.runtime.machine import available_memory, cache_sizes, group_cpus
from tilewright.support import config
from tilewright.support.errors import TilewrightError
from tilewright.support.target import Target
from tilewright.support.target.cpus import known_features, usable_cores
from tilewright.support.views import counted, readable_bytes

LIBRARIES = ("numpy", "llvmlite", "apache-tvm-ffi", "ml_dtypes")
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+).*;.*extra\s*==\s*['\"](\w+)['\"]")


@click.command()
def info() -> None:
    """Show what Tilewright finds here: target, caches, threads, cache folder, extras, versions."""
    try:
        lines = _lines(target())
    except TilewrightError as why:
        raise click.ClickException(str(why)) from None
    for name, text in lines:
        wrapped = textwrap.wrap(text, 104, break_on_hyphens=False) or [""]
        click.echo("\n".join(f"{name if n == 0 else '':10s} {line}" for n, line in enumerate(wrapped)))


@click.command()
@click.option("--fresh", is_flag=True, help="Forget what was measured before.")
def bench(fresh: bool) -> None:
    """Measure the peak of multiply-adds and of memory here, and keep it for `tilewright info` and tw.profile.

    A peak is a maximum: a figure of an earlier run that is higher stays.
    """
    click.echo("measuring, for some seconds", err=True)
    try:
        measured = measure()
        before = None if fresh else stored_peaks()
        best = measured if before is None else measured.best_of(before)
        store(best)
    except TilewrightError as why:
        raise click.ClickException(str(why)) from None
    click.echo(str(best))
    if best != measured:
        click.echo("some figures are of an earlier run, which was faster; --fresh forgets it")


def _lines(t: Target) -> list[tuple[str, str]]:
    """(what, how it is here)"""
    cache = object_cache()
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("TILEWRIGHT_")]
    return [
        ("version", f"tilewright {__version__}, Python {platform.python_version()}, {platform.platform()}"),
        ("libraries", ", ".join([*(f"{name} {metadata.version(name)}" for name in LIBRARIES),
                                 f"LLVM {'.'.join(map(str, llvm.version()))}"])),
        ("extras", _extras()),
        ("target", f"{t}: {t.mcpu}, {t.triple}, {counted(t.num_cores, 'core')}"),
        ("vectors", f"{t.vector_bytes} bytes: {t.vector_bytes // 4} float32"),
        ("features", " ".join(f for f in known_features() if t.has_feature(f))),
        ("caches", ", ".join(f"{name} {readable_bytes(size)}" for name, size in cache_sizes()) or "not known"),
        ("memory", f"{readable_bytes(available_memory())} available"),
        ("threads", _threads()),
        ("linker", " ".join(linker(t.triple)) if has_linker(t.triple) else "none: pip install 'tilewright[export]'"),
        ("cache", f"{cache.folder}: {readable_bytes(cache.size())} of {readable_bytes(cache.limit)}"
                  + _state(cache.usable)),
        ("settings", " ".join(settings) or "none"),
        ("peaks", _peaks(stored_peaks())),
    ]


def _state(usable: bool) -> str:
    if not config.get("CACHE"):
        return ", not used: TILEWRIGHT_CACHE is off"
    return "" if usable else ", which cannot be used"


def _threads() -> str:
    quota = group_cpus()
    granted = "" if quota is None else f", a quota of {quota}"
    return f"{get_num_threads()}, of {counted(usable_cores(), 'processor')}{granted}"


def _peaks(found: Peaks | None) -> str:
    if found is None:
        return "not measured yet: tilewright bench"
    flops = found.of("float32", found.threads)
    assert flops is not None
    return (f"{flops / 1e9:.0f} GFLOP/s of float32, {found.bytes_per_second(found.threads) / 1e9:.1f} GB/s, on "
            f"{counted(found.threads, 'thread')}")


def _extras() -> str:
    """Each extra of the package: there, or what it lacks."""
    needs: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires("tilewright") or []
    except metadata.PackageNotFoundError:
        return "not known: the package runs without being installed"
    for match in filter(None, map(_REQUIREMENT.match, requirements)):
        needs.setdefault(match[2], []).append(match[1])
    missing = {extra: [name for name in names if not _installed(name)] for extra, names in needs.items()}
    return "; ".join(f"{extra}: {'yes' if not names else 'no ' + ', '.join(names)}" for extra, names in missing.items())


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
