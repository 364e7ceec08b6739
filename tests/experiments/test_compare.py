"""The command `compare`: identities of its figures, its JSON, its tables, and bad input."""

import json
import math
import re

import pytest

from torch_pim.compiler_hook.cli.main import main
from torch_pim.experiments.commands.compare import POLICIES
from torch_pim.experiments.comparison.render import number, time_unit
from torch_pim.features.profile import HostProfile
from torch_pim.features.profile_io import write_profiles
from torch_pim.features.specs import load_device, load_host
from torch_pim.models.testing import make_tiny_bundle
from torch_pim.pim_emulator.version import EMULATOR_VERSION

SMALL = ("mlp", "--set", "hidden=512", "--layers", "2")
RESULT_KEYS = {
    "time_ns", "speedup_over_host", "placed_on_pim", "switches", "execution_ns", "transition_ns", "flush_ns",
    "switch_ns", "nest_regret", "plan_regret",
}  # fmt: skip


def compare(capsys, *arguments):
    """Exit code, stdout and stderr of one call."""
    code = main(["compare", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return str(make_tiny_bundle(tmp_path_factory.mktemp("bundle") / "tiny"))


@pytest.fixture(scope="module")
def decode(tmp_path_factory, bundle):
    """The JSON of one comparison with many calls, on two devices."""
    import contextlib
    import io

    out = io.StringIO()
    arguments = ["llama-small", "--phase", "decode", "--context", "2048", "--device", "ndp-hmc-32,ndp-hmc-64"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(["compare", *arguments, "--bundle", bundle, "--json"]) == 0
    return json.loads(out.getvalue())


class TestFigures:
    def test_every_pair_has_every_policy_under_both_flush_models(self, decode):
        seen = [(pair["host"], pair["device"], pair["profile"]) for pair in decode["pairs"]]
        assert seen == [
            ("cpu-8c", device, profile) for device in ("ndp-hmc-32", "ndp-hmc-64") for profile in ("simulated", "none")
        ]
        for pair in decode["pairs"]:
            assert set(pair["flush_models"]) == {"serial", "bandwidth"}
            assert pair["flush"] == "serial"
            assert pair["policies"] == pair["flush_models"]["serial"]
            for policies in pair["flush_models"].values():
                assert tuple(policies) == (*POLICIES, "oracle", "optimum")
                assert all(set(result) == RESULT_KEYS for result in policies.values())

    def test_identities_of_times_and_regrets(self, decode):
        for pair in decode["pairs"]:
            for policies in pair["flush_models"].values():
                host = policies["host"]
                assert policies["oracle"]["nest_regret"] == 0.0
                assert policies["optimum"]["plan_regret"] == 0.0
                assert (host["placed_on_pim"], host["switches"], host["transition_ns"]) == (0, 0, 0.0)
                assert host["speedup_over_host"] == 1.0
                for result in policies.values():
                    assert result["nest_regret"] >= 0.0
                    assert result["plan_regret"] >= 0.0
                    assert result["time_ns"] >= policies["optimum"]["time_ns"] * (1 - 1e-6)
                    assert result["time_ns"] == pytest.approx(result["execution_ns"] + result["transition_ns"])
                    assert result["transition_ns"] == pytest.approx(result["flush_ns"] + result["switch_ns"])
                    assert result["speedup_over_host"] == pytest.approx(host["time_ns"] / result["time_ns"])
                    switch_ns = load_device(pair["device"]).switch_ns
                    assert result["switch_ns"] == pytest.approx(result["switches"] * switch_ns)

    def test_plan_times_follow_from_the_nests(self, decode):
        for pair in decode["pairs"]:
            nests = pair["nests"]
            total = math.fsum(nest["calls"] * nest["host"]["total_ns"] for nest in nests)
            assert pair["policies"]["host"]["time_ns"] == pytest.approx(total)
            for name, result in pair["policies"].items():
                assert sum(nest["decisions"][name]["pim"] for nest in nests) == result["placed_on_pim"]
                execution = math.fsum(
                    nest["decisions"][name]["pim"] * nest["device"]["total_ns"]
                    + nest["decisions"][name]["host"] * nest["host"]["total_ns"]
                    for nest in nests
                )
                assert result["execution_ns"] == pytest.approx(execution)

    def test_oracle_takes_the_faster_side_of_every_nest_that_is_free(self, decode):
        for pair in decode["pairs"]:
            for nest in pair["nests"]:
                faster = nest["refused"] is None and nest["device"]["total_ns"] < nest["host"]["total_ns"]
                assert nest["decisions"]["oracle"]["pim"] == (nest["calls"] if faster else 0)

    def test_what_cannot_run_on_pim_is_never_there(self, decode):
        refused = [nest for nest in decode["pairs"][0]["nests"] if nest["refused"] is not None]
        assert refused
        assert all(decision["pim"] == 0 for nest in refused for decision in nest["decisions"].values())

    def test_profiles_reach_the_policies_in_their_own_setting_only(self, decode):
        profiled, static = decode["pairs"][:2]
        assert profiled["profiled_nests"] == len(profiled["nests"])
        assert static["profiled_nests"] == 0
        assert profiled["fingerprints"]["learned"] != static["fingerprints"]["learned"]
        assert [nest["host"] for nest in profiled["nests"]] == [nest["host"] for nest in static["nests"]]


class TestJson:
    def test_names_everything_that_the_figures_depend_on(self, decode):
        assert decode["times"] == "modelled"
        assert decode["seed"] == 0
        assert set(decode["hosts"]) == {"cpu-8c"}
        assert set(decode["devices"]) == {"ndp-hmc-32", "ndp-hmc-64"}
        assert decode["hosts"]["cpu-8c"]["identity"] == load_host("cpu-8c").identity
        assert decode["devices"]["ndp-hmc-32"]["cores"] == 32
        assert "sources" in decode["devices"]["ndp-hmc-32"]
        assert decode["versions"]["emulator"] == EMULATOR_VERSION
        assert decode["bundle"]["name"] == "tiny"
        assert decode["model"]["title"] == "llama-small (decode, context 2048, layers 2, f32, batch 1)"
        assert decode["notes"] == []

    def test_nests_have_components_of_both_sides(self, decode):
        for nest in decode["pairs"][0]["nests"]:
            assert nest["calls"] >= 1
            assert re.fullmatch(r"[0-9a-f]{64}", nest["code_hash"])
            for side in ("host", "device"):
                assert nest[side]["total_ns"] > 0
                assert {"compute_ns", "bandwidth_ns", "launch_ns"} <= set(nest[side]["components"])

    def test_is_the_same_every_time(self, capsys, bundle):
        texts = []
        for _ in range(2):
            found = json.loads(compare(capsys, *SMALL, "--bundle", bundle, "--json")[1])
            del found["process"]
            texts.append(json.dumps(found))
        assert texts[0] == texts[1]


class TestText:
    def test_heading_names_machines_types_shapes_and_emulator(self, capsys, bundle):
        arguments = ("--policies", "learned,host", "--profile", "none", "--flush", "bandwidth", "--bundle", bundle)
        code, out, err = compare(capsys, *SMALL, *arguments)
        assert code == 0
        lines = out.splitlines()
        assert lines[0].startswith("mlp (batch 1, hidden 512, layers 2, f32): modelled time")
        assert "types f32; inputs f32[1,512]" in lines[1]
        assert "host cpu-8c, device ndp-hmc-64, profile none" in out
        assert f"flush bandwidth, emulator {EMULATOR_VERSION}; speedup is over all on cpu-8c" in out
        rows = [line.split()[0] for line in lines[-4:]]
        assert rows == ["learned", "host", "oracle", "optimum"]
        assert "lowering mlp" in err
        assert "done, " in err

    @pytest.mark.parametrize(
        ("time_ns", "unit"), [(0.0, "ns"), (999.0, "ns"), (1e3, "us"), (2.5e8, "ms"), (1e9, "s"), (1e13, "s")]
    )
    def test_units(self, time_ns, unit):
        assert time_unit(time_ns)[0] == unit

    @pytest.mark.parametrize(
        ("value", "text"), [(0.0, "0.000"), (1.23456, "1.235"), (12.3456, "12.35"), (243.61, "243.6"), (1146.2, "1146")]
    )
    def test_numbers(self, value, text):
        assert number(value) == text


class TestProfileFiles:
    def test_are_used_on_their_own_host(self, capsys, tmp_path, bundle):
        found = json.loads(compare(capsys, *SMALL, "--profile", "none", "--bundle", bundle, "--json")[1])
        hashes = [nest["code_hash"] for nest in found["pairs"][0]["nests"]]
        identity = load_host("cpu-8c").identity
        path = tmp_path / "profile.jsonl"
        write_profiles(path, [HostProfile(code, identity, "simulated", wall_time_ns=1e6) for code in hashes])
        arguments = ("--profile", str(path), "--bundle", bundle, "--json")
        pair = json.loads(compare(capsys, *SMALL, *arguments)[1])["pairs"][0]
        assert (pair["profile"], pair["profiled_nests"]) == (str(path), len(hashes))
        code, _, err = compare(capsys, *SMALL, *arguments, "--host", "cpu-16c")
        assert code == 2
        assert f"only of {identity}; make one with" in err


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--policies", "learned,analitic"), "Did you mean 'analytic'"),
            (("--policies", "oracle"), "unknown policy 'oracle'"),
            (("--device", "ndp-hmc-64,ndp-hmc-65"), "ndp-hmc-65"),
            (("--host", "cpu-9c"), "cpu-9c"),
            (("--profile", "simulate"), "profile 'simulate': expected simulated, none, or a file"),
            (("--phase", "decode"), "no option 'phase'"),
        ],
    )
    def test_name_the_thing_and_the_mend(self, capsys, bundle, arguments, message):
        code, out, err = compare(capsys, *SMALL, "--bundle", bundle, *arguments)
        assert (code, out) == (2, "")
        assert message in err

    @pytest.mark.parametrize(("text", "message"), [("a,,b", "separated by commas"), ("a,b,a", "'a' stands twice")])
    def test_lists(self, capsys, text, message):
        with pytest.raises(SystemExit):
            main(["compare", "mlp", "--policies", text])
        assert message in capsys.readouterr().err
