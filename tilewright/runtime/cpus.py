"""How many processors this process may use."""
from __future__ import annotations

import os
from pathlib import Path


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
