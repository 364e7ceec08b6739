"""The model card: what a bundle was trained on, how good it is, and where not to use it (Mitchell et al., 2019)."""

from __future__ import annotations

from collections import Counter

from torch_pim.experiments.train.boosting import importance
from torch_pim.experiments.train.cv_report import by_pair, calibration_metrics, cross_validated
from torch_pim.experiments.train.decisions import DECISIVE_RATIO, DECISIVE_TIME_NS, DecisionMetrics
from torch_pim.experiments.train.pipeline import Trained
from torch_pim.models.learned.manifest import Manifest

MOST_IMPORTANT = 12


def card(trained: Trained, manifest: Manifest) -> str:
    """Markdown; the same training gives the same text."""
    return "\n".join(
        [
            *_head(trained, manifest),
            *_data(trained),
            *_cross_validation(trained),
            *_pairs(trained),
            *_inside(trained, manifest),
            *_limits(trained),
            "",
        ]
    )


def _head(trained: Trained, manifest: Manifest) -> list[str]:
    return [
        f"# {manifest.name} {manifest.version}",
        "",
        f"Decides for parallel loop nests whether processing-in-memory cores run them faster than the host. Kind: "
        f"{manifest.kind}. Score threshold {manifest.threshold:.2f}, residual gates {manifest.host_residual_gate:.2f} "
        f"(host) and {manifest.device_residual_gate:.2f} (device).",
        "",
    ]


def _data(trained: Trained) -> list[str]:
    labels = trained.labels
    header = labels.header
    groups = Counter(nest.group for nest in labels.nests)
    seen = len({(h, d) for (_, h, d), used in zip(trained.index, trained.training_rows, strict=True) if used})
    return [
        "## Training data",
        "",
        f"- corpus {header.corpus} ({header.corpus_content[:12]}), labels {labels.content[:12]} by emulator version "
        f"{header.emulator_version}, trace budget {header.trace_budget}, seed {header.seed}",
        f"- {len(labels.nests)} unique nests in {len(groups)} groups of related kernels: "
        + ", ".join(f"{name} {count}" for name, count in sorted(groups.items())),
        f"- {seen} pairs of machines for training, {len(labels.pairs) - seen} held out; "
        f"{int(trained.training_rows.sum())} training rows",
        f"- kept out of the corpus: {header.held_out}",
        f"- times are modelled by the emulator, not measured on hardware; profiles are simulated with "
        f"{100 * header.profile_noise:.0f} % noise",
        "",
    ]


def _cross_validation(trained: Trained) -> list[str]:
    rows = [(entry.policy, entry.setting, entry.machines, *_cells(entry.metrics)) for entry in cross_validated(trained)]
    calibration = ", ".join(
        f"{c.setting}: Brier score {c.brier_score:.3f}, expected error {c.expected_error:.3f}"
        for c in calibration_metrics(trained)
    )
    return [
        f"## Grouped cross-validation ({trained.settings.folds} folds)",
        "",
        "No group of kernels is in training and test at once. `static` means without any profile. Balanced accuracy is "
        f"over decisive nests (slower side at least {DECISIVE_TIME_NS / 1000:.0f} us, sides differ by "
        f"{DECISIVE_RATIO}x). Regret is chosen over best time minus one: geometric mean and worst over (family, "
        "machines). Slowdown is against the host alone.",
        "",
        *_table(("policy", "setting", "machines", *_HEADER), rows),
        "",
        f"Calibration of the learned score. {calibration}.",
        f"Abstention (the cost model decides instead): {100 * trained.out_of_fold.abstained.mean():.1f} % of rows.",
        "",
    ]


def _pairs(trained: Trained) -> list[str]:
    rows = [(p.host, p.device, p.setting, p.machines, *_cells(p.metrics)) for p in by_pair(trained)]
    return [
        "## Learned policy by machines (out of fold)",
        "",
        *_table(("host", "device", "setting", "machines", *_HEADER), rows),
        "",
    ]


def _inside(trained: Trained, manifest: Manifest) -> list[str]:
    gains = list(importance(trained.models.classifier).items())[:MOST_IMPORTANT]
    constants = ", ".join(f"{name} {value:.3g}" for name, value in manifest.cost_constants.to_json().items())
    return [
        "## Inside",
        "",
        f"- cost-model constants: {constants}",
        "- largest shares of gain: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in gains),
        "- training: " + ", ".join(f"{name} {value}" for name, value in sorted(manifest.training.items())),
        "",
    ]


def _limits(trained: Trained) -> list[str]:
    return [
        "## Limits",
        "",
        "- It knows the emulator's machines. On hardware, label again with measured times before trusting it.",
        "- Outside the training ranges in the manifest it abstains, and the cost model decides.",
        "- Nests that cannot be split over cores, and types that a device does not compute on, never reach it.",
        f"- Machines held out of training: devices with {_list(trained.settings.unseen_device_cores)} cores, hosts "
        f"with {_list(trained.settings.unseen_host_cores)} cores.",
    ]


def _list(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) or "no"


_HEADER = ("nests", "decisive", "balanced accuracy", "regret", "worst regret", "worst slowdown")


def _cells(metrics: DecisionMetrics) -> tuple[str, ...]:
    return (
        str(metrics.rows),
        str(metrics.decisive_rows),
        f"{metrics.decisive_balanced_accuracy:.3f}",
        f"{100 * metrics.regret:.2f} %",
        f"{100 * metrics.worst_regret:.1f} %",
        f"{metrics.worst_slowdown:.2f}x",
    )


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
