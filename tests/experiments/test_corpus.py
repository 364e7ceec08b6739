"""The corpus: its design of shapes, its identity, and the rule that keeps held-out nests away."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.experiments.corpus.corpora import CORPORA, Corpus, get_corpus
from torch_pim.experiments.corpus.design import log_design
from torch_pim.experiments.corpus.entry import ArgumentSpec, CorpusEntry
from torch_pim.experiments.corpus.families import movement, reductions
from torch_pim.experiments.corpus.family import LARGEST_BYTES
from torch_pim.experiments.corpus.held_out import HeldOut, iteration_extents
from torch_pim.features.nest import NO_LOOP, Loop, LoopNest

CONTENT = "0ee27730c5e29d920172e78ed123f01a0d085bfff80032a061e9ffebb6072a20"


@pytest.fixture(scope="module")
def entries():
    return get_corpus("nests-v0").entries


def test_content_is_frozen():
    """A change of any entry needs a new corpus name, because labels carry the name and this digest."""
    assert get_corpus("nests-v0").content == CONTENT


def test_breadth(entries):
    assert len({entry.family for entry in entries}) >= 30
    assert len({entry.group for entry in entries}) >= 20
    assert len({entry.name for entry in entries}) == len(entries) >= 700
    assert {entry.family for entry in entries if entry.group == "network"} == {"resnet-small", "bert-small", "vit-tiny"}


def test_sizes_reach_from_l1_to_far_beyond_the_last_level_cache(entries):
    sizes = [entry.nbytes for entry in entries if isinstance(entry, CorpusEntry)]
    assert min(sizes) < 32 * 2**10
    assert LARGEST_BYTES >= max(sizes) > 128 * 2**20
    for low, high in ((2**15, 2**18), (2**18, 2**22), (2**22, 2**25), (2**25, 2**28)):
        assert sum(low <= size < high for size in sizes) > 100


def test_no_family_uses_a_language_model_of_the_evaluation(entries):
    assert not [entry.name for entry in entries if "llama" in entry.name or "gptj" in entry.name]


def test_entries_run_on_fake_tensors(entries):
    for entry in entries[::7]:
        module, arguments = entry.build()
        assert torch.is_tensor(module(*arguments))


def test_small_entries_run_on_real_values_and_are_finite(entries):
    small = [e for e in entries if isinstance(e, CorpusEntry) and e.nbytes < 2**16]
    assert len({e.family for e in small}) > 20
    for entry in small:
        module, arguments = entry.build(fake=False, seed=1)
        again = entry.build(fake=False, seed=1)[1]
        assert all(torch.equal(x, y) for x, y in zip(arguments, again, strict=True))
        result = module(*arguments)
        assert torch.isfinite(result.float()).all(), entry.name


def test_sparse_matrix_vector_equals_a_dense_product():
    values, columns, x = torch.randn(5, 3), torch.randint(0, 7, (5, 3)), torch.randn(7)
    dense = torch.zeros(5, 7)
    for row in range(5):
        for k in range(3):
            dense[row, columns[row, k]] += values[row, k]
    torch.testing.assert_close(movement.sparse_matrix_vector(values, columns, x), dense @ x)


def test_group_norm_chooses_a_divisor():
    x = torch.randn(2, 9, 3, 3)
    expected = torch.nn.functional.group_norm(x, 3, torch.ones(9), torch.zeros(9))
    torch.testing.assert_close(reductions.group_norm(x, torch.ones(9), torch.zeros(9)), expected)


@settings(max_examples=60, deadline=None)
@given(
    st.text(min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 64), st.integers(100, 100_000)), min_size=1, max_size=4),
    st.integers(1, 20),
)
def test_design_properties(name, ranges, count):
    """Same name, same points; in range up to rounding; every stratum of every axis is used before the limit acts."""
    points = log_design(name, ranges, count, lambda p: 0.0, 1.0)
    assert points == log_design(name, ranges, count, lambda p: 0.0, 1.0)
    assert len(set(points)) == len(points) <= count
    for point in points:
        for value, (low, high) in zip(point, ranges, strict=True):
            assert low / 1.5 <= value <= high * 1.5
    limited = log_design(name, ranges, count, lambda p: float(math.prod(p)), 1e6)
    for point in limited:
        assert math.prod(point) <= 1e6 or all(v < 4 * low for v, (low, _) in zip(point, ranges, strict=True))


def test_design_mixes_roundings():
    points = log_design("mix", [(64, 1 << 20)], 30, lambda p: 0.0, 1.0)
    values = [p[0] for p in points]
    assert sum(v & (v - 1) == 0 for v in values) >= 5
    assert sum(v % 2 for v in values) >= 8
    assert max(values) > 1 << 18
    assert min(values) < 256


def test_content_sees_name_arguments_and_function():
    def one(x):
        return x + 1

    def two(x):
        return x + 2

    entry = CorpusEntry("a", "f", "g", one, (ArgumentSpec((2,)),))
    variants = [
        entry,
        dataclasses.replace(entry, name="b"),
        dataclasses.replace(entry, group="h"),
        dataclasses.replace(entry, function=two),
        dataclasses.replace(entry, arguments=(ArgumentSpec((3,)),)),
    ]
    assert len({v.content for v in variants}) == len(variants)
    assert Corpus("x", lambda: (entry,)).content != Corpus("x", lambda: (entry, entry)).content


def test_unknown_corpus():
    with pytest.raises(OptionError, match="did you mean 'nests-v0'"):
        get_corpus("nests-v1")
    assert set(CORPORA) == {"nests-v0"}


def _nest(*trips, parallel=1, name="n"):
    loops = tuple(
        Loop("parallel" if i < parallel else "sequential", trip, i - 1 if i else NO_LOOP)
        for i, trip in enumerate(trips)
    )
    return LoopNest(name, loops, parallel, (), (), (), "compute", True, code_hash=name)


class TestHeldOut:
    def test_extents_ignore_order_kind_and_unit_loops(self):
        assert iteration_extents(_nest(8, 1, 4)) == (4, 8) == iteration_extents(_nest(4, 8, parallel=2))
        assert iteration_extents(_nest(4, 4)) == (4, 4)

    def test_reasons(self):
        held = HeldOut.of([_nest(128, 4096)])
        assert "same nest" in held.reason(_nest(128, 4096, name="other name"))
        assert "4096" in held.reason(_nest(4096, 128))
        assert held.reason(_nest(128, 4096, 2)) is None
        assert held.reason(_nest(4096)) is None

    @given(st.lists(st.integers(1, 9), max_size=4), st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=4))
    def test_nothing_of_a_held_out_shape_passes(self, trips, held):
        rule = HeldOut.of(_nest(*h) for h in held)
        shapes = {tuple(sorted(t for t in h if t > 1)) for h in held}
        assert (rule.reason(_nest(*trips)) is None) == (tuple(sorted(t for t in trips if t > 1)) not in shapes)
