"""The `train` command: from a label file to a model bundle, with a record of the run."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class TrainCommand:
    """Trains and cross-validates on a label file, writes a bundle, records the run in MLflow unless told not to."""

    name: str = "train"
    help: str = "train a placement model on labels and write it as a bundle"
    description: str = """\
Fits the constants of the cost model, a gradient-boosted classifier and residual regressors on a label file, chooses
calibration, threshold and gates by cross-validation over groups of kernels, and writes a bundle: model.json,
manifest.json, card.md. Machines with the core counts of --unseen-device-cores and --unseen-host-cores are kept out of
training and reported as unseen.

The run is recorded with MLflow in a SQLite file beside the bundle; no network is used. Equal labels, settings and
library versions give the same bundle to the byte, but for the run's id: use --no-tracking for a release.

examples:
  torch-pim train labels.parquet --output bundle
  torch-pim train labels.parquet --output bundle --no-tracking --name placement --model-version 1.1.0
  torch-pim train labels.parquet --output bundle --kind logistic --json
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("labels", type=Path, help="label file of torch-pim label")
        parser.add_argument(
            "--output", type=Path, required=True, help="folder of the bundle; an old bundle is replaced"
        )
        parser.add_argument(
            "--kind", choices=("xgboost", "logistic"), default="xgboost", help="which classifier to ship"
        )
        parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: 0)")
        parser.add_argument("--folds", type=int, default=5, help="of the cross-validation (default: %(default)s)")
        parser.add_argument("--trees", type=int, default=200, help="of every ensemble (default: %(default)s)")
        parser.add_argument("--depth", type=int, default=6, help="of the classifier's trees (default: %(default)s)")
        parser.add_argument(
            "--unseen-device-cores", type=_counts, default=(64,), metavar="N,...", help="(default: 64; '' for none)"
        )
        parser.add_argument(
            "--unseen-host-cores", type=_counts, default=(16,), metavar="N,...", help="(default: 16; '' for none)"
        )
        parser.add_argument("--name", default="placement", help="name in the manifest (default: %(default)s)")
        parser.add_argument("--model-version", default="1.0.0", help="version in the manifest (default: %(default)s)")
        tracking = parser.add_mutually_exclusive_group()
        tracking.add_argument("--tracking-uri", help="sqlite:///FILE (default: mlflow.db beside the bundle)")
        tracking.add_argument("--no-tracking", action="store_true", help="record no MLflow run")
        parser.add_argument("--json", action="store_true", help="print metrics as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        result = _train(arguments)
        if arguments.json:
            print(json.dumps(result, indent=2))
        else:
            print(Path(result["bundle"], "card.md").read_text(encoding="utf-8"))
            print(f"bundle: {result['bundle']}")
            if result["mlflow_run_id"]:
                print(f"run {result['mlflow_run_id']} in {result['tracking_uri']}")
        return 0


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _train(arguments: argparse.Namespace) -> dict[str, Any]:
    from torch_pim.experiments.label.parquet import read_labels
    from torch_pim.experiments.train.bundle_output import save_bundle
    from torch_pim.experiments.train.cv_report import flat_metrics
    from torch_pim.experiments.train.pipeline import train
    from torch_pim.experiments.train.settings import TrainingSettings, TreeSettings
    from torch_pim.experiments.train.tracking import save_tracked, tracking_uri

    settings = TrainingSettings(
        seed=arguments.seed,
        folds=arguments.folds,
        classifier=TreeSettings(trees=arguments.trees, depth=arguments.depth),
        residual=TreeSettings(trees=arguments.trees, depth=max(1, arguments.depth - 1)),
        unseen_device_cores=arguments.unseen_device_cores,
        unseen_host_cores=arguments.unseen_host_cores,
        name=arguments.name,
        version=arguments.model_version,
    )
    trained = train(read_labels(arguments.labels), settings)
    result = {"bundle": str(arguments.output), "mlflow_run_id": "", "tracking_uri": ""}
    if arguments.no_tracking:
        save_bundle(trained, arguments.output, kind=arguments.kind)
    else:
        uri = arguments.tracking_uri or tracking_uri(arguments.output.absolute().parent)
        run = save_tracked(trained, arguments.output, uri, kind=arguments.kind)
        result.update(mlflow_run_id=run.run_id, tracking_uri=run.tracking_uri, model_uri=run.model_uri)
    return {**result, "metrics": flat_metrics(trained)}


COMMAND = TrainCommand()
