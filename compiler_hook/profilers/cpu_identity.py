"""Which CPU this is: profiles of one CPU are not used for another."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path

_MODEL_KEYS = (
    ("vendor", ("vendor_id", "CPU implementer")),
    ("family", ("cpu family", "CPU architecture")),
    ("model", ("model", "CPU part")),
    ("stepping", ("stepping", "CPU revision")),
)
"""Names of the fields in /proc/cpuinfo, on x86 and on Arm."""
_FLAG_KEYS = ("flags", "Features")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """One cache that a core sees."""

    level: int
    kind: str
    """`Data`, `Instruction` or `Unified`."""
    nbytes: int


@dataclass(frozen=True, slots=True)
class CpuIdentity:
    """What decides how fast code runs on one core, as far as the system tells; not the clock or the load."""

    architecture: str
    vendor: str
    family: str
    model: str
    stepping: str
    flags_digest: str
    """sha256 of the sorted instruction-set flags."""
    caches: tuple[CacheLevel, ...]

    @property
    def host_id(self) -> str:
        """Readable and unique name, the same in every process on this CPU."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]
        readable = "-".join(part for part in (self.vendor, self.family, self.model, self.stepping) if part)
        return f"{readable or self.architecture}@{digest}"

    @property
    def last_level_bytes(self) -> int | None:
        """Size of the largest data or unified cache; None where the system does not tell."""
        return max((cache.nbytes for cache in self.caches if cache.kind != "Instruction"), default=None)


def read_cpu_identity(root: Path = Path("/")) -> CpuIdentity:
    """Reads /proc and /sys below `root`; elsewhere than on Linux only the architecture and processor are known."""
    cpuinfo = root / "proc" / "cpuinfo"
    if not cpuinfo.is_file():
        return CpuIdentity(platform.machine(), platform.processor(), "", "", "", "", ())
    fields = _first_processor(cpuinfo.read_text(encoding="utf-8", errors="replace"))
    named = {name: next((fields[key] for key in keys if key in fields), "") for name, keys in _MODEL_KEYS}
    flags = next((fields[key] for key in _FLAG_KEYS if key in fields), "")
    digest = hashlib.sha256(" ".join(sorted(flags.split())).encode()).hexdigest()
    caches = _caches(root / "sys" / "devices" / "system" / "cpu" / "cpu0" / "cache")
    return CpuIdentity(architecture=platform.machine(), flags_digest=digest, caches=caches, **named)


def _first_processor(text: str) -> dict[str, str]:
    """Fields of the first block of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.strip().split("\n\n")[0].splitlines():
        key, separator, value = line.partition(":")
        if separator:
            fields[key.strip()] = value.strip()
    return fields


def _caches(folder: Path) -> tuple[CacheLevel, ...]:
    found = []
    for index in sorted(folder.glob("index[0-9]*"), key=lambda path: int(path.name[5:])):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue  # Some virtual machines list caches without describing them.
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if match is not None:
            found.append(CacheLevel(int(level), kind, int(match[1]) * _UNITS[match[2]]))
    return tuple(found)
