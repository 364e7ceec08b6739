"""LLaMA-7B and GPT-J-6B at full width, as fake tensors: nest counts, FLOPs and weight traffic known from outside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from torch_pim.compiler_hook.lowered import LoweredProgram, lower_model
from torch_pim.compiler_hook.placement.data_flow import buffer_versions
from torch_pim.compiler_hook.report.plan import contraction_flops, weight_bytes_read
from torch_pim.experiments.workloads.registry import get_workload
from torch_pim.features.analysis.contractions import contractions

# Per layer, LLaMA has 9 matrix products: query, key, value, scores, mix, output, gate, up, down. Beside them stand
# two norms, negation and sum of the rotary embedding (for query and key each), and the softmax of the scores; SiLU, the
# gate's product, masks and residual sums are part of a product's nest. Around the layers stand the embedding, the
# rotary table (frequencies, cosine, sine), the last norm and the output layer. Copies are the parts of concatenations
# (rotary halves, cache), and heads that change places with tokens. In decode a norm has one row, whose sum is
# sequential: it is a nest of its own that is not partitionable. GPT-J shares one norm between attention and MLP, so a
# layer has one norm and 8 products; its layer norm has two sums, hence two such nests in decode.
COUNTS = {
    # (model, phase, layers): (calls, unique nests, copies, not partitionable)
    ("llama-7b", "prefill", 1): (31, 21, 9, 0),
    ("llama-7b", "prefill", 2): (54, 21, 16, 0),
    ("llama-7b", "decode", 1): (38, 24, 13, 3),
    ("llama-7b", "decode", 2): (67, 24, 24, 5),
    ("gptj-6b", "prefill", 1): (31, 20, 12, 0),
    ("gptj-6b", "prefill", 2): (56, 20, 22, 0),
    ("gptj-6b", "decode", 1): (41, 25, 16, 4),
    ("gptj-6b", "decode", 2): (73, 25, 30, 6),
}
PRODUCTS = {"llama-7b": 9, "gptj-6b": 8}


@dataclass(frozen=True)
class Run:
    model: nn.Module
    arguments: tuple[Any, ...]
    lowered: LoweredProgram


@pytest.fixture(scope="module", params=COUNTS, ids=lambda key: " ".join(map(str, key)))
def key(request: pytest.FixtureRequest) -> tuple[str, str, int]:
    return request.param


@pytest.fixture(scope="module")
def run(key: tuple[str, str, int]) -> Run:
    name, phase, layers = key
    model, arguments = get_workload(name).build({"phase": phase, "layers": layers}, fake=True)
    return Run(model, arguments, lower_model(model, arguments))


def test_counts_of_nests(run: Run, key: tuple[str, str, int]) -> None:
    specialised = run.lowered.specialised()
    nests = [specialised.nests[call.nest].loop_nest for call in specialised.calls]
    copies = Counter(nest.kind for nest in nests)["copy"]
    assert (len(nests), len(specialised.nests), copies, sum(not n.partitionable for n in nests)) == COUNTS[key]
    assert not any(nest.kind == "fill" for nest in nests)


def test_every_product_is_one_nest(run: Run, key: tuple[str, str, int]) -> None:
    name, _, layers = key
    specialised = run.lowered.specialised()
    found = [len(contractions(specialised.nests[call.nest].loop_nest)) for call in specialised.calls]
    assert sum(found) == PRODUCTS[name] * layers + 1
    assert max(found) == 1


def test_flops_are_those_of_pytorchs_counter(run: Run) -> None:
    # The counter has no rule for the fused attention of CPUs.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        run.model(*run.arguments)
    assert contraction_flops(run.lowered.specialised()) == pytest.approx(counter.get_total_flops(), rel=0.001)


def test_weights_are_read_once_and_the_embedding_by_rows(run: Run) -> None:
    embeddings = [module.weight for module in run.model.modules() if isinstance(module, nn.Embedding)]
    (table,) = embeddings
    tokens = run.arguments[0].numel()
    whole = sum(parameter.nbytes for parameter in run.model.parameters()) - table.nbytes
    rows = tokens * table.shape[1] * table.element_size()
    read = weight_bytes_read(run.lowered.specialised(), run.lowered.weights)
    assert read == pytest.approx(whole + rows, rel=0.01)


def test_no_f64_and_no_dynamic_size(run: Run) -> None:
    assert run.lowered.is_static
    assert not any("f64" in function.canonical for function in run.lowered.program.functions)


def test_all_weights_are_resident_and_read(run: Run) -> None:
    versions = buffer_versions(run.lowered.specialised(), run.lowered.weights)
    weights = [version for version in versions if version.role == "weight"]
    assert sum(version.nbytes for version in weights) >= sum(parameter.nbytes for parameter in run.model.parameters())
    assert all(version.consumers for version in weights)
