"""The label file that is checked in: real nests with emulated times, trained in seconds, with a golden result."""

import json
from pathlib import Path

import numpy as np
import pytest

from torch_pim.compiler_hook.cli.main import main
from torch_pim.experiments.label.parquet import read_labels
from torch_pim.experiments.train.bundle_output import save_bundle
from torch_pim.experiments.train.cv_report import cross_validated
from torch_pim.experiments.train.pipeline import train
from torch_pim.experiments.train.settings import TrainingSettings, TreeSettings
from torch_pim.models.learned.bundle import Bundle

PATH = Path(__file__).parent.parent / "fixtures" / "labels-small.parquet"
TREES = TreeSettings(trees=20, depth=4)


@pytest.fixture(scope="module")
def small():
    return read_labels(PATH)


@pytest.fixture(scope="module")
def trained(small):
    return train(small, TrainingSettings(folds=3, classifier=TREES, residual=TREES))


def test_it_is_a_slice_of_the_corpus(small):
    assert small.header.corpus == "nests-v0 every 15"
    assert len(small.nests) >= 60
    assert len({nest.group for nest in small.nests}) >= 15
    wins = small.device_ns[:, 0] < small.host_ns[:, 0]
    assert 0.2 < wins.mean() < 0.8


def test_held_out_models_are_not_in_it(small):
    assert "llama-7b decode 2048" in small.header.held_out
    assert not [nest.source for nest in small.nests if "llama" in nest.source or "gptj" in nest.source]


def test_scores_and_constants_are_the_golden_ones(trained, tmp_path, golden):
    """To two decimals, which no platform or version of a library should move; `--update-golden` accepts new ones."""
    bundle = Bundle.load(save_bundle(trained, tmp_path / "bundle"))
    scores = np.array(bundle.scores(trained.used_features.tolist()))
    nests = [
        trained.labels.nests[n].source
        for (n, _, _), used in zip(trained.index, trained.training_rows, strict=True)
        if used
    ]
    lines = [f"{name:<24} {value:.2f}" for name, value in bundle.manifest.cost_constants.to_json().items()]
    lines += [f"{name:<40} {score:.2f}" for name, score in list(zip(nests, scores, strict=True))[:40]]
    golden("experiments/small_training.txt", "\n".join(lines))


def test_unseen_kernels_are_placed_better_than_by_either_constant_policy(trained):
    found = {(e.policy, e.setting, e.machines): e.metrics for e in cross_validated(trained)}
    for setting in ("profiled", "static"):
        for machines in ("seen", "unseen"):
            regret = found["learned", setting, machines].regret
            assert regret < 0.5 * min(found[fixed, setting, machines].regret for fixed in ("host", "pim"))


def test_command(tmp_path, capsys):
    arguments = [
        "train",
        str(PATH),
        "--output",
        str(tmp_path / "bundle"),
        "--no-tracking",
        "--trees",
        "5",
        "--folds",
        "3",
    ]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["mlflow_run_id"] == ""
    assert "learned.static.seen.regret" in result["metrics"]
    first = (tmp_path / "bundle" / "manifest.json").read_bytes()
    assert main(arguments) == 0
    assert "## Training data" in capsys.readouterr().out
    assert (tmp_path / "bundle" / "manifest.json").read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.parquet"], "make one with torch-pim label"),
        ([str(PATH), "--folds", "1", "--no-tracking"], "folds is 1: expected at least 2"),
        ([str(PATH), "--folds", "99", "--no-tracking"], "for 99 folds"),
        ([str(PATH), "--model-version", "one", "--no-tracking", "--trees", "2"], "expected three numbers"),
    ],
)
def test_command_errors_name_the_mend(arguments, message, tmp_path, capsys):
    assert main(["train", *arguments, "--output", str(tmp_path / "bundle")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()
