"""Label records, rows and files: equal to what the compiler computes, and stable through a file."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.experiments.label.machines import label_machines
from torch_pim.experiments.label.parquet import SCHEMA_KEY, STATIC_PREFIX, LabelFileError, read_labels, write_labels
from torch_pim.experiments.label.records import RecordError, decode, encode
from torch_pim.experiments.label.rows import RowSource, wall_only
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.profile import HostProfile
from torch_pim.features.schema import Schema
from torch_pim.models.cost_model.constants import FROM_SPECS, CostConstants
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.learned.inputs import MODEL_SCHEMA, model_row


class TestRecords:
    def test_round_trip_of_every_record(self, labels):
        for record in (labels.nests[0].nest, labels.profiles[0][0], labels.hosts[0], labels.devices[-1]):
            again = decode(type(record), encode(record))
            assert encode(again) == encode(record)
            assert type(again) is type(record)
        assert decode(LoopNest, encode(labels.nests[0].nest)) == labels.nests[0].nest
        assert decode(DeviceSpec, encode(labels.devices[0])) == labels.devices[0]

    @given(st.floats())
    def test_floats_survive_to_the_bit(self, value):
        profile = HostProfile("c", "h", "wall", wall_time_ns=value)
        found = decode(HostProfile, encode(profile)).wall_time_ns
        assert found == value or (math.isnan(found) and math.isnan(value))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: {**t, "extra": 1}, "extra"),
            (lambda t: {k: v for k, v in t.items() if k != "cores"}, "cores"),
            (lambda t: {**t, "cores": "8"}, r"HostSpec\.cores: expected int"),
            (lambda t: {**t, "cores": True}, r"HostSpec\.cores"),
            (lambda t: {**t, "clock_ghz": "fast"}, r"HostSpec\.clock_ghz"),
        ],
    )
    def test_damaged_records_are_refused(self, labels, change, message):
        table = json.loads(encode(labels.hosts[0]))
        with pytest.raises(RecordError, match=message):
            decode(HostSpec, json.dumps(change(table)))

    def test_other_shapes_are_refused(self):
        @dataclass(frozen=True)
        class Pair:
            both: tuple[int, str]
            some: tuple[int, ...] = ()

        assert decode(Pair, '{"both":[1,"a"],"some":[1,2]}') == Pair((1, "a"), (1, 2))
        for text in (
            '{"both":[1],"some":[]}',
            '{"both":[1,2],"some":[]}',
            '{"both":[1,"a"],"some":3}',
            "[]",
            "nonsense",
        ):
            with pytest.raises(RecordError):
                decode(Pair, text)


class TestMachines:
    def test_presets_in_all_combinations_and_random_pairs_of_their_own(self):
        machines = label_machines(("cpu-8c", "cpu-16c"), ("ndp-hmc-32", "ndp-hmc-64"), random_pairs=3, seed=1)
        assert [h.name for h in machines.hosts[:2]] == ["cpu-8c", "cpu-16c"]
        assert len(machines.hosts) == len(machines.devices) == 5
        assert machines.pairs == ((0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (3, 3), (4, 4))
        assert all(d.cores != 64 for d in machines.devices[2:])


class TestRows:
    @pytest.mark.parametrize("constants", [FROM_SPECS, CostConstants(host_compute=2.0, profile_weight=0.3)])
    @pytest.mark.parametrize("setting", ["profiled", "wall", "static"])
    def test_rows_are_what_the_compiler_computes(self, labels, constants, setting):
        source = RowSource(labels)
        rows = source.rows(source.estimates(constants, setting), setting)
        model = CostModel(constants)
        for row in range(0, len(source.index), 17):
            n, h, d = source.index[row]
            profile = {"profiled": labels.profiles[n][h], "wall": wall_only(labels.profiles[n][h]), "static": None}
            expected = model_row(labels.nests[n].nest, profile[setting], labels.hosts[h], labels.devices[d], model)
            assert np.array_equal(rows[row], expected, equal_nan=True)

    def test_times_of_a_label_reach_no_feature(self, labels):
        """Other labels, byte-identical static rows; a profile is all that carries a measured time."""
        other = replace(labels, host_ns=labels.host_ns * 7, device_ns=labels.device_ns / 3)
        for setting in ("profiled", "static"):
            first, second = RowSource(labels), RowSource(other)
            a = first.rows(first.estimates(FROM_SPECS, setting), setting)
            b = second.rows(second.estimates(FROM_SPECS, setting), setting)
            assert a.tobytes() == b.tobytes()
        silent = replace(labels, profiles=tuple((None,) * len(labels.hosts) for _ in labels.nests))
        bare, full = RowSource(silent), RowSource(labels)
        a = bare.rows(bare.estimates(FROM_SPECS, "profiled"), "profiled")
        assert a.tobytes() == full.rows(full.estimates(FROM_SPECS, "static"), "static").tobytes()


class TestLabelSet:
    def test_rows_and_keys(self, labels):
        rows = list(labels.rows())
        assert len(rows) == len(labels.nests) * len(labels.pairs)
        keys = {labels.label_key(*row) for row in rows}
        assert len(keys) == len(rows)
        newer = replace(labels, header=replace(labels.header, emulator_version="2"))
        assert not keys & {newer.label_key(*row) for row in rows}

    @pytest.mark.parametrize(
        "change",
        [
            lambda s: replace(s, header=replace(s.header, seed=9)),
            lambda s: replace(s, host_ns=s.host_ns * (1 + 1e-15)),
            lambda s: replace(s, pairs=s.pairs[:-1]),
            lambda s: replace(s, nests=(replace(s.nests[0], group="other"), *s.nests[1:])),
            lambda s: replace(s, hosts=(replace(s.hosts[0], cores=9), *s.hosts[1:])),
            lambda s: replace(s, profiles=((None, *s.profiles[0][1:]), *s.profiles[1:])),
        ],
    )
    def test_every_part_changes_the_content(self, labels, change):
        assert change(labels).content != labels.content

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda s: replace(s, host_ns=s.host_ns[:-1]), "shape"),
            (lambda s: replace(s, device_ns=-s.device_ns), "device times"),
            (lambda s: replace(s, host_ns=s.host_ns * np.nan), "host times"),
            (lambda s: replace(s, nests=s.nests[::-1]), "sorted"),
            (lambda s: replace(s, pairs=s.pairs[::-1]), "ascending"),
            (lambda s: replace(s, profiles=s.profiles[:-1]), "profiles"),
        ],
    )
    def test_inconsistent_sets_are_refused(self, labels, change, message):
        with pytest.raises(ValueError, match=message):
            change(labels)


class TestParquet:
    def test_round_trip(self, labels, tmp_path):
        path = write_labels(labels, tmp_path / "deep" / "labels.parquet")
        again = read_labels(path)
        assert again.content == labels.content
        assert again.nests == labels.nests
        assert again.host_ns.tobytes() == labels.host_ns.tobytes()
        assert [p.name for p in path.parent.iterdir()] == ["labels.parquet"]

    def test_same_labels_same_bytes(self, labels, tmp_path):
        first = write_labels(labels, tmp_path / "a.parquet").read_bytes()
        assert write_labels(labels, tmp_path / "b.parquet").read_bytes() == first

    def test_a_stranger_can_read_it(self, labels, tmp_path):
        """Schema in the metadata, one column per feature, times, and no row that is not explained by its keys."""
        table = pq.read_table(write_labels(labels, tmp_path / "labels.parquet"))
        schema = Schema.from_json(json.loads(table.schema.metadata[SCHEMA_KEY]))
        assert schema == MODEL_SCHEMA
        assert set(schema.names) < set(table.column_names)
        statics = {n.removeprefix(STATIC_PREFIX) for n in table.column_names if n.startswith(STATIC_PREFIX)}
        assert {"log_time_ratio", "profile_is_none", "profile_log_wall_time"} <= statics
        assert "log_iterations" not in statics
        frame = table.to_pandas()
        keys = frame[["host", "device", "nest"]].astype(str)
        assert not keys.duplicated().any()
        assert len(frame) == len(labels.nests) * len(labels.pairs)

    def test_bad_files(self, labels, tmp_path):
        with pytest.raises(LabelFileError, match="torch-pim label"):
            read_labels(tmp_path / "missing.parquet")
        (tmp_path / "text.parquet").write_text("hello")
        with pytest.raises(LabelFileError, match="no label file"):
            read_labels(tmp_path / "text.parquet")
        path = write_labels(labels, tmp_path / "labels.parquet")
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata({}), tmp_path / "bare.parquet")
        with pytest.raises(LabelFileError, match="no label file"):
            read_labels(tmp_path / "bare.parquet")
        position = table.column_names.index("host_time_ns")
        changed = table.set_column(position, "host_time_ns", [np.array(table["host_time_ns"]) * 2])
        pq.write_table(changed, tmp_path / "changed.parquet")
        with pytest.raises(LabelFileError, match="does not match its digest"):
            read_labels(tmp_path / "changed.parquet")
