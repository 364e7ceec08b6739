"""Schemas: digests, subsets and refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from torch_pim.features.schema import FeatureColumn, Schema, SchemaError


def column(name: str, unit: str = "count") -> FeatureColumn:
    return FeatureColumn(name, "float64", unit, f"The {name}.")


SCHEMA = Schema(3, (column("loads"), column("stores"), column("share", "share")))


def test_json_round_trip():
    assert Schema.from_json(json.loads(json.dumps(SCHEMA.to_json()))) == SCHEMA


def test_digest_covers_order_names_and_units_but_no_descriptions():
    described = replace(SCHEMA, columns=(replace(column("loads"), description="x"), *SCHEMA.columns[1:]))
    assert described.sha256 == SCHEMA.sha256
    for other in (
        replace(SCHEMA, version=4),
        replace(SCHEMA, columns=SCHEMA.columns[::-1]),
        replace(SCHEMA, columns=(column("loads", "bytes"), *SCHEMA.columns[1:])),
    ):
        assert other.sha256 != SCHEMA.sha256


def test_positions_pick_a_subset_in_its_own_order():
    assert SCHEMA.positions_of(Schema(3, (column("share", "share"), column("loads")))) == (2, 0)
    assert SCHEMA.positions_of(SCHEMA) == (0, 1, 2)
    assert SCHEMA.subset(["share", "loads"]).names == ("loads", "share")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Schema(2, SCHEMA.columns), "schema version 2 is wanted, but features have version 3"),
        (Schema(3, (column("store"),)), r"feature 'store' is missing; did you mean 'stores'\?"),
        (Schema(3, (column("loads", "bytes"),)), "feature 'loads' is float64 in count; wanted float64 in bytes"),
    ],
)
def test_mismatches_are_refused(wanted, message):
    with pytest.raises(SchemaError, match=message):
        SCHEMA.positions_of(wanted)


def test_unknown_subset_and_doubled_names():
    with pytest.raises(SchemaError, match="feature 'lods' is unknown; did you mean 'loads'"):
        SCHEMA.subset(["lods"])
    with pytest.raises(SchemaError, match="columns named twice: loads"):
        Schema(1, (column("loads"), column("loads")))


def changed(**values):
    return {**SCHEMA.to_json(), **values}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected a JSON object, got list"),
        (changed(extra=1), "unknown key 'extra'"),
        ({"version": 3, "columns": []}, "key 'sha256' is missing"),
        (changed(version="3"), "expected an integer 'version'"),
        (changed(columns=[]), "sha256 is .* changed by hand"),
        (changed(columns=[{"name": "a"}]), "schema column: key 'dtype' is missing"),
        (
            changed(columns=[{"name": 1, "dtype": "float64", "unit": "", "description": ""}]),
            "'name' is 1; expected a text",
        ),
        (changed(columns=[{"name": "a", "dtype": "int8", "unit": "", "description": ""}]), "expected 'float64'"),
    ],
)
def test_damaged_json(data, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_json(data)
