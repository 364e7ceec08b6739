"""The processor of this machine: model, identity, cores that may be used, cache sizes."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from torch_pim.compiler_hook.cli.doctor.finding import Finding
from torch_pim.compiler_hook.profilers.cpu_identity import read_cpu_identity

SECTION = "processor"
_CONFIGURED = (
    ("L1 data cache", "SC_LEVEL1_DCACHE_SIZE"),
    ("L2 cache", "SC_LEVEL2_CACHE_SIZE"),
    ("L3 cache", "SC_LEVEL3_CACHE_SIZE"),
)


def check_processor(root: Path = Path("/")) -> Iterator[Finding]:
    """Model, the host_id that measured profiles carry, cores, and data caches; reads /proc and /sys below `root`."""
    identity = read_cpu_identity(root)
    yield Finding(SECTION, "model", "ok", _model(root / "proc" / "cpuinfo"))
    yield Finding(SECTION, "host_id", "ok", identity.host_id)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding(SECTION, "cores", "ok", f"{usable} usable of {os.cpu_count()}")
    caches = {
        f"L{cache.level} {'data ' if cache.kind == 'Data' else ''}cache": cache.nbytes
        for cache in identity.caches
        if cache.kind != "Instruction"
    } or dict(_caches_of_c_library())
    for name, nbytes in caches.items():
        yield Finding(SECTION, name, "ok", _readable(nbytes))
    if not caches:
        advice = "to place for this machine, give its cache sizes in a host TOML file"
        yield Finding(SECTION, "caches", "note", "unknown", advice)


def _model(cpuinfo: Path) -> str:
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return f"{value.strip()} ({platform.machine()})"
    return platform.machine()


def _caches_of_c_library() -> Iterator[tuple[str, int]]:
    # Where the kernel describes no caches, the C library may still know them from the processor itself.
    for name, key in _CONFIGURED:
        if key in getattr(os, "sysconf_names", {}) and (nbytes := os.sysconf(key)) > 0:
            yield name, nbytes


def _readable(nbytes: int) -> str:
    return f"{nbytes // 1024**2} MiB" if nbytes % 1024**2 == 0 else f"{nbytes // 1024} KiB"
