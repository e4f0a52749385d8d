"""Sizes of this machine's caches and memory."""
from __future__ import annotations

import os
from pathlib import Path

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_sizes(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> list[tuple[str, int]]:
    """("L1d", bytes), ... of the caches of the first processor that hold data, the nearest first.

    Empty where the system does not say: it is read as Linux writes it.
    """
    found = []
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                unit = _UNITS.get(size[-1:], 1)
                found.append((f"L{level}{'d' if kind == 'Data' else ''}", int(size.rstrip("KMG")) * unit))
        except (OSError, ValueError):
            continue
    return sorted(found)


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
