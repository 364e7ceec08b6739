"""The whole training on hand-made labels: what it must find, that it repeats, and what it writes."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from torch_pim.experiments.train.bundle_output import save_bundle
from torch_pim.experiments.train.card import card
from torch_pim.experiments.train.cv_report import by_pair, calibration_metrics, cross_validated, decisions, flat_metrics
from torch_pim.experiments.train.pipeline import draw_settings, train
from torch_pim.experiments.train.ranges import outside, ranges_of
from torch_pim.experiments.train.settings import TrainingError, TrainingSettings, TreeSettings
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.inputs import MODEL_SCHEMA

TREES = TreeSettings(trees=20, depth=4)
SETTINGS = TrainingSettings(folds=3, classifier=TREES, residual=TREES)


@pytest.fixture(scope="module")
def trained(labels):
    return train(labels, SETTINGS)


def test_constants_of_the_times_are_found(trained, true_constants):
    for name, value in trained.models.constants.to_json().items():
        if name != "profile_weight":
            assert value == pytest.approx(getattr(true_constants, name), rel=0.15), name


def test_unseen_machines_are_kept_out_and_evaluated(trained):
    labels = trained.labels
    for (_, h, d), used in zip(trained.index, trained.training_rows, strict=True):
        assert used == (labels.hosts[h].cores != 16 and labels.devices[d].cores != 64)
    assert {entry.machines for entry in cross_validated(trained)} == {"seen", "unseen"}
    pairs = {(p.host, p.device): p.machines for p in by_pair(trained)}
    assert pairs["cpu-8c", "ndp-hmc-32"] == "seen"
    assert pairs["cpu-8c", "ndp-hmc-64"] == pairs["cpu-16c", "ndp-hmc-32"] == "unseen"


def test_the_learned_policy_beats_both_constant_ones(trained):
    found = {(e.policy, e.setting, e.machines): e.metrics for e in cross_validated(trained)}
    for setting in ("profiled", "static"):
        for machines in ("seen", "unseen"):
            learned = found["learned", setting, machines]
            assert learned.decisive_balanced_accuracy > 0.95
            assert learned.regret < 0.02
            assert learned.worst_slowdown < 1.3
            for fixed in ("host", "pim"):
                assert learned.regret < 0.1 * found[fixed, setting, machines].regret
                assert found[fixed, setting, machines].decisive_balanced_accuracy == 0.5
    for calibration in calibration_metrics(trained):
        assert calibration.brier_score < 0.1
        assert calibration.expected_error < 0.1


def test_every_row_is_predicted_out_of_fold(trained):
    out = trained.out_of_fold
    for values in (*out.margins.values(), *out.logistic_margins.values(), out.mixed_margins, out.host_correction):
        assert np.isfinite(values).all()


def test_rows_outside_of_the_training_ranges_fall_to_the_cost_model(trained):
    abstained = trained.out_of_fold.abstained
    host, device = trained.out_of_fold.cost_model_ns["static"]
    learned = decisions(trained, "static")["learned"]
    assert 0 < abstained.mean() < 0.5
    assert np.array_equal(learned[abstained], (device < host)[abstained])
    assert 0 <= flat_metrics(trained)["learned.seen.abstention"] < 0.5


def test_ranges_are_the_compilers(trained):
    ranges = ranges_of(trained.used_features)
    assert not outside(trained.used_features, ranges).any()
    larger = trained.used_features[:1].copy()
    larger[0, MODEL_SCHEMA.names.index("log_iterations")] += 20.0
    assert outside(larger, ranges).all()


def test_settings_of_rows_are_drawn_in_the_asked_shares():
    drawn = draw_settings(20_000, replace(SETTINGS, masked_share=0.5, wall_share=0.2))
    assert [float((drawn == i).mean()) for i in range(3)] == pytest.approx([0.3, 0.2, 0.5], abs=0.02)
    assert (draw_settings(100, replace(SETTINGS, masked_share=1.0, wall_share=0.0)) == 2).all()


def test_same_labels_same_bundle(trained, labels, tmp_path):
    first = save_bundle(trained, tmp_path / "a")
    second = save_bundle(train(labels, SETTINGS), tmp_path / "b")
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_bundle_decides_what_was_trained(trained, tmp_path):
    bundle = Bundle.load(save_bundle(trained, tmp_path / "bundle"))
    manifest = bundle.manifest
    assert manifest.dataset_digest == trained.labels.content
    assert manifest.cost_constants == trained.models.constants
    assert manifest.schema == MODEL_SCHEMA
    assert manifest.threshold == trained.threshold
    assert set(manifest.profile_origins) == {"simulated", "wall", "none"}
    assert {"host_log_cores", "device_log_cores", "log_iterations"} <= {r.column for r in manifest.ranges}
    scores = np.array(bundle.scores(trained.used_features.tolist()))
    wins = (trained.device_ns < trained.host_ns)[trained.training_rows]
    assert ((scores >= manifest.threshold) == wins).mean() > 0.97
    assert (bundle.host_residual is None) == (trained.host_gate == 0)
    assert (bundle.device_residual is None) == (trained.device_gate == 0)


def test_logistic_bundle(trained, tmp_path):
    bundle = Bundle.load(save_bundle(trained, tmp_path / "bundle", kind="logistic"))
    rows = trained.used_features[:5]
    assert np.array_equal(
        bundle.classifier.margins(bundle.select(rows.tolist())), trained.models.logistic.margins(rows)
    )


def test_card_names_data_machines_and_limits(trained, tmp_path):
    text = (save_bundle(trained, tmp_path / "bundle") / "card.md").read_text()
    assert text == card(trained, Bundle.load(tmp_path / "bundle").manifest)
    for part in ("hand-made", "51 unique nests", "gemm 6", "cpu-16c", "unseen", "modelled by the emulator", "abstains"):
        assert part in text


def test_metrics_are_finite_numbers_with_plain_names(trained):
    flat = flat_metrics(trained)
    assert all(math.isfinite(value) for value in flat.values())
    assert "learned.static.unseen.regret" in flat
    assert json.loads(json.dumps(flat)) == flat


def test_too_little_to_learn_from(labels, label_factory):
    with pytest.raises(TrainingError, match="no machine is left"):
        train(labels, replace(SETTINGS, unseen_device_cores=tuple({d.cores for d in labels.devices})))
    one_sided = replace(labels, device_ns=np.full_like(labels.device_ns, 1.0))
    with pytest.raises(TrainingError, match="same label"):
        train(one_sided, SETTINGS)
    few = label_factory([("one", labelled.nest) for labelled in labels.nests[:9]])
    with pytest.raises(ValueError, match="1 groups for 3 folds"):
        train(few, SETTINGS)
