from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torch_pim.compiler_hook import registry
from torch_pim.compiler_hook.errors import OptionError, RegistryError
from torch_pim.compiler_hook.protocols import Device
from torch_pim.compiler_hook.registry import Provider, Registry
from torch_pim.features.specs import device_presets, load_device

EXAMPLE_MODULE = "torch_pim_example"


@pytest.fixture
def with_plugin(installed_plugin: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(installed_plugin)
    monkeypatch.delitem(sys.modules, EXAMPLE_MODULE, raising=False)
    return installed_plugin


def add_distribution(folder: Path, name: str, entry_points: str) -> None:
    """The part of an installed distribution that entry points are read from."""
    info = folder / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(entry_points)


def test_a_plugin_is_listed_without_being_imported(with_plugin: Path) -> None:
    assert "example-device" in registry.devices.names()
    assert registry.devices.provider("example-device").distribution == "torch-pim-example 1.2.3"
    assert EXAMPLE_MODULE not in sys.modules


def test_a_plugin_is_imported_on_use(with_plugin: Path) -> None:
    spec = load_device("ndp-hmc-64")
    device = registry.devices.load("example-device")(spec)
    assert isinstance(device, Device)
    assert device.spec is spec
    assert Path(sys.modules[EXAMPLE_MODULE].__file__ or "").parent == with_plugin


def test_nothing_is_left_when_the_plugin_goes() -> None:
    assert "example-device" not in registry.devices.names()


def test_plugin_policies_stand_beside_the_built_in_ones(with_plugin: Path) -> None:
    built_in = {"learned", "learned+residency", "analytic", "cost-model", "host", "pim", "random"}
    assert built_in | {"example-policy"} == set(registry.policies.names())
    assert (
        registry.policies.load("example-policy")(bundle=None, seed=7, on_model_error="error").fingerprint(None)
        == "example-policy 1.2.3 7"
    )


@pytest.mark.parametrize("name", ["host", "pim", "random", "analytic"])
def test_built_in_policies_load_without_entry_points(name: str) -> None:
    policy = registry.policies.load(name)(bundle=None, seed=1, on_model_error="error")
    assert callable(policy.place)
    assert callable(policy.fingerprint)


def test_two_providers_of_one_name_are_an_error_that_names_both(
    with_plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_distribution(tmp_path, "other-pim", "[torch_pim.devices]\nexample-device = other_pim:Device\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.devices.names().count("example-device") == 1
    with pytest.raises(RegistryError) as caught:
        registry.devices.load("example-device")
    message = str(caught.value)
    assert "torch_pim_example:ExampleDevice of torch-pim-example 1.2.3" in message
    assert "other_pim:Device of other-pim 0.1" in message
    assert "uninstall one of them" in message
    # The other names go on working.
    assert "ndp-hmc-64" in registry.devices.names()


def test_a_plugin_cannot_take_the_name_of_a_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_distribution(tmp_path, "taker", "[torch_pim.commands]\ndoctor = taker:COMMAND\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RegistryError, match=r"claimed by taker:COMMAND of taker 0\.1 and by .*:COMMAND of torch-pim"):
        registry.commands.load("doctor")


def test_the_same_distribution_found_twice_is_no_clash(
    with_plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As when a wheel lies beside an editable install: the first on the path counts, as it does for imports.
    add_distribution(tmp_path, "torch-pim-example", "[torch_pim.devices]\nexample-device = elsewhere:Device\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.devices.provider("example-device").target == "elsewhere:Device"


def test_an_unknown_name_is_refused_with_the_closest_one() -> None:
    with pytest.raises(OptionError, match=r"unknown device 'ndp-hmc-46'\. Did you mean 'ndp-hmc-64'\?"):
        registry.devices.load("ndp-hmc-46")


def test_an_unknown_name_in_a_bare_checkout_says_that_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "DISTRIBUTION", "torch-pim-that-nobody-installed")
    with pytest.raises(OptionError, match=r"not installed.*pip install -e \."):
        Registry[object]("device", "torch_pim.no-such-group").load("x")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import a_module_that_is_nowhere", "No module named 'a_module_that_is_nowhere'"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("x = (", "SyntaxError"),
        ("", "AttributeError"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_named(
    source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_distribution(tmp_path, "broken-pim", "[torch_pim.profilers]\nbroken = broken_pim:Profiler\n")
    (tmp_path / "broken_pim.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_pim", raising=False)
    assert "broken" in registry.profilers.names()
    with pytest.raises(RegistryError, match=r"profiler 'broken' \(broken_pim:Profiler of broken-pim 0\.1\)") as caught:
        registry.profilers.load("broken")
    assert reason in str(caught.value)


def test_names_are_sorted_and_unique() -> None:
    def providers() -> list[Provider]:
        return [Provider(name, "m:a", "d", dict) for name in ("b", "a", "b")]

    assert Registry[object]("thing", "torch_pim.no-such-group", providers).names() == ("a", "b")


def test_every_device_preset_has_its_own_entry_point() -> None:
    assert set(device_presets()) <= set(registry.devices.names())


def test_a_device_is_chosen_by_the_name_of_its_specification(with_plugin: Path) -> None:
    spec = replace(load_device("ndp-hmc-64"), name="example-device")
    device = registry.create_device(spec)
    assert type(device).__name__ == "ExampleDevice"
    assert device.spec is spec


def test_a_specification_that_nobody_registered_is_emulated() -> None:
    spec = replace(load_device("ndp-hmc-64"), name="a-device-of-my-own")
    device = registry.create_device(spec)
    assert isinstance(device, Device)
    assert type(device) is type(registry.devices.load("ndp-hmc-64")(spec))
    assert device.spec is spec
