"""Whether hardware performance counters can be read here (Linux, perf_event_open)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch_pim.compiler_hook.cli.doctor.finding import Finding

SECTION = "hardware counters"
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")

# linux/perf_event.h: PERF_TYPE_HARDWARE, and struct perf_event_attr in its first published size.
_HARDWARE = 0
_ATTRIBUTE = struct.Struct("=IIQQQQQIIQ")
_EXCLUDE_KERNEL_AND_HYPERVISOR = 1 << 5 | 1 << 6
_EVENTS: Mapping[str, int] = {"cycles": 0, "instructions": 1, "cache misses": 3}
_SYSTEM_CALL: Mapping[str, int] = {"x86_64": 298, "aarch64": 241, "riscv64": 241}

_MEANINGS: Mapping[int, str] = {
    errno.ENOENT: "the processor offers no such counter, as in many virtual machines",
    errno.ENODEV: "the processor offers no such counter, as in many virtual machines",
    errno.EOPNOTSUPP: "the processor offers no such counter, as in many virtual machines",
    errno.ENOSYS: "this kernel was built without perf events",
    errno.EACCES: "not allowed",
    errno.EPERM: "not allowed",
    errno.EBUSY: "another tool holds the counters",
    errno.EMFILE: "too many open files",
}
_ADVICE: Mapping[int, str] = {
    errno.EACCES: "set kernel.perf_event_paranoid to 2 or less, or grant CAP_PERFMON (containers: also in seccomp)",
    errno.EPERM: "set kernel.perf_event_paranoid to 2 or less, or grant CAP_PERFMON (containers: also in seccomp)",
    errno.EBUSY: "stop the other tool",
    errno.EMFILE: "raise the limit of open files",
}
_WITHOUT = "nothing to do: host profiles are then simulated, or hold wall-clock times alone"


def check_counters() -> Iterator[Finding]:
    """Opens each counter that a host profile uses, for this process and user code alone; one finding per outcome."""
    number = _SYSTEM_CALL.get(platform.machine())
    if not sys.platform.startswith("linux") or number is None:
        yield Finding(SECTION, "perf events", "note", f"not on {sys.platform} {platform.machine()}", _WITHOUT)
        return
    level = PARANOID.read_text(encoding="ascii").strip() if PARANOID.is_file() else "unknown"
    refusals: dict[int, list[str]] = {}
    for name, event in _EVENTS.items():
        refusals.setdefault(open_counter(number, event), []).append(name)
    for error, names in refusals.items():
        yield describe(", ".join(names), error, level)


def describe(name: str, error: int, paranoid_level: str) -> Finding:
    """The finding for a counter whose opening gave `error` (an errno, 0 for success)."""
    if error == 0:
        return Finding(SECTION, name, "ok", "can be read")
    code = errno.errorcode.get(error, str(error))
    meaning = _MEANINGS.get(error, os.strerror(error))
    value = f"{meaning} ({code}, perf_event_paranoid = {paranoid_level})"
    return Finding(SECTION, name, "note", value, _ADVICE.get(error, _WITHOUT))


def open_counter(system_call: int, event: int) -> int:
    """Opens and closes one hardware counter of this process; returns the errno, 0 for success."""
    attribute = ctypes.create_string_buffer(
        _ATTRIBUTE.pack(_HARDWARE, _ATTRIBUTE.size, event, 0, 0, 0, _EXCLUDE_KERNEL_AND_HYPERVISOR, 0, 0, 0),
        _ATTRIBUTE.size,
    )
    library = ctypes.CDLL(None, use_errno=True)
    this_process, any_core, no_group, no_flags = 0, -1, -1, 0
    library.syscall.restype = ctypes.c_long
    descriptor = library.syscall(
        ctypes.c_long(system_call),
        attribute,
        ctypes.c_int(this_process),
        ctypes.c_int(any_core),
        ctypes.c_int(no_group),
        ctypes.c_ulong(no_flags),
    )
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0
