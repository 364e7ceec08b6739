"""Measurements on disk: exact, damaged, interrupted, shared."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES, VAULT_COUNTS
from torch_pim.pim_emulator.measurement.record import NestMeasurement, RecordError
from torch_pim.pim_emulator.measurement.store import DamagedMeasurementWarning, MeasurementKey, MeasurementStore

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]

KEY = MeasurementKey("code", "features", 1000, 0)
MEASUREMENT = NestMeasurement(
    code_hash="code",
    feature_hash="features",
    loads=12.0,
    stores=4.5,
    load_misses=tuple(1.0 / (i + 3) for i in range(len(CACHE_BYTES))),
    store_misses=(2.0,) * len(CACHE_BYTES),
    writebacks=(1.0,) * len(CACHE_BYTES),
    footprint_lines=7.0,
    sequential_share=0.1,
    row_hit_share=0.3,
    vault_imbalance=(1.5,) * len(VAULT_COUNTS),
    footprint_imbalance=(1.25,) * len(VAULT_COUNTS),
    recorded_accesses=16,
    traced_share=1.0,
    error_estimate=0.0,
)


def test_what_is_put_is_got(tmp_path: Path) -> None:
    store = MeasurementStore(tmp_path)
    assert store.get(KEY) is None
    store.put(KEY, MEASUREMENT)
    assert MeasurementStore(tmp_path).get(KEY) == MEASUREMENT
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{KEY.digest}.json"]


def test_equal_measurements_are_equal_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        store = MeasurementStore(tmp_path / name)
        store.put(KEY, MEASUREMENT)
        contents.append(store.path(KEY).read_bytes())
    assert contents[0] == contents[1]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 2**60))
def test_numbers_survive_exactly(value: float, count: int) -> None:
    measurement = replace(MEASUREMENT, loads=value, recorded_accesses=count)
    assert NestMeasurement.from_json(json.loads(json.dumps(measurement.to_json()))) == measurement


def test_unknown_error_survives() -> None:
    measurement = NestMeasurement.from_json(replace(MEASUREMENT, error_estimate=math.nan).to_json())
    assert math.isnan(measurement.error_estimate)


@pytest.mark.parametrize(
    "changed",
    [
        replace(KEY, code_hash="other"),
        replace(KEY, feature_hash="other"),
        replace(KEY, trace_budget=999),
        replace(KEY, seed=1),
        replace(KEY, emulator_version="0"),
        replace(KEY, implementation="0"),
    ],
)
def test_every_part_of_the_key_counts(tmp_path: Path, changed: MeasurementKey) -> None:
    store = MeasurementStore(tmp_path)
    store.put(KEY, MEASUREMENT)
    assert store.get(changed) is None


def test_damage_is_a_warning_and_a_miss(tmp_path: Path) -> None:
    store = MeasurementStore(tmp_path)
    store.put(KEY, MEASUREMENT)
    path = store.path(KEY)
    whole = path.read_bytes()
    other = MeasurementStore(tmp_path / "other")
    other.put(replace(KEY, seed=5), MEASUREMENT)
    damaged = [
        b"",
        whole[:-20],
        whole.replace(b"12.0", b"12.5"),
        b"[1]",
        b"\xff\xfe",
        whole.replace(b'"sha256"', b'"md5"'),
        other.path(replace(KEY, seed=5)).read_bytes(),
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.warns(DamagedMeasurementWarning, match="measured again"):
            assert store.get(KEY) is None
    store.put(KEY, MEASUREMENT)
    assert store.get(KEY) == MEASUREMENT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loads": "12"}, "loads: expected float"),
        ({"loads": True}, "loads: expected float"),
        ({"recorded_accesses": 1.5}, "recorded_accesses: expected an integer"),
        ({"load_misses": [1.0]}, "load_misses: expected 13 numbers, found 1"),
        ({"vault_imbalance": 3}, "vault_imbalance: expected a list"),
        ({"extra": 1}, "unknown: extra"),
    ],
)
def test_records_of_another_shape_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        NestMeasurement.from_json({**MEASUREMENT.to_json(), **change})


WRITER = """
import sys
from dataclasses import replace
from tests_record import KEY, MEASUREMENT
from torch_pim.pim_emulator.measurement.store import MeasurementStore
store = MeasurementStore(sys.argv[1])
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    store.put(replace(KEY, seed=number % 50), replace(MEASUREMENT, loads=float(number % 50)))
"""


def start_writer(tmp_path: Path, count: int) -> subprocess.Popen[str]:
    (tmp_path / "tests_record.py").write_text(Path(__file__).read_text(), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "store"), str(count)],
        env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def readable(folder: Path) -> int:
    """Number of files, all of which must be whole."""
    store = MeasurementStore(folder)
    found = 0
    for number in range(50):
        measurement = store.get(replace(KEY, seed=number))
        if measurement is not None:
            assert measurement.loads == number
            found += 1
    return found


def test_a_killed_writer_leaves_whole_files(tmp_path: Path) -> None:
    process = start_writer(tmp_path, 10**9)
    deadline = time.monotonic() + 20
    while readable(tmp_path / "store") < 5 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert readable(tmp_path / "store") >= 5


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, 400) for _ in range(2)]
    while any(writer.poll() is None for writer in writers):
        readable(tmp_path / "store")
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert readable(tmp_path / "store") == 50
