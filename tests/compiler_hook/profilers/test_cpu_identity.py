"""Identity of a CPU from what Linux tells about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_pim.compiler_hook.profilers.cpu_identity import CacheLevel, read_cpu_identity

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: Some CPU @ 2.00GHz
stepping\t: 4
cpu MHz\t\t: {mhz}
flags\t\t: fpu avx2 {flag}

processor\t: 1
vendor_id\t: Other
"""


def machine(root: Path, flag: str = "sse4_2", mhz: str = "2000.0", llc: str = "28160K") -> Path:
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "cpuinfo").write_text(CPUINFO.format(mhz=mhz, flag=flag))
    caches = [("1", "Data", "32K"), ("1", "Instruction", "32K"), ("2", "Unified", "1M"), ("3", "Unified", llc)]
    for number, (level, kind, size) in enumerate(caches):
        folder = root / "sys/devices/system/cpu/cpu0/cache" / f"index{number}"
        folder.mkdir(parents=True)
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(value + "\n")
    return root


def test_fields_of_the_first_processor(tmp_path):
    cpu = read_cpu_identity(machine(tmp_path))
    assert (cpu.vendor, cpu.family, cpu.model, cpu.stepping) == ("GenuineIntel", "6", "85", "4")
    assert cpu.caches[0] == CacheLevel(1, "Data", 32768)
    assert cpu.last_level_bytes == 28160 * 1024
    assert cpu.host_id.startswith("GenuineIntel-6-85-4@")


def test_identity_ignores_clock_and_order_of_flags(tmp_path):
    first = read_cpu_identity(machine(tmp_path / "a"))
    second = read_cpu_identity(machine(tmp_path / "b", mhz="3456.7"))
    assert first.host_id == second.host_id
    swapped = machine(tmp_path / "c")
    text = (swapped / "proc/cpuinfo").read_text().replace("fpu avx2 sse4_2", "sse4_2 fpu avx2")
    (swapped / "proc/cpuinfo").write_text(text)
    assert read_cpu_identity(swapped).host_id == first.host_id


@pytest.mark.parametrize("change", [{"flag": "avx512f"}, {"llc": "16M"}])
def test_identity_depends_on_flags_and_caches(tmp_path, change):
    assert read_cpu_identity(machine(tmp_path / "a")) != read_cpu_identity(machine(tmp_path / "b", **change))
    assert (
        read_cpu_identity(machine(tmp_path / "c")).host_id
        != read_cpu_identity(machine(tmp_path / "d", **change)).host_id
    )


def test_arm_names(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(
        "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU part\t: 0xd0c\nCPU revision\t: 1\n"
    )
    cpu = read_cpu_identity(tmp_path)
    assert (cpu.vendor, cpu.family, cpu.model, cpu.stepping) == ("0x41", "8", "0xd0c", "1")
    assert cpu.caches == ()
    assert cpu.last_level_bytes is None


def test_caches_without_description_are_left_out(tmp_path):
    root = machine(tmp_path)
    (root / "sys/devices/system/cpu/cpu0/cache/index3/size").unlink()
    assert read_cpu_identity(root).last_level_bytes == 1 << 20


def test_other_systems(tmp_path):
    cpu = read_cpu_identity(tmp_path)
    assert cpu.flags_digest == ""
    assert "@" in cpu.host_id


def test_this_machine_is_stable():
    assert read_cpu_identity().host_id == read_cpu_identity().host_id
