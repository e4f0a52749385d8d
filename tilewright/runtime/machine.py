"""What this machine grants the process: processors, caches, memory."""
from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PROCESSORS = Path("/sys/devices/system/cpu")


def cache_sizes(processors: Path = _PROCESSORS) -> list[tuple[str, int]]:
    """("L1d", bytes), ... of the caches of the first processor that hold data, the nearest first.

    Empty where the system does not say: it is read as Linux writes it.
    """
    return sorted((name, size) for name, size, _ in _caches(processors / "cpu0"))


def last_level_bytes(processors: Path = _PROCESSORS) -> int:
    """Bytes of the caches next to memory, all of them together; 0 where the system does not say."""
    found = [cache for folder in processors.glob("cpu[0-9]*") for cache in _caches(folder)]
    last = max((name for name, _, _ in found), default="")
    return sum(size for name, size, _ in {cache for cache in found if cache[0] == last})


def _caches(processor: Path) -> Iterator[tuple[str, int, str]]:
    """(name, bytes, processors that share it) of the caches of one processor that hold data."""
    for index in (processor / "cache").glob("index*"):
        try:
            level, kind, size, shared = ((index / name).read_text().strip()
                                         for name in ("level", "type", "size", "shared_cpu_list"))
            if kind != "Instruction":
                number = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
                yield f"L{level}{'d' if kind == 'Data' else ''}", number, shared
        except (OSError, ValueError):
            continue


def available_memory(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that this process may still take, as far as the system says; half of all else."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, ValueError, KeyError):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    try:
        granted = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
    except (OSError, ValueError):                                # no such group, or "max"
        return free
    return max(0, min(free, granted))


def available_cpus() -> int:
    """Processors in the affinity mask, at most those that the control group grants (a fraction rounds up)."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    granted = group_cpus()
    return min(affinity, granted) if granted else affinity


def group_cpus(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Processors that the CPU quota of the control group and its ancestors grants, or None without a quota.

    Reads version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`) hierarchies.
    """
    limits = [quota for folder in _folders(proc, root) if (quota := _quota(folder)) is not None]
    return min(limits) if limits else None


def _folders(proc: Path, root: Path) -> list[Path]:
    """The process's group in every hierarchy that limits CPUs, and its ancestors up to the root."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return []
    found = [root, root / "cpu"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if controllers and "cpu" not in names:
            continue
        base = root / "cpu" if controllers else root
        parts = [p for p in path.split("/") if p and p != ".."]
        found += [base.joinpath(*parts[:i]) for i in range(1, len(parts) + 1)]
    return found


def _quota(folder: Path) -> int | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        if quota in ("max", "-1") or int(period) <= 0:
            return None
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return None
