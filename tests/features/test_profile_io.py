"""Profile files: what is written is read back, and nothing else is accepted."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.features.profile import LOCALITY_BYTES, HostProfile
from torch_pim.features.profile_io import ProfileError, digest, read_profiles, write_profiles

EMPTY = HostProfile("code", "host@1", "none")
FULL = HostProfile(
    code_hash="other",
    host_id="host@1",
    origin="perf",
    wall_time_ns=1234.5,
    warm=True,
    wall_time_spread=0.1,
    repeats=7,
    instructions=1e9,
    loads=3e8,
    stores=1e8,
    l1_misses=1e7,
    l2_misses=5e6,
    llc_misses=0.0,
    dram_bytes=64.0,
    ipc=2.5,
    locality_curve=tuple(0.5 / (i + 1) for i in range(len(LOCALITY_BYTES))),
)


def same(first: HostProfile, second: HostProfile) -> bool:
    """Equality in which NaN equals NaN."""
    return repr(first) == repr(second)


def test_round_trip_keeps_order_and_unmeasured_values(tmp_path):
    path = tmp_path / "profiles.jsonl"
    write_profiles(path, [FULL, EMPTY])
    found = read_profiles(path)
    assert [same(a, b) for a, b in zip(found, [FULL, EMPTY], strict=True)] == [True, True]
    assert "NaN" not in path.read_text()
    assert math.isnan(found[1].wall_time_ns)
    assert [p.name for p in tmp_path.iterdir()] == ["profiles.jsonl"]


@given(st.lists(st.floats(0, 1e18), min_size=10, max_size=10), st.integers(0, 1000), st.booleans())
def test_any_measured_values_survive(tmp_path_factory, numbers, repeats, warm):
    profile = HostProfile("c", "h", "wall", numbers[0], warm, numbers[1], repeats, *numbers[2:])
    path = tmp_path_factory.mktemp("p") / "x.jsonl"
    write_profiles(path, [profile])
    assert same(read_profiles(path)[0], profile)


def test_digest_is_of_the_values_whatever_their_order():
    assert digest([FULL, EMPTY]) == digest([EMPTY, FULL]) != digest([FULL])
    assert digest([]) == digest(())


def object_with(**values):
    data = {"code_hash": "c", "host_id": "h", "origin": "wall", "warm": False, "repeats": 1}
    numbers = ["wall_time_ns", "wall_time_spread", "instructions", "loads", "stores", "l1_misses", "l2_misses"]
    data |= dict.fromkeys([*numbers, "llc_misses", "dram_bytes", "ipc"])
    data["locality_curve"] = [None] * len(LOCALITY_BYTES)
    return {**data, **values}


def without(key):
    data = object_with()
    del data[key]
    return data


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps(object_with(loads=-1)), "key 'loads': expected a finite number that is not negative, got -1"),
        (json.dumps(object_with(loads="NaN")), "key 'loads': expected a number, or null"),
        (json.dumps(object_with(loads=math.nan)), "NaN is no JSON number; write null"),
        (json.dumps(object_with(loads=math.inf)), "Infinity is no JSON number"),
        (json.dumps(object_with()).replace('"loads": null', '"loads": 1e999'), "expected a finite number"),
        (json.dumps(object_with(loads=True)), "expected a number"),
        (json.dumps(object_with(load=1)), r"unknown key 'load'; did you mean 'loads'\?"),
        (json.dumps(without("loads")), "key 'loads' is missing; write null"),
        (json.dumps(object_with(origin="guess")), "expected one of perf, wall, simulated, none, got 'guess'"),
        (json.dumps(object_with(warm=1)), "expected true or false"),
        (json.dumps(object_with(repeats=1.5)), "expected an integer"),
        (json.dumps(object_with(repeats=None)), "expected an integer"),
        (json.dumps(object_with(code_hash="")), "expected a text that is not empty"),
        (json.dumps(object_with(locality_curve=[0.1])), "expected a list of 12 miss ratios"),
        (json.dumps(object_with(locality_curve=[-0.1] * 12)), "not negative"),
        (json.dumps(object_with())[:-1] + ', "warm": true}', "a key stands twice"),
        ("[]", "expected one JSON object per line, got list"),
        ("{", "line 2: Expecting property name"),
        ("", "line 2: Expecting value"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(object_with()) + "\n" + line + "\n")
    with pytest.raises(ProfileError, match=message) as caught:
        read_profiles(path)
    assert "bad.jsonl, line 2" in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ProfileError, match=r"cannot read the profiles in .*none\.jsonl"):
        read_profiles(tmp_path / "none.jsonl")


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    path = tmp_path / "profiles.jsonl"
    write_profiles(path, [EMPTY])
    with pytest.raises(ProfileError, match="profile 2: key 'wall_time_ns'"):
        write_profiles(path, [EMPTY, HostProfile("c", "h", "wall", wall_time_ns=-5.0)])
    assert len(read_profiles(path)) == 1
