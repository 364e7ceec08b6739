from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from torch_pim.features.profile import HostProfile
from torch_pim.features.specs import load_device, load_host
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.fit import DeviceLabel, HostLabel, fit_constants
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.learned.guard import RangeGuard, training_ranges
from torch_pim.models.learned.inputs import MACHINE_COLUMNS, MODEL_SCHEMA, model_row, residual_targets
from torch_pim.models.learned.manifest import ColumnRange


def named(row):
    return dict(zip(MODEL_SCHEMA.names, row, strict=True))


def profile(host, **changes):
    return replace(HostProfile("x", host.identity, "simulated", wall_time_ns=5e5, ipc=1.5), **changes)


def test_a_row_has_one_number_per_column(make_matmul, host, device):
    row = model_row(make_matmul(64, 64, 64), None, host, device, CostModel())
    assert len(row) == len(MODEL_SCHEMA.columns)
    assert all(isinstance(v, float) and not math.isinf(v) for v in row)
    values = named(row)
    assert values["host_log_cores"] == 3.0
    assert math.isnan(values["profile_ipc"])
    assert MACHINE_COLUMNS <= set(MODEL_SCHEMA.names)


def test_nothing_of_a_label_reaches_the_row(make_matmul, host, device):
    """The row of a nest is the same bytes whatever its label says, and the label is nowhere among its arguments."""
    nest = make_matmul(64, 64, 64)
    rows = []
    for host_ns, device_ns in ((1e5, 2e5), (9e9, 1.0)):
        label = HostLabel(nest, host, host_ns), DeviceLabel(nest, device, device_ns)
        rows.append(np.array(model_row(label[0].nest, profile(host), label[0].host, label[1].device, CostModel())))
    assert rows[0].tobytes() == rows[1].tobytes()


def test_labels_reach_a_row_only_through_constants_fitted_on_other_nests(make_copy, make_matmul, host, device):
    training = make_copy(2**20)
    fitted = CostModel(fit_constants([HostLabel(training, host, 1e6)], [DeviceLabel(training, device, 1e6)]))
    row = model_row(make_matmul(8, 8, 8), None, host, device, fitted)
    again = model_row(
        make_matmul(8, 8, 8), None, host, device, CostModel(CostConstants(*fitted.constants.to_json().values()))
    )
    assert np.array(row).tobytes() == np.array(again).tobytes()


def test_a_profile_of_another_host_changes_nothing(make_copy, host, device):
    nest, model = make_copy(4096), CostModel()
    without = model_row(nest, None, host, device, model)
    foreign = model_row(nest, profile(host, host_id="someone@else"), host, device, model)
    own = model_row(nest, profile(host), host, device, model)
    assert np.array(without).tobytes() == np.array(foreign).tobytes()
    changed = {
        n for n, a, b in zip(MODEL_SCHEMA.names, without, own, strict=True) if a != b and not (a != a and b != b)
    }
    assert {"profile_ipc", "log_time_ratio"} <= changed
    assert "static_log_time_ratio" not in changed


def test_names_and_code_play_no_part(make_copy, host, device):
    nest, model = make_copy(4096), CostModel()
    renamed = replace(nest, name="other", code_hash="other", aten_operators=("aten.mm",), call_sites=("a",))
    assert model_row(nest, None, host, device, model) == pytest.approx(
        model_row(renamed, None, host, device, model), nan_ok=True
    )


def test_residual_targets_are_logs_of_true_over_estimated(make_copy, host, device):
    estimate = CostModel().estimate(make_copy(4096), host, device)
    targets = residual_targets(estimate, estimate.host_ns * 2, estimate.device_ns / 3)
    assert targets == pytest.approx((math.log(2), -math.log(3)))


def rows_of(nests, machines):
    return [model_row(n, None, load_host(h), load_device(d), CostModel()) for n in nests for h, d in machines]


def test_the_guard_tells_machines_from_nests(make_copy):
    nests = [make_copy(2**k) for k in (8, 12, 16)]
    rows = rows_of(nests, [("cpu-1c", "ndp-hmc-32"), ("cpu-8c", "ndp-hmc-64")])
    ranges = training_ranges(rows, ["log_iterations", "host_log_cores", "device_log_cores", "profile_ipc"])
    assert ranges[1] == ColumnRange("host_log_cores", 0.0, 3.0)
    assert [r.column for r in ranges] == [
        "log_iterations",
        "host_log_cores",
        "device_log_cores",
    ]  # never measured: none
    guard = RangeGuard(ranges)
    assert all(guard.machine_problem(row) is None and guard.nest_problem(row) is None for row in rows)
    (large,) = rows_of([make_copy(2**20)], [("cpu-8c", "ndp-hmc-64")])
    (wide,) = rows_of([make_copy(2**12)], [("cpu-16c", "ndp-hmc-64")])
    assert guard.machine_problem(large) is None
    assert guard.nest_problem(large) == "log_iterations = 20 is outside the training range 8.006 to 16"
    assert guard.machine_problem(wide) == "host_log_cores = 4 is outside the training range 0 to 3"
    assert guard.nest_problem(wide) is None


def test_the_guard_gives_five_percent_of_slack_and_lets_missing_values_pass(make_copy):
    (row,) = rows_of([make_copy(2**12)], [("cpu-8c", "ndp-hmc-64")])
    assert RangeGuard([ColumnRange("host_log_cores", 0.0, 2.9)]).machine_problem(row) is None
    assert RangeGuard([ColumnRange("host_log_cores", 0.0, 2.8)]).machine_problem(row) is not None
    assert RangeGuard([ColumnRange("profile_ipc", 0.0, 1.0)]).nest_problem(row) is None
