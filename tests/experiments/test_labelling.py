"""From corpus entries to labels: deduplication, hold-out, checks against PyTorch, timing, and the command."""

import io
import json
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from torch_pim.compiler_hook.cli.main import main
from torch_pim.compiler_hook.errors import CodegenError, LoweringError
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest, NestFunction
from torch_pim.experiments.corpus.corpora import Corpus, get_corpus
from torch_pim.experiments.corpus.entry import ArgumentSpec, CorpusEntry
from torch_pim.experiments.corpus.held_out import HeldOut
from torch_pim.experiments.label import held_out_models, lowering_cache
from torch_pim.experiments.label.exclusions import count_causes, exclusions_path, write_exclusions
from torch_pim.experiments.label.functional_check import check_entry, is_small
from torch_pim.experiments.label.held_out_models import EVALUATED_RUNS, ModelRun, held_out_nests
from torch_pim.experiments.label.lowering_cache import LoweringCache
from torch_pim.experiments.label.machines import LabelMachines, label_machines
from torch_pim.experiments.label.parquet import read_labels
from torch_pim.experiments.label.progress import ProgressLine, duration
from torch_pim.experiments.label.run import LabelSettings, run_labelling
from torch_pim.experiments.label.timing import BATCH, time_nests
from torch_pim.experiments.label.unique_nests import Exclusion, UniqueNest, lower_entry, unique_nests
from torch_pim.features.profile import HostProfile
from torch_pim.pim_emulator.device import EmulatedDevice
from torch_pim.pim_emulator.profiler import SimulatedProfiler
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

NOTHING_HELD_OUT = HeldOut(frozenset(), frozenset())


def entry(name, function, *shapes, family="f"):
    return CorpusEntry(name, family, "g", function, tuple(ArgumentSpec(shape) for shape in shapes))


def concrete(nest):
    return ConcreteNest(NestFunction(nest.code_hash, "", (), nest), nest, ())


@dataclass
class FixedTime:
    total_ns: float
    components: dict = field(default_factory=dict)


class FixedTiming:
    """Times by code hash; an exception instead of a time is raised."""

    version = "fixed"

    def __init__(self, times=None):
        self.times = times or {}
        self.calls = 0

    def host_times(self, nests, host):
        self.calls += 1
        found = [self.times.get(nest.function.code_hash, 1000.0) for nest in nests]
        for value in found:
            if isinstance(value, Exception):
                raise value
        return [FixedTime(value * host.cores) for value in found]

    def device_times(self, nests, device):
        return [FixedTime(500.0) for _ in nests]


class NoProfiler:
    def __init__(self, host):
        self.host = host

    def profile(self, nests):
        return tuple(HostProfile(n.function.code_hash, self.host.identity, "simulated") for n in nests)


@pytest.fixture(scope="module")
def machines():
    return label_machines(("cpu-1c", "cpu-8c"), ("ndp-hmc-32",), random_pairs=1)


@pytest.fixture(scope="module")
def device(machines):
    return EmulatedDevice(machines.devices[0])


class TestUniqueNests:
    def test_equal_nests_are_found_once_and_keep_their_first_source(self, labels):
        nests = [labelled.nest for labelled in labels.nests[:3]]
        lowered = {"a": nests[:2], "b": nests[1:]}
        entries = [entry("a", torch.relu), entry("b", torch.relu)]
        found = unique_nests(entries, NOTHING_HELD_OUT, lambda e: tuple(map(concrete, lowered[e.name])))
        assert len(found.nests) == 3
        assert [n.identity for n in found.nests] == sorted(n.identity for n in found.nests)
        assert {n.concrete.loop_nest.name: n.source for n in found.nests} == {
            nests[0].name: "a",
            nests[1].name: "a",
            nests[2].name: "b",
        }

    def test_everything_left_out_has_a_cause(self, labels):
        kept, held, sequential = (labelled.nest for labelled in labels.nests[:3])
        sequential = replace(sequential, partitionable=False)

        def lower(e):
            if e.name == "broken":
                raise LoweringError("no rule for this\nlong explanation")
            return tuple(map(concrete, (kept, held, sequential)))

        entries = [entry("broken", torch.relu), entry("fine", torch.relu)]
        found = unique_nests(entries, HeldOut.of([held]), lower)
        assert [n.concrete.loop_nest for n in found.nests] == [kept]
        assert [(x.source, x.cause) for x in found.exclusions] == [
            ("broken", "lowering"),
            ("fine", "held out"),
            ("fine", "not partitionable"),
        ]
        assert found.exclusions[0].message == "LoweringError: no rule for this"

    def test_an_unexpected_error_is_not_hidden(self):
        def lower(e):
            raise TypeError("a bug")

        with pytest.raises(TypeError, match="a bug"):
            unique_nests([entry("x", torch.relu)], NOTHING_HELD_OUT, lower)

    def test_real_lowering(self):
        entries = [
            entry("add", torch.add, (24, 40), (24, 40)),
            entry("again", torch.add, (24, 40), (24, 40)),
            entry("product", torch.mm, (24, 40), (40, 24)),
        ]
        found = unique_nests(entries, NOTHING_HELD_OUT)
        assert sorted(n.source for n in found.nests) == ["add", "product"]
        extents = {n.source: sorted(loop.trip for loop in n.concrete.loop_nest.loops) for n in found.nests}
        assert extents == {"add": [24, 40], "product": [24, 24, 40]}


class TestHeldOutModels:
    def test_runs_are_the_documented_ones(self):
        assert [run.name for run in EVALUATED_RUNS] == [
            "llama-7b prefill 128",
            "llama-7b prefill 2048",
            "llama-7b decode 2048",
            "gptj-6b prefill 128",
            "gptj-6b prefill 2048",
            "gptj-6b decode 2048",
        ]

    def test_no_kept_nest_has_the_shape_of_a_held_out_one(self, monkeypatch):
        """With a small LLaMA held out: its own projection is dropped, a neighbour in size is kept."""
        run = ModelRun("llama-small", (("phase", "prefill"), ("sequence", 12)))
        monkeypatch.setattr(held_out_models, "EVALUATED_RUNS", (run,))
        held = held_out_nests()
        assert len(held.feature_hashes) > 10
        entries = [
            entry("down projection", torch.nn.functional.linear, (12, 176), (64, 176)),
            entry("neighbour", torch.nn.functional.linear, (13, 176), (64, 176)),
            entry("other operation, same extents", lambda x: torch.tanh(x), (12, 64)),
        ]
        found = unique_nests(entries, held)
        assert [n.source for n in found.nests] == ["neighbour"]
        assert {x.source for x in found.exclusions} == {"down projection", "other operation, same extents"}
        for nest in found.nests:
            assert held.reason(nest.concrete.loop_nest) is None


class TestFunctionalCheck:
    def test_correct_code_passes_on_both_sides(self, device):
        result = check_entry(entry("softmax", lambda x: torch.softmax(x, -1), (9, 33)), device)
        assert result.passed
        assert result.error < 1e-5

    def test_wrong_results_are_seen(self, device):
        class Lazy(EmulatedDevice):
            def run(self, kernel, iterations):
                return super().run(kernel, iterations // 2)

        result = check_entry(entry("add", torch.add, (64,), (64,)), Lazy(device.spec))
        assert not result.passed

    def test_only_small_entries_are_executed(self):
        assert is_small(entry("small", torch.relu, (16,)))
        assert not is_small(entry("large", torch.relu, (1 << 20,)))
        networks = [e for e in get_corpus("nests-v0").entries if e.group == "network"]
        assert networks
        assert not any(map(is_small, networks))


class TestTiming:
    def nests(self, labels, count):
        chosen = labels.nests[:count]
        return [UniqueNest(concrete(n.nest), n.source, n.family, n.group) for n in chosen]

    def test_times_of_all_machines_in_order(self, labels, machines):
        seen = []
        nests = self.nests(labels, BATCH + 3)
        timed, exclusions = time_nests(nests, machines, FixedTiming(), NoProfiler, lambda *p: seen.append(p))
        assert [t.nest for t in timed] == nests
        assert not exclusions
        assert timed[0].host_ns == tuple(1000.0 * host.cores for host in machines.hosts)
        assert timed[0].device_ns == (500.0, 500.0)
        assert [p.host_id for p in timed[0].profiles] == [host.identity for host in machines.hosts]
        assert seen == [(BATCH, BATCH + 3), (BATCH + 3, BATCH + 3)]

    @pytest.mark.parametrize("bad", [CodegenError("cannot trace\nmore"), float("nan"), 0.0, -3.0])
    def test_one_bad_nest_does_not_take_its_batch_along(self, labels, machines, bad):
        nests = self.nests(labels, 5)
        timing = FixedTiming({nests[2].concrete.function.code_hash: bad})
        timed, exclusions = time_nests(nests, machines, timing, NoProfiler)
        assert [t.nest for t in timed] == [*nests[:2], *nests[3:]]
        assert [(x.nest, x.cause) for x in exclusions] == [(nests[2].identity, "timing")]

    def test_a_bug_is_raised(self, labels, machines):
        nests = self.nests(labels, 2)
        timing = FixedTiming({nests[0].concrete.function.code_hash: TypeError("a bug")})
        with pytest.raises(TypeError, match="a bug"):
            time_nests(nests, machines, timing, NoProfiler)


class TestRun:
    def corpus(self):
        return Corpus(
            "tiny",
            lambda: (
                entry("add/1", torch.add, (300, 40), (300, 40), family="add"),
                entry("product/1", torch.mm, (40, 64), (64, 30), family="product"),
                entry("sum/1", lambda x: x.sum(-1), (50, 70), family="sum"),
            ),
        )

    def run(self, machines, device, settings):
        timing = EmulatorTimingModel(trace_budget=settings.trace_budget, seed=settings.seed)
        return run_labelling(
            self.corpus(),
            NOTHING_HELD_OUT,
            "nothing",
            machines,
            timing,
            lambda host: SimulatedProfiler(host, settings.seed, settings.profile_noise, timing),
            device,
            settings,
        )

    def test_labels_of_the_emulator_repeat(self, machines, device):
        settings = LabelSettings(trace_budget=50_000)
        run = self.run(machines, device, settings)
        assert run.checked_entries == 3
        assert not run.exclusions
        labels = run.labels
        assert {n.source for n in labels.nests} == {"add/1", "product/1", "sum/1"}
        assert labels.header.emulator_version == EmulatorTimingModel.version
        assert self.run(machines, device, settings).labels.content == labels.content
        # A profile is a noisy measurement of the labelled time, not the label itself.
        walls = np.array([[p.wall_time_ns for p in line] for line in labels.profiles])
        assert (walls != labels.host_ns).all()
        assert np.abs(np.log(walls / labels.host_ns)).max() < 0.25
        # One core is no faster than eight.
        names = [host.name for host in labels.hosts]
        assert (labels.host_ns[:, names.index("cpu-1c")] >= labels.host_ns[:, names.index("cpu-8c")]).all()

    def test_a_family_with_wrong_results_gets_no_label(self, machines, device, monkeypatch):
        class Lazy(EmulatedDevice):
            def run(self, kernel, iterations):
                return super().run(kernel, iterations // 2 if iterations == 12_000 else iterations)

        run = self.run(machines, Lazy(device.spec), LabelSettings(trace_budget=50_000))
        assert [(x.source, x.cause) for x in run.exclusions] == [("add/1", "wrong result")]
        assert {n.family for n in run.labels.nests} == {"product", "sum"}


@pytest.mark.slow
def test_command_writes_labels_and_exclusions(tmp_path, monkeypatch, capsys):
    run = ModelRun("llama-small", (("phase", "decode"), ("context", 12)))
    monkeypatch.setattr(held_out_models, "EVALUATED_RUNS", (run,))
    output = tmp_path / "labels.parquet"
    arguments = ["label", "--output", str(output), "--every", "150", "--random-machines", "1", "--json"]
    arguments += ["--host", "cpu-8c", "--device", "ndp-hmc-32,ndp-hmc-64", "--trace-budget", "20000"]
    assert main(arguments) == 0
    summary = json.loads(capsys.readouterr().out)
    labels = read_labels(output)
    assert summary["content"] == labels.content
    assert summary["nests"] == len(labels.nests) > 3
    assert summary["rows"] == 3 * len(labels.nests)
    assert labels.header.corpus == "nests-v0 every 150"
    assert labels.header.trace_budget == 20_000
    lines = exclusions_path(output).read_text().splitlines()
    assert sum(summary["excluded"].values()) == len(lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "labels.csv"], "ending in .parquet"),
        (["--output", "l.parquet", "--every", "0"], "expected at least 1"),
        (["--output", "l.parquet", "--corpus", "nest-v0"], "did you mean 'nests-v0'"),
        (["--output", "l.parquet", "--host", "cpu-8d"], "did you mean 'cpu-8c'"),
    ],
)
def test_command_errors_name_the_mend(arguments, message, capsys):
    assert main(["label", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_exclusions_are_lines_of_json(tmp_path):
    exclusions = [
        Exclusion("a", "", "lowering", "x"),
        Exclusion("b", "n", "timing", "y"),
        Exclusion("c", "", "lowering", ""),
    ]
    path = exclusions_path(tmp_path / "deep" / "labels.parquet")
    assert path.name == "labels.excluded.jsonl"
    write_exclusions(exclusions, path)
    assert [json.loads(line)["source"] for line in path.read_text().splitlines()] == ["a", "b", "c"]
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert count_causes(exclusions) == {"lowering": 2, "timing": 1}


class TestProgress:
    def test_a_line_per_tenth_and_the_time_left(self):
        now = [0.0]
        stream = io.StringIO()
        line = ProgressLine(stream, clock=lambda: now[0])
        for done in range(1, 101):
            now[0] += 2.0
            line("timing", done, 100)
        lines = stream.getvalue().splitlines()
        assert lines[0] == "timing: 1 of 100, 0 s left"
        assert lines[5] == "timing: 50 of 100, 98 s left".replace("98 s", "2 min")
        assert lines[-1] == "timing: 100 of 100"
        assert len(lines) == 11

    def test_one_line_on_a_terminal(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        stream = Terminal()
        line = ProgressLine(stream, clock=lambda: 0.0)
        line("a", 1, 2)
        line("a", 2, 2)
        assert stream.getvalue() == "\r\x1b[Ka: 1 of 2, 0 s left\r\x1b[Ka: 2 of 2\n"

    def test_durations(self):
        assert [duration(s) for s in (5, 89.6, 120, 5400, 7260)] == ["5 s", "90 s", "2 min", "1 h 30 min", "2 h 1 min"]


def test_machines_without_pairs_are_possible():
    assert LabelMachines((), (), ()).pairs == label_machines((), (), random_pairs=0).pairs == ()
    assert lower_entry(entry("relu", torch.relu, (10,)))[0].loop_nest.parallel_trip == 10


class TestLoweringCache:
    def test_second_lowering_reads_the_file(self, tmp_path, monkeypatch):
        made = entry("softmax", lambda x: torch.softmax(x, -1), (9, 33))
        cache = LoweringCache(tmp_path / "lowered")
        first = cache.lower(made)
        monkeypatch.setattr(lowering_cache, "lower_entry", None)
        assert cache.lower(made) == first
        assert len(list((tmp_path / "lowered").iterdir())) == 1

    def test_damaged_and_foreign_files_are_made_again(self, tmp_path, monkeypatch):
        made = entry("relu", torch.relu, (40,))
        cache = LoweringCache(tmp_path)
        first = cache.lower(made)
        (path,) = tmp_path.iterdir()
        content = path.read_text()
        for damaged in ("", "[1]", "{}", content.replace("code_hash", "code_hush")):
            path.write_text(damaged)
            assert cache.lower(made) == first
            assert path.read_text() == content

    def test_key_sees_entry_and_code(self, tmp_path, monkeypatch):
        cache = LoweringCache(tmp_path)
        cache.lower(entry("relu", torch.relu, (40,)))
        cache.lower(entry("relu", torch.relu, (41,)))
        monkeypatch.setattr(lowering_cache, "lowering_version", lambda: "another")
        cache.lower(entry("relu", torch.relu, (40,)))
        assert len(list(tmp_path.iterdir())) == 3
