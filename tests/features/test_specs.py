"""Machine specifications: the presets, and errors that say how to mend a file."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from torch_pim.features.machines import DeviceSpec, HostSpec, assumed_fields, digest
from torch_pim.features.specs import (
    PRESETS,
    SpecError,
    device_presets,
    host_presets,
    load_device,
    load_host,
    parse_device,
    parse_host,
)

HOST_TEXT = (PRESETS / "hosts" / "cpu-8c.toml").read_text()
DEVICE_TEXT = (PRESETS / "devices" / "ndp-hmc-64.toml").read_text()


def test_names_of_presets():
    assert host_presets() == ("cpu-16c", "cpu-1c", "cpu-8c", "cpu-8c-hmc")
    assert device_presets() == tuple(sorted(f"ndp-hmc-{n}{s}" for n in (32, 64, 128) for s in ("", "-scalar")))


@pytest.mark.parametrize("name", host_presets())
def test_hosts_carry_their_name_and_a_source_for_each_constant(name):
    spec = load_host(name)
    assert spec.name == name
    assert set(spec.sources) == {f.name for f in fields(HostSpec)} - {"name", "sources"}


@pytest.mark.parametrize("name", device_presets())
def test_devices_carry_their_name_and_a_source_for_each_constant(name):
    spec = load_device(name)
    assert spec.name == name
    assert set(spec.sources) == {f.name for f in fields(DeviceSpec)} - {"name", "sources"}
    assert "cycles_transcendental" in assumed_fields(spec)
    assert "dram_hit_ns" not in assumed_fields(spec)


def test_hosts_of_the_published_configurations():
    bandwidth = {
        name: (load_host(name).dram_bandwidth_gb_s, load_host(name).bandwidth_efficiency) for name in host_presets()
    }
    assert bandwidth == {
        "cpu-1c": (38.4, 0.8),
        "cpu-8c": (38.4, 0.8),
        "cpu-16c": (153.6, 0.8),
        "cpu-8c-hmc": (155.0, 1.0),
    }
    assert {n: load_host(n).llc_bytes >> 20 for n in host_presets()} == {
        "cpu-1c": 2,
        "cpu-8c": 16,
        "cpu-16c": 32,
        "cpu-8c-hmc": 16,
    }


def test_devices_differ_only_in_cores_lanes_and_misses():
    base = asdict(load_device("ndp-hmc-32"))
    for name in device_presets():
        spec = load_device(name)
        changed = {key for key, value in asdict(spec).items() if value != base[key]} - {"name", "sources"}
        assert changed <= {"cores", "simd_lanes_f32", "outstanding_misses"}
        lanes = 1 if name.endswith("-scalar") else 4
        assert (spec.simd_lanes_f32, spec.outstanding_misses) == (lanes, lanes)
        assert spec.bandwidth_gb_s == 320.0


def test_row_latencies_follow_from_the_timings():
    spec = load_device("ndp-hmc-64")
    t_ck, n_cl, n_rcd, n_rp, n_bl = 0.8, 17, 17, 17, 4
    expected = [(n_cl + n_bl) * t_ck, (n_rcd + n_cl + n_bl) * t_ck, (n_rp + n_rcd + n_cl + n_bl) * t_ck]
    assert [spec.dram_hit_ns, spec.dram_closed_ns, spec.dram_conflict_ns] == pytest.approx(expected)
    assert spec.refresh_overhead == pytest.approx(200 / 9750, abs=1e-4)


def test_path_and_preset_give_the_same_machine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(HOST_TEXT)
    assert load_host(path) == load_host(str(path)) == load_host("cpu-8c")


def test_identity_is_of_the_values_alone():
    renamed = parse_host(HOST_TEXT.replace('name = "cpu-8c"', 'name = "other"'), "f")
    faster = parse_host(HOST_TEXT.replace("clock_ghz = 3.0", "clock_ghz = 3.5", 1), "f")
    assert digest(renamed) == digest(load_host("cpu-8c")) != digest(faster)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clock_ghz = 3.0", "clock_gzh = 3.0", r"f\.toml: key 'clock_gzh' is unknown; did you mean 'clock_ghz'\?"),
        ("clock_ghz = 3.0\n", "", r"f\.toml: key 'clock_ghz' is missing"),
        ("clock_ghz = 3.0", 'clock_ghz = "3"', r"'clock_ghz': expected a number, got '3' \(str\)"),
        ("cores = 8", "cores = 8.0", r"'cores': expected an integer, got 8\.0 \(float\)"),
        ("cores = 8", "cores = true", r"'cores': expected an integer, got True"),
        ("cores = 8", "cores = 0", r"'cores': expected more than zero, got 0"),
        ("cores = 8", "cores = -8", r"'cores': expected more than zero, got -8"),
        ("fork_join_ns = 2000.0", "fork_join_ns = -1", r"'fork_join_ns': expected zero or more, got -1"),
        ("clock_ghz = 3.0", "clock_ghz = nan", r"'clock_ghz': expected a finite number, got nan"),
        ("clock_ghz = 3.0", "clock_ghz = inf", r"'clock_ghz': expected a finite number, got inf"),
        (
            "bandwidth_efficiency = 0.8",
            "bandwidth_efficiency = 1.2",
            r"expected a share above 0 and at most 1, got 1\.2",
        ),
        ("l1_ways = 8", "l1_ways = 7", r"'l1_ways': 7 ways of 64-byte lines do not divide l1_bytes = 32768"),
        (
            "l2_bytes = 262144",
            "l2_bytes = 16384",
            r"'l2_bytes': 16384 is below l1_bytes = 32768; expected l1_bytes <= l2",
        ),
        ("l2_latency_cycles = 12.0", "l2_latency_cycles = 2", r"'l2_latency_cycles': 2\.0 is below l1_latency_cycles"),
        ('name = "cpu-8c"', 'name = " "', r"'name': expected a text that is not empty"),
        ("[sources]", "[source]", r"key 'sources': expected a table \[sources\]"),
        ("[sources]", "[sources]\ncore = 'x'", r"source of 'core' is unknown"),
        ('llc_ways = "assumed: 16 ways with a hashed set index"\n', "", r"source of 'llc_ways' is missing"),
        (
            'llc_ways = "assumed: 16 ways with a hashed set index"',
            "llc_ways = ''",
            r"source of 'llc_ways': expected a text",
        ),
        ("cores = 8", "cores = = 8", r"f\.toml: not valid TOML: .*line 3"),
    ],
)
def test_host_errors_name_file_key_and_mend(old, new, message):
    assert old in HOST_TEXT
    with pytest.raises(SpecError, match=message):
        parse_host(HOST_TEXT.replace(old, new, 1), "f.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"f64", "f32"', '"f64", "float"', r"'supported_types': unknown element type 'float'; expected some of f64"),
        ('"f64", "f32"', '"f32", "f32"', r"'supported_types': a type is named twice"),
        ('"f64", "f32"', '64, "f32"', r"'supported_types': expected a list of texts"),
        ("dram_closed_ns = 30.4", "dram_closed_ns = 60.0", r"'dram_conflict_ns': 44\.0 is below dram_closed_ns = 60"),
        ("refresh_overhead = 0.0205", "refresh_overhead = 1.0", r"expected a share at least 0 and below 1, got 1"),
    ],
)
def test_device_errors_name_file_key_and_mend(old, new, message):
    with pytest.raises(SpecError, match=message):
        parse_device(DEVICE_TEXT.replace(old, new, 1), "f.toml")


def test_a_device_without_types_is_refused():
    start = DEVICE_TEXT.index("supported_types")
    end = DEVICE_TEXT.index("\n", start)
    with pytest.raises(SpecError, match="the list is empty"):
        parse_device(DEVICE_TEXT[:start] + "supported_types = []" + DEVICE_TEXT[end:], "f.toml")


def test_a_host_file_is_no_device():
    with pytest.raises(SpecError, match="key 'issue_width' is unknown"):
        parse_device(HOST_TEXT, "f.toml")


def test_unknown_names_and_files(tmp_path):
    with pytest.raises(SpecError, match=r"unknown host 'cpu8c'; did you mean 'cpu-8c'\?; expected one of cpu-16c"):
        load_host("cpu8c")
    with pytest.raises(SpecError, match=r"unknown device 'ndp-hmc-65'; did you mean 'ndp-hmc-6.*or a \.toml file"):
        load_device("ndp-hmc-65")
    with pytest.raises(SpecError, match=r"cannot read the machine specification .*none\.toml"):
        load_host(tmp_path / "none.toml")
