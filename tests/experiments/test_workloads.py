"""Workloads: options, determinism, and the language-model wrappers against each other."""

import dataclasses
import sys

import pytest
import torch
from torch.utils import _pytree as pytree

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.experiments.workloads import language_models
from torch_pim.experiments.workloads.options import about, apply_options, option_infos
from torch_pim.experiments.workloads.registry import WORKLOADS, get_workload
from torch_pim.experiments.workloads.resolve import resolve_model

FULL_SIZE = {"llama-7b": {"layers": 1}, "gptj-6b": {"layers": 1}, "vit-tiny": {"layers": 1}}
LANGUAGE = ["llama-small", "gptj-small"]


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_every_workload_runs_with_fake_tensors_and_distinct_arguments(name):
    module, arguments = get_workload(name).build(FULL_SIZE.get(name), fake=True)
    tensors = pytree.tree_leaves(arguments)
    assert len({id(t) for t in tensors}) == len(tensors)
    assert not module.training
    assert all(torch.is_tensor(t) for t in pytree.tree_leaves(module(*arguments)))


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_every_option_is_described(name):
    assert WORKLOADS[name].description
    assert all(info.description for info in WORKLOADS[name].options)


@pytest.mark.parametrize(("name", "parameters"), [("llama-7b", 6_738_415_616), ("gptj-6b", 6_050_882_784)])
def test_parameter_counts_of_the_full_models(name, parameters):
    """The published models have 6.7 and 6.05 billion (Touvron et al., 2023; Wang and Komatsuzaki, 2021)."""
    module, _ = get_workload(name).build(fake=True)
    assert sum(p.numel() for p in module.parameters()) == parameters


@pytest.mark.parametrize("name", LANGUAGE)
@pytest.mark.parametrize("batch", [1, 2])
def test_decode_continues_prefill(name, batch):
    """Prefill of n tokens and one decode step give the logits of a prefill of n + 1 tokens."""
    workload = get_workload(name)
    longer, (ids, positions, mask) = workload.build({"sequence": 7, "batch": batch}, seed=3)
    expected, *caches = longer(ids, positions, mask)
    first, *past = longer(ids[:, :-1], positions[:, :-1], mask[:, :, :-1, :-1])
    decoder, arguments = workload.build({"phase": "decode", "context": 6, "batch": batch}, seed=3)
    decoder.model.load_state_dict(longer.model.state_dict())
    assert [t.shape for t in arguments[3]] == [t.shape for t in past]
    logits, *new = decoder(ids[:, -1:], positions[:, -1:], torch.zeros(batch, 1, 1, 7), past)
    assert first.shape == logits.shape == (batch, 1, 512)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    for full, slice_ in zip(caches, new, strict=True):
        torch.testing.assert_close(slice_, full[:, :, -1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LANGUAGE)
def test_prefill_mask_is_causal(name):
    """The caches of the first tokens do not depend on later tokens."""
    module, (ids, positions, mask) = get_workload(name).build({"sequence": 5})
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] + 1) % 512
    _, *before = module(ids, positions, mask)
    _, *after = module(changed, positions, mask)
    for x, y in zip(before, after, strict=True):
        torch.testing.assert_close(x[:, :, :-1], y[:, :, :-1], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_half_precision_keeps_the_rotary_table_in_f32(dtype):
    module, arguments = get_workload("llama-small").build({"dtype": dtype, "phase": "decode"}, fake=True)
    names = {name: buffer.dtype for name, buffer in module.named_buffers() if "inv_freq" in name}
    assert names
    assert set(names.values()) == {torch.float32}
    assert module(*arguments)[0].dtype == {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]


def test_same_seed_same_weights_and_global_state_untouched():
    workload = get_workload("mlp")
    state = torch.random.get_rng_state()
    first, (x,) = workload.build({"hidden": 8}, seed=5)
    second, (y,) = workload.build({"hidden": 8}, seed=5)
    other, (z,) = workload.build({"hidden": 8}, seed=6)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(x, y)
    assert torch.equal(first[0].weight, second[0].weight)
    assert not torch.equal(x, z)
    assert not torch.equal(first[0].weight, other[0].weight)


def test_cached_attention_equals_the_last_row_of_causal_attention():
    options = {"heads": 2, "head_size": 4, "sequence": 6, "context": 5}
    block, (x,) = get_workload("attention").build(options)
    cached, _ = get_workload("attention").build({**options, "phase": "decode"})
    cached.load_state_dict(block.state_dict())
    keys, values = block.split(block.key(x[:, :-1])), block.split(block.value(x[:, :-1]))
    mixed, key, _ = cached(x[:, -1:], keys, values)
    torch.testing.assert_close(mixed, block(x)[:, -1:])
    torch.testing.assert_close(key, block.split(block.key(x))[:, :, -1:])


def test_lstm_equals_pytorch():
    module, (x,) = get_workload("lstm").build({"hidden": 16, "steps": 5, "batch": 3})
    reference = torch.nn.LSTM(16, 16, batch_first=True)
    reference.load_state_dict(
        {
            "weight_ih_l0": module.from_input.weight,
            "bias_ih_l0": module.from_input.bias,
            "weight_hh_l0": module.from_state.weight,
            "bias_hh_l0": torch.zeros(64),
        }
    )
    torch.testing.assert_close(module(x), reference(x)[0][:, -1])


def test_embedding_bag_equals_pytorch():
    module, (table, indices) = get_workload("embedding-bag").build({"rows": 50, "width": 4, "bags": 3, "pooled": 5})
    expected = torch.nn.functional.embedding_bag(indices, table, mode="sum")
    torch.testing.assert_close(module(table, indices), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"phaes": "decode"}, "did you mean 'phase'"),
        ({"phase": "decod"}, "did you mean 'decode'"),
        ({"layers": "two"}, "expected an integer"),
        ({"layers": 0}, "expected at least 1"),
        ({"layers": True}, "expected at least 1"),
        ({"zzz": 1}, "it takes phase, sequence"),
    ],
)
def test_bad_options_name_the_mend(given, message):
    with pytest.raises(OptionError, match=message):
        get_workload("llama-small").build(given, fake=True)


def test_options_are_converted_from_text():
    assert apply_options("llama-7b", language_models.LlamaOptions(), {"layers": "3"}).layers == 3


def test_an_option_of_another_type_is_refused_when_the_workload_is_described():
    @dataclasses.dataclass(frozen=True)
    class Odd:
        ratio: float = dataclasses.field(default=1.0, metadata=about("not supported"))

    with pytest.raises(TypeError, match=r"Odd\.ratio"):
        option_infos(Odd())


def test_unknown_workload_suggests_names():
    with pytest.raises(OptionError, match="did you mean 'llama-7b'"):
        get_workload("lama-7b")


def test_missing_transformers_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(language_models.OptionalDependencyError, match=r"pip install 'torch-pim\[models\]'"):
        get_workload("llama-small").build()


class TestResolve:
    def test_workload(self):
        model = resolve_model("add", {"rows": 2, "columns": 3})
        assert model.name == "add"
        assert model.program is None
        assert [t.shape for t in model.arguments] == [(2, 3), (2, 3)]

    def test_factory(self, tmp_path, monkeypatch):
        (tmp_path / "my_own_models.py").write_text(
            "import torch\n"
            "def linear():\n    return torch.nn.Linear(3, 2), (torch.ones(1, 3),)\n"
            "def wrong():\n    return 3\n"
            "def no_tuple():\n    return torch.nn.Linear(3, 2), torch.ones(1, 3)\n"
        )
        monkeypatch.chdir(tmp_path)
        before = list(sys.path)
        model = resolve_model("my_own_models:linear")
        assert sys.path == before
        assert model.module(*model.arguments).shape == (1, 2)
        with pytest.raises(OptionError, match=r"expected \(nn.Module, arguments\)"):
            resolve_model("my_own_models:wrong")
        with pytest.raises(OptionError, match="expected a tuple"):
            resolve_model("my_own_models:no_tuple")
        with pytest.raises(OptionError, match="no callable 'missing'"):
            resolve_model("my_own_models:missing")
        with pytest.raises(OptionError, match="takes no options"):
            resolve_model("my_own_models:linear", {"layers": 2})

    def test_missing_module(self):
        with pytest.raises(OptionError, match="cannot import 'no_such_package'"):
            resolve_model("no_such_package:factory")

    def test_exported_program(self, tmp_path):
        path = tmp_path / "linear.pt2"
        torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),)), path)
        model = resolve_model(str(path))
        assert model.name == "linear"
        assert model.module is None
        assert model.program.module()(torch.ones(1, 3)).shape == (1, 2)

    def test_bad_program(self, tmp_path):
        path = tmp_path / "bad.pt2"
        with pytest.raises(OptionError, match="no file"):
            resolve_model(str(path))
        path.write_bytes(b"not a program")
        with pytest.raises(OptionError, match=r"not a program written by torch\.export\.save"):
            resolve_model(str(path))


@pytest.mark.parametrize(
    ("reference", "message"), [(":make", "expected 'package.module:factory'"), ("json:", "expected")]
)
def test_half_a_factory_is_refused(reference, message):
    with pytest.raises(OptionError, match=message):
        resolve_model(reference)


def test_a_factory_that_raises_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken_factory_module.py").write_text("def make():\n    raise RuntimeError('no weights here')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=r"broken_factory_module:make.* raised RuntimeError: no weights here"):
        resolve_model("broken_factory_module:make")
