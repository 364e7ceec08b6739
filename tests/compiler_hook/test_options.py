from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.compiler_hook.options import _EXPECTED, CompileOptions
from torch_pim.features.specs import device_presets, host_presets


def test_defaults() -> None:
    options = CompileOptions.from_mapping({})
    assert options == CompileOptions("ndp-hmc-64", "cpu-8c", "learned", None, "fallback", None, 0, None)
    assert options.device in device_presets()
    assert options.host in host_presets()


def test_every_field_is_checked() -> None:
    assert set(_EXPECTED) == {field.name for field in fields(CompileOptions)}


def test_paths_may_be_text_or_paths() -> None:
    text = CompileOptions.from_mapping({"device": "my/pim.toml", "bundle": "a/b", "profile": "p.json"})
    paths = {"device": Path("my/pim.toml"), "bundle": Path("a/b"), "profile": Path("p.json")}
    assert text == CompileOptions.from_mapping(paths)
    assert text.device == "my/pim.toml"
    assert text.bundle == Path("a/b")


def test_equal_options_hash_equal_and_different_ones_compare_different() -> None:
    one = CompileOptions.from_mapping({"seed": 3, "policy": "analytic"})
    assert len({one, CompileOptions(policy="analytic", seed=3)}) == 1
    assert one != CompileOptions(policy="analytic", seed=4)


def test_options_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        CompileOptions().seed = 1


def test_an_unknown_key_is_refused_with_the_closest_one() -> None:
    with pytest.raises(OptionError, match=r"unknown option 'polcy'\. Did you mean 'policy'\?"):
        CompileOptions.from_mapping({"polcy": "learned"})


def test_an_unknown_key_like_no_other_lists_all() -> None:
    with pytest.raises(OptionError, match=r"unknown option 'zzz'\. Known: bundle, device, host, .*threads\."):
        CompileOptions.from_mapping({"zzz": 1})


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("device", 64, "device preset or the path"),
        ("device", "", "device preset or the path"),
        ("host", None, "host preset or the path"),
        ("policy", ["learned"], "name of a policy"),
        ("bundle", 1, "path of a model bundle"),
        ("bundle", "", "path of a model bundle"),
        ("profile", True, "file of host profiles"),
        ("on_model_error", "ignore", "'fallback' or 'error'"),
        ("seed", -1, "integer of at least 0"),
        ("seed", 1.0, "integer of at least 0"),
        ("seed", True, "integer of at least 0"),
        ("seed", "0", "integer of at least 0"),
        ("threads", 0, "integer of at least 1"),
        ("threads", False, "integer of at least 1"),
    ],
)
def test_a_wrong_value_says_what_was_expected_and_what_came(key: str, value: Any, expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        CompileOptions.from_mapping({key: value})
    assert expected in str(caught.value)
    assert f"option {key!r}" in str(caught.value)
    assert repr(value) in str(caught.value)


def test_direct_construction_is_checked_too() -> None:
    with pytest.raises(OptionError, match="option 'threads'"):
        CompileOptions(threads=0)


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.floats() | st.text(), max_size=4))
def test_any_mapping_gives_options_or_an_option_error(mapping: dict[str, Any]) -> None:
    try:
        options = CompileOptions.from_mapping(mapping)
    except OptionError:
        return
    assert hash(options) == hash(CompileOptions.from_mapping(mapping))


@given(
    seed=st.integers(min_value=0),
    threads=st.none() | st.integers(min_value=1),
    error=st.sampled_from(["fallback", "error"]),
)
def test_valid_values_are_kept_as_they_are(seed: int, threads: int | None, error: str) -> None:
    options = CompileOptions.from_mapping({"seed": seed, "threads": threads, "on_model_error": error})
    assert (options.seed, options.threads, options.on_model_error) == (seed, threads, error)
