"""Labels as one Parquet file: a row per nest and machine pair, with features, and all records in the file itself."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.experiments.label.label_set import LabelHeader, LabelledNest, LabelSet
from torch_pim.experiments.label.records import RecordError, decode, encode
from torch_pim.experiments.label.rows import FeatureRows, RowSource
from torch_pim.experiments.whole_file import whole_file
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.profile import HostProfile
from torch_pim.models.cost_model.constants import FROM_SPECS
from torch_pim.models.learned.inputs import MODEL_SCHEMA

FORMAT = 1
SCHEMA_KEY = b"torch_pim.schema"
HEADER_KEY = b"torch_pim.labels"
STATIC_PREFIX = "static."
"""Prefix of the columns that differ when there is no profile."""


class LabelFileError(TorchPimError, ValueError):
    """A label file cannot be read."""


def write_labels(labels: LabelSet, path: str | os.PathLike[str]) -> Path:
    """Writes the file whole: rows sorted by machine pair and nest, columns in a fixed order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = RowSource(labels)
    profiled = source.rows(source.estimates(FROM_SPECS, "profiled"), "profiled")
    static = source.rows(source.estimates(FROM_SPECS, "static"), "static")
    columns = {**_key_columns(labels, pa), **_feature_columns(profiled, static)}
    table = pa.table(columns).replace_schema_metadata(
        {
            SCHEMA_KEY: json.dumps(MODEL_SCHEMA.to_json(), sort_keys=True),
            HEADER_KEY: json.dumps(
                {
                    "format": FORMAT,
                    "header": asdict(labels.header),
                    "hosts": [encode(spec) for spec in labels.hosts],
                    "devices": [encode(spec) for spec in labels.devices],
                    "pairs": labels.pairs,
                    "content": labels.content,
                },
                sort_keys=True,
            ),
        }
    )
    with whole_file(path) as work:
        pq.write_table(table, work, compression="zstd", row_group_size=max(1, table.num_rows))
    return Path(path)


def _key_columns(labels: LabelSet, pa: Any) -> dict[str, Any]:
    rows = list(labels.rows())
    nests = [nest for nest, _, _ in rows]
    records = [encode(labelled.nest) for labelled in labels.nests]
    profiles = [[encode(p) if p is not None else None for p in line] for line in labels.profiles]

    def repeated(values: list[Any]) -> Any:
        return pa.array(values).dictionary_encode()

    return {
        "nest": repeated([labels.nests[n].identity for n in nests]),
        "source": repeated([labels.nests[n].source for n in nests]),
        "family": repeated([labels.nests[n].family for n in nests]),
        "group": repeated([labels.nests[n].group for n in nests]),
        "host": repeated([labels.hosts[h].identity for _, h, _ in rows]),
        "device": repeated([labels.devices[d].identity for _, _, d in rows]),
        "host_time_ns": np.array([labels.host_ns[n, h] for n, h, _ in rows]),
        "device_time_ns": np.array([labels.device_ns[n, d] for n, _, d in rows]),
        "label_key": [labels.label_key(*row) for row in rows],
        "loop_nest": repeated([records[n] for n in nests]),
        "host_profile": repeated([profiles[n][h] for n, h, _ in rows]),
    }


def _feature_columns(profiled: FeatureRows, static: FeatureRows) -> dict[str, Any]:
    columns = {name: profiled[:, i] for i, name in enumerate(MODEL_SCHEMA.names)}
    for i, name in enumerate(MODEL_SCHEMA.names):
        if not np.array_equal(profiled[:, i], static[:, i], equal_nan=True):
            columns[STATIC_PREFIX + name] = static[:, i]
    return columns


def read_labels(path: str | os.PathLike[str]) -> LabelSet:
    """The labels of a file; features are derived again where they are needed. Raises LabelFileError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise LabelFileError(f"no label file {str(path)!r}: make one with torch-pim label")
    try:
        table = pq.read_table(
            path,
            columns=[
                "nest", "source", "family", "group", "host", "device", "host_time_ns", "device_time_ns", "loop_nest",
                "host_profile",
            ],
        )  # fmt: skip
        stored = json.loads((table.schema.metadata or {})[HEADER_KEY])
        if stored["format"] != FORMAT:
            raise LabelFileError(f"{path}: label format {stored['format']}, this version reads {FORMAT}: label again")
        labels = _assemble(stored, {name: table.column(name).to_pylist() for name in table.column_names})
    except (pa.ArrowException, KeyError, RecordError, TypeError) as error:
        raise LabelFileError(f"{path} is no label file of torch-pim label: {error}") from error
    if labels.content != stored["content"]:
        raise LabelFileError(f"{path}: the content does not match its digest; label again")
    return labels


def _assemble(stored: dict[str, Any], columns: dict[str, list[Any]]) -> LabelSet:
    hosts = tuple(decode(HostSpec, text) for text in stored["hosts"])
    devices = tuple(decode(DeviceSpec, text) for text in stored["devices"])
    host_index = {spec.identity: i for i, spec in enumerate(hosts)}
    device_index = {spec.identity: i for i, spec in enumerate(devices)}
    nests: dict[str, LabelledNest] = {}
    for identity, source, family, group, text in zip(
        columns["nest"], columns["source"], columns["family"], columns["group"], columns["loop_nest"], strict=True
    ):
        if identity not in nests:
            nests[identity] = LabelledNest(decode(LoopNest, text), source, family, group)
    order = {identity: i for i, identity in enumerate(sorted(nests))}
    host_ns = np.full((len(order), len(hosts)), np.nan)
    device_ns = np.full((len(order), len(devices)), np.nan)
    profiles: list[list[HostProfile | None]] = [[None] * len(hosts) for _ in order]
    decoded: dict[str, HostProfile] = {}
    for identity, host, device, host_time, device_time, text in zip(
        *(columns[name] for name in ("nest", "host", "device", "host_time_ns", "device_time_ns", "host_profile")),
        strict=True,
    ):
        nest, h, d = order[identity], host_index[host], device_index[device]
        host_ns[nest, h], device_ns[nest, d] = host_time, device_time
        if text is not None:
            if text not in decoded:
                decoded[text] = decode(HostProfile, text)
            profiles[nest][h] = decoded[text]
    return LabelSet(
        header=LabelHeader(**stored["header"]),
        nests=tuple(nests[identity] for identity in order),
        hosts=hosts,
        devices=devices,
        pairs=tuple((int(h), int(d)) for h, d in stored["pairs"]),
        host_ns=host_ns,
        device_ns=device_ns,
        profiles=tuple(map(tuple, profiles)),
    )
