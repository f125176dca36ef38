"""Law 3: a tree's logits are those of a forward pass token by token along each path; in exact mode, their very bits."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.models.lean.random_decoder import backend, one_by_one, random_tree, scored, words

from lope.core.draft import Draft
from lope.core.prompt import Path, Prompt
from lope.models.lean.layout import Layout
from lope.models.lean.native.library import why_not
from lope.models.lean.target import LeanTarget
from lope.models.loaded import LoadedModel

TOLERANCE = 2e-4
# one- and two-key contexts, the longest chain beside a tree, every side of a block's edge, contexts of several blocks
CONTEXTS = (1, 2, 7, 8, 9, 30, 61, 62, 63, 64, 65, 66, 100, 125, 127, 128, 129, 190, 191, 200, 255, 256, 257, 300)
DECODERS = {
    "grouped": {},
    "wide heads, no groups": {"num_kv_heads": 4, "head_dim": 32},
    "three in a group, q and k norm": {"num_heads": 6, "num_kv_heads": 2, "head_dim": 32, "qk_norm": True},
    "one key head, biases, tied": {"num_heads": 8, "num_kv_heads": 1, "qkv_bias": True, "tied": True},
    "odd sizes": {"num_heads": 3, "num_kv_heads": 3, "head_dim": 20, "hidden_size": 60, "intermediate_size": 83},
}
KINDS: dict[str, Callable[[int, int], Draft]] = {
    "chain": lambda count, seed: random_tree(count, seed, deep=1.0),
    "wide": lambda count, seed: random_tree(count, seed, deep=0.0),
    "mixed": lambda count, seed: random_tree(count, seed),
    "copies": lambda count, seed: random_tree(count, seed, copies=0.5, deep=0.3),
}


def difference(target: LeanTarget, prompt: Path, draft: Draft) -> float:
    return float((scored(target, target.open(Prompt(prompt)), draft) - one_by_one(target, prompt, draft)).abs().max())


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("exact", [True, False], ids=["path order", "slot order"])
@pytest.mark.parametrize("name", DECODERS)
def test_a_tree_is_scored_as_its_paths_are(name: str, exact: bool) -> None:
    target = backend(seed=len(name), **DECODERS[name]).target(exact)
    # every decoder sees every other context, and each context is seen; slot order has no edges to try
    for index, context in enumerate(CONTEXTS[list(DECODERS).index(name) % 2 :: 2 if exact else 4]):
        kind = list(KINDS)[index % len(KINDS)]
        draft = KINDS[kind]((20, 5, 11)[index % 3], index)
        found = difference(target, words(context, index), draft)
        assert found <= (0.0 if exact else TOLERANCE), (context, kind, len(draft))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [33, 129])
def test_large_trees_keep_their_bits(kind: str, count: int) -> None:
    target = backend(num_layers=1).target(exact=True)
    assert difference(target, words(60), KINDS[kind](count, count)) == 0.0


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("family", ["llama3", "llama-yarn", "qwen2", "qwen3", "mistral"])
def test_every_family_scores_trees_as_paths(family: str, tiny_model: Callable[..., LoadedModel]) -> None:
    for exact in (True, False):
        target = tiny_model(family).backend.target(exact)
        for context, seed in ((3, 0), (62, 1), (130, 2)):
            assert difference(target, words(context, seed), random_tree(16, seed)) <= (0.0 if exact else TOLERANCE)


class Blind(Layout):
    """A node sees itself, but not its ancestors."""

    def __init__(self, start: int, chain: int, ancestors: tuple[Path, ...] = ()) -> None:
        super().__init__(start, chain, tuple((path[-1],) * len(path) for path in ancestors))


class BySlot(Layout):
    """A node's position is the number of its slot."""

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.array(self.slots, dtype=np.int64) + 1


@pytest.mark.usefixtures("torch_kernels")
@pytest.mark.parametrize("layout", [Blind, BySlot])
@pytest.mark.parametrize("exact", [True, False], ids=["path order", "slot order"])
def test_a_planted_fault_shows(layout: type[Layout], exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    target = backend().target(exact)
    draft = random_tree(16, 1)
    with monkeypatch.context() as planted:
        planted.setattr("lope.models.lean.target.Layout", layout)
        wrong = scored(target, target.open(Prompt(words(20))), draft)
    right = one_by_one(target, words(20), draft)
    assert torch.equal(wrong[0], right[0]) or not exact, "the root is no node"
    assert float((wrong - right).abs().max()) > 100 * TOLERANCE


def test_planted_faults_show_in_native_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is seen in the logits; the other would lead C++ out of the cache, and is refused before it."""
    if reason := why_not():
        pytest.skip(f"no native kernels here: {reason}")
    monkeypatch.setenv("LOPE_KERNELS", "native")
    target, draft = backend().target(exact=True), random_tree(16, 1)
    right = one_by_one(target, words(20), draft)
    monkeypatch.setattr("lope.models.lean.target.Layout", Blind)
    assert float((scored(target, target.open(Prompt(words(20))), draft) - right).abs().max()) > 100 * TOLERANCE
    monkeypatch.setattr("lope.models.lean.target.Layout", BySlot)
    with pytest.raises(AssertionError, match="its own path"):
        scored(target, target.open(Prompt(words(20))), draft)
