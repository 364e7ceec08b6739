"""A generated bundle for tests, so that no test needs a trained model. Its trees are written by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch_pim.features.nest import ELEMENT_BYTES, NO_LOOP, Access, Buffer, Loop, LoopNest
from torch_pim.models.cost_model.constants import FROM_SPECS, CostConstants
from torch_pim.models.learned.bundle_writer import write_bundle
from torch_pim.models.learned.classifier import Calibration, LogisticModel
from torch_pim.models.learned.inputs import MODEL_SCHEMA
from torch_pim.models.learned.manifest import ColumnRange, Manifest

TINY_COLUMNS = ("log_iterations", "host_log_cores", "static_log_time_ratio")
"""What the tiny model reads; it decides by the last one alone."""


def make_tiny_bundle(
    path: str | os.PathLike[str],
    *,
    kind: str = "xgboost",
    ranges: Sequence[ColumnRange] = (),
    threshold: float = 0.5,
    residuals: tuple[float, float] | None = None,
    constants: CostConstants = FROM_SPECS,
) -> Path:
    """Writes a bundle whose classifier prefers PIM where the static time ratio is above zero (score 0.95, else 0.05).

    `residuals` are constant corrections to ln of host and device time. Returns the folder.
    """
    schema = MODEL_SCHEMA.subset(TINY_COLUMNS)
    names = schema.names
    position = names.index("static_log_time_ratio")
    manifest = Manifest(
        name="tiny",
        version="1.0.0",
        kind="logistic" if kind == "logistic" else "xgboost",
        schema=schema,
        ranges=tuple(ranges),
        profile_origins=("simulated",),
        threshold=threshold,
        calibration=Calibration(),
        host_residual_gate=1.0,
        device_residual_gate=1.0,
        cost_constants=constants,
        dataset_digest="",
        emulator_version="none",
        mlflow_run_id="",
        training={"generated": True},
    )
    if kind == "logistic":
        weights = [0.0] * len(names)
        weights[position] = 3.0
        zeros, ones = (0.0,) * len(names), (1.0,) * len(names)
        model = LogisticModel(names, zeros, ones, tuple(weights), 0.0).to_json().encode()
    else:
        stump = _tree(position, 0.0, -2.944439, 2.944439, len(names))
        model = xgboost_json("binary:logistic", "[5E-1]", names, [stump])
    host = device = None
    if residuals is not None:
        host, device = (
            xgboost_json("reg:squarederror", "[0E0]", names, [_tree(0, 0.0, value, value, len(names))])
            for value in residuals
        )
    card = "# tiny\n\nGenerated for tests; knows nothing.\n"
    return write_bundle(path, manifest, model=model, card=card, host_residual=host, device_residual=device)


def stream_nest(
    elements: int, *, element_type: str = "f32", name: str = "copy", partitionable: bool = True
) -> LoopNest:
    """`out[i] = in[i]` over a contiguous array."""
    size = ELEMENT_BYTES[element_type]
    stride = ((0, size),)
    return LoopNest(
        name=name,
        loops=(Loop("parallel" if partitionable else "sequential", elements, NO_LOOP),),
        parallel_rank=int(partitionable),
        accesses=(Access(0, "load", element_type, 0, stride), Access(1, "store", element_type, 0, stride)),
        operations=(),
        buffers=(
            Buffer(element_type, (elements,), True, False, elements * size),
            Buffer(element_type, (elements,), False, True, elements * size),
        ),
        kind="copy",
        partitionable=partitionable,
        code_hash=f"{name}-{element_type}-{elements}",
    )


def xgboost_json(objective: str, base_score: str, names: Sequence[str], trees: Sequence[dict[str, Any]]) -> bytes:
    """A model file in the JSON form of XGBoost 3."""
    model = {
        "version": [3, 2, 0],
        "learner": {
            "attributes": {},
            "feature_names": list(names),
            "feature_types": ["float"] * len(names),
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "tree_info": [0] * len(trees),
                    "trees": list(trees),
                },
            },
            "learner_model_param": {
                "base_score": base_score,
                "num_class": "0",
                "num_feature": str(len(names)),
                "num_target": "1",
            },
            "objective": {"name": objective},
        },
    }
    return json.dumps(model).encode()


def _tree(feature: int, threshold: float, below: float, above: float, width: int) -> dict[str, Any]:
    return {
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "split_indices": [feature, 0, 0],
        "split_conditions": [threshold, below, above],
        "default_left": [1, 0, 0],
        "split_type": [0, 0, 0],
        "categories": [],
        "tree_param": {"num_nodes": "3", "num_feature": str(width), "size_leaf_vector": "1"},
    }
