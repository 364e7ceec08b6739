"""A small label set made by hand: nests of known structure, with times from perturbed closed forms."""

import math

import numpy as np
import pytest

from torch_pim.experiments.label.label_set import LabelHeader, LabelledNest, LabelSet
from torch_pim.experiments.label.machines import label_machines
from torch_pim.features.nest import NO_LOOP, Access, Buffer, Loop, LoopNest, Operation
from torch_pim.features.profile import HostProfile
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.model import CostModel

TRUTH = CostConstants(
    host_compute=1.5, host_latency=0.8, host_bandwidth=1.2, device_compute=0.7, device_latency=1.4, device_bandwidth=1.1
)
"""What the emulator of these tests knows and the constants from the specifications do not."""


def _buffer(*shape, stored=False, loaded=True):
    return Buffer("f32", shape, loaded, stored, 4 * math.prod(shape))


def elementwise(n, kind="add", name="elementwise"):
    """y[i] = x[i] op z[i]."""
    accesses = tuple(Access(b, "store" if b == 2 else "load", "f32", 0, ((0, 4),)) for b in range(3))
    return LoopNest(
        name=f"{name}_{kind}_{n}",
        loops=(Loop("parallel", n, NO_LOOP),),
        parallel_rank=1,
        accesses=accesses,
        operations=(Operation(kind, "f32", 0, 1.0),),
        buffers=(_buffer(n), _buffer(n), _buffer(n, stored=True, loaded=False)),
        kind="compute",
        partitionable=True,
        code_hash=f"{name}-{kind}-{n}",
    )


def contraction(m, n, k):
    """c[i, j] += a[i, l] * b[l, j]."""
    accesses = (
        Access(2, "store", "f32", 1, ((0, 4 * n), (1, 4))),
        Access(0, "load", "f32", 2, ((0, 4 * k), (2, 4))),
        Access(1, "load", "f32", 2, ((1, 4), (2, 4 * n))),
        Access(2, "load", "f32", 2, ((0, 4 * n), (1, 4))),
        Access(2, "store", "f32", 2, ((0, 4 * n), (1, 4))),
    )
    return LoopNest(
        name=f"contraction_{m}_{n}_{k}",
        loops=(Loop("parallel", m, NO_LOOP), Loop("parallel", n, 0), Loop("sequential", k, 1)),
        parallel_rank=2,
        accesses=accesses,
        operations=(Operation("multiply", "f32", 2, 1.0), Operation("add", "f32", 2, 1.0)),
        buffers=(_buffer(m, k), _buffer(k, n), _buffer(m, n, stored=True)),
        kind="compute",
        partitionable=True,
        code_hash=f"contraction-{m}-{n}-{k}",
    )


def row_sum(m, n):
    """y[i] += x[i, j]."""
    return LoopNest(
        name=f"row_sum_{m}_{n}",
        loops=(Loop("parallel", m, NO_LOOP), Loop("sequential", n, 0)),
        parallel_rank=1,
        accesses=(
            Access(0, "load", "f32", 1, ((0, 4 * n), (1, 4))),
            Access(1, "load", "f32", 1, ((0, 4),)),
            Access(1, "store", "f32", 1, ((0, 4),)),
        ),
        operations=(Operation("add", "f32", 1, 1.0),),
        buffers=(_buffer(m, n), _buffer(m, stored=True)),
        kind="compute",
        partitionable=True,
        code_hash=f"row-sum-{m}-{n}",
    )


def hand_made_nests():
    """About fifty nests of eight groups, from cache-resident to far beyond the last-level cache."""
    rng = np.random.default_rng(0)
    made = []
    for group, kind in (("add", "add"), ("divide", "divide"), ("exp", "transcendental")):
        made += [(f"elementwise-{group}", elementwise(int(n), kind)) for n in np.geomspace(3000, 2e7, 7)]
    for group, ranges in (
        ("gemm", ((64, 1024), (64, 1024), (64, 2048))),
        ("gemv", ((1, 2), (512, 8192), (512, 8192))),
        ("skinny", ((4, 16), (256, 4096), (256, 4096))),
    ):
        for _ in range(6):
            m, n, k = (int(np.exp(rng.uniform(np.log(low), np.log(high)))) for low, high in ranges)
            made.append((group, contraction(m, n, k)))
    for group, (rows, columns) in (("rows", ((256, 16384), (32, 256))), ("long-rows", ((8, 64), (4096, 65536)))):
        for _ in range(6):
            m, n = (int(np.exp(rng.uniform(np.log(low), np.log(high)))) for low, high in (rows, columns))
            made.append((group, row_sum(m, n)))
    return made


def make_labels(nests=None, random_pairs=2, seed=0, noise=0.1):
    """Labels whose times are the cost model's under TRUTH, times lognormal noise."""
    rng = np.random.default_rng(seed)
    machines = label_machines(("cpu-8c", "cpu-16c"), ("ndp-hmc-32", "ndp-hmc-64", "ndp-hmc-128"), random_pairs, seed)
    labelled = sorted(
        (LabelledNest(nest, f"{group}/{nest.name}", group, group) for group, nest in nests or hand_made_nests()),
        key=lambda entry: entry.identity,
    )
    truth = CostModel(TRUTH)
    shared = np.exp(rng.normal(0, noise, len(labelled)))

    def noisy(times):
        return np.array(times) * shared[:, None] * np.exp(rng.normal(0, noise / 2, np.shape(times)))

    host_ns = noisy([[truth.host_times(e.nest, h).total_ns for h in machines.hosts] for e in labelled])
    device_ns = noisy([[truth.device_times(e.nest, d).total_ns for d in machines.devices] for e in labelled])
    profiles = tuple(
        tuple(
            HostProfile(
                e.nest.code_hash,
                h.identity,
                "simulated",
                wall_time_ns=float(host_ns[i, j] * np.exp(rng.normal(0, 0.05))),
                instructions=1e6,
                l1_misses=2e4,
                llc_misses=1e4,
            )
            for j, h in enumerate(machines.hosts)
        )
        for i, e in enumerate(labelled)
    )
    header = LabelHeader("hand-made", "0" * 64, "test", 1000, seed, 0.05, "nothing")
    return LabelSet(
        header, tuple(labelled), machines.hosts, machines.devices, machines.pairs, host_ns, device_ns, profiles
    )


@pytest.fixture(scope="session")
def labels():
    return make_labels()


@pytest.fixture(scope="session")
def label_factory():
    """`make_labels`, for tests that need other nests, noise or machines."""
    return make_labels


@pytest.fixture(scope="session")
def true_constants():
    """The cost constants behind the hand-made times."""
    return TRUTH
