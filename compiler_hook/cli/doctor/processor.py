"""The processor of this machine: model, cores that may be used, cache sizes."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from torch_pim.compiler_hook.cli.doctor.finding import Finding

SECTION = "processor"
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}
_CONFIGURED = (
    ("L1 data cache", "SC_LEVEL1_DCACHE_SIZE"),
    ("L2 cache", "SC_LEVEL2_CACHE_SIZE"),
    ("L3 cache", "SC_LEVEL3_CACHE_SIZE"),
)


def check_processor(
    cpuinfo: Path = Path("/proc/cpuinfo"), caches: Path = Path("/sys/devices/system/cpu/cpu0/cache")
) -> Iterator[Finding]:
    """Model, core count and one finding per data cache, from the kernel's own files."""
    yield Finding(SECTION, "model", "ok", _model(cpuinfo))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding(SECTION, "cores", "ok", f"{usable} usable of {os.cpu_count()}")
    found = list(_caches_of_kernel(caches)) or list(_caches_of_c_library())
    if not found:
        yield Finding(SECTION, "caches", "note", "unknown", "describe this machine in a host TOML file to place for it")
    yield from found


def _model(cpuinfo: Path) -> str:
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return f"{value.strip()} ({platform.machine()})"
    return platform.machine()


def _caches_of_kernel(folder: Path) -> Iterator[Finding]:
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size, sharers = (
                (index / name).read_text(encoding="ascii").strip()
                for name in ("level", "type", "size", "shared_cpu_list")
            )
        except OSError:
            # Some virtual machines list a cache without its size; then the C library is asked for all of them.
            return
        if kind != "Instruction":
            name = f"L{level} {'data ' if kind == 'Data' else ''}cache"
            yield Finding(SECTION, name, "ok", f"{_readable(_nbytes(size))}, shared by cores {sharers}")


def _caches_of_c_library() -> Iterator[Finding]:
    for name, key in _CONFIGURED:
        if key in getattr(os, "sysconf_names", {}) and (nbytes := os.sysconf(key)) > 0:
            yield Finding(SECTION, name, "ok", _readable(nbytes))


def _nbytes(size: str) -> int:
    return int(size[:-1]) * _UNITS[size[-1]] if size[-1:] in _UNITS else int(size)


def _readable(nbytes: int) -> str:
    return f"{nbytes // 1024**2} MiB" if nbytes % 1024**2 == 0 else f"{nbytes // 1024} KiB"
