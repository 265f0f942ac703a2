"""How many threads llama.cpp computes with.

Its OpenMP threads spin while they wait. On cores that others use too, more than one thread then gets slower than
one by orders of magnitude, unless spinning is switched off (GOMP_SPINCOUNT=0) before the library is loaded.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SPIN_VARIABLE = "GOMP_SPINCOUNT"
MOST_THREADS = 8  # more gain little with models that fit a CPU


def stop_spinning() -> bool:
    """Switch spinning off for a libgomp that is loaded later; whether that will have an effect.

    A value that the user has set is kept.
    """
    if os.environ.setdefault(SPIN_VARIABLE, "0") != "0":
        return False
    return not _libgomp_is_loaded()


def default_threads(may_share: bool) -> int:
    """Threads where the user names none: the cores this process may use, at most `MOST_THREADS`.

    1 unless the threads yield to others while they wait (`may_share`, see `stop_spinning`). The number changes
    the speed alone: logits are the same bits.
    """
    return min(usable_cores(), MOST_THREADS) if may_share else 1


def usable_cores() -> int:
    """Cores that this process may use, at least 1: its CPU affinity, within its cgroup's quota (version 2)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            cores = min(cores, int(quota) // int(period))
    except (OSError, ValueError):
        return max(1, cores)  # no cgroup, no quota
    return max(1, cores)


def _libgomp_is_loaded() -> bool:
    if sys.platform != "linux":
        return False
    try:
        return "libgomp" in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
