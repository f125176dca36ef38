"""Law 3: a draft tree in one pass says what token-by-token decoding says along each path."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.models import families
from tests.models.huggingface.other_families import OTHERS
from tests.models.huggingface.reference import TOLERANCE, path_difference, tree, words

from lope.core.draft import EMPTY, chain
from lope.models.huggingface import HuggingFaceBackend, attention_mask
from lope.models.lean.layout import Layout

Adapted = Callable[[str], tuple[Any, HuggingFaceBackend]]
PROMPT = words(11, seed=1)
FAMILIES = ["llama2", "llama3", "mistral", "qwen2", "qwen3", *OTHERS]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_path_is_decoded_as_if_alone(name: str, adapted: Adapted) -> None:
    assert set(FAMILIES) <= {*families.FAMILIES, *OTHERS}
    assert path_difference(*adapted(name), PROMPT, tree(9, seed=2)) < TOLERANCE


@pytest.mark.parametrize("draft", [EMPTY, chain((7,)), chain((7, 8, 9, 7, 8)), tree(2, seed=0), tree(14, seed=5)])
def test_every_shape_of_tree(draft: Any, adapted: Adapted) -> None:
    assert path_difference(*adapted("qwen3"), PROMPT, draft) < TOLERANCE
    assert path_difference(*adapted("gpt_neox"), PROMPT[:1], draft) < TOLERANCE


def self_only(layout: Layout) -> NDArray[np.bool_]:
    """A node sees the context and itself, not the nodes above it."""
    seen = honest(layout)
    tree_slots = np.arange(seen.shape[1]) >= layout.context
    for row, path in enumerate(layout.ancestors, start=layout.chain):
        seen[row] &= ~tree_slots
        seen[row, path[-1]] = True
    return seen


def no_context(layout: Layout) -> NDArray[np.bool_]:
    """A node sees its path, not the context."""
    seen = honest(layout)
    seen[layout.chain :, : layout.context] = False
    return seen


def causal(layout: Layout) -> NDArray[np.bool_]:
    """A node sees all that was written before it, other branches too."""
    seen = honest(layout)
    return np.arange(seen.shape[1])[None, :] <= np.array(layout.slots)[:, None]


honest = attention_mask.visible


@pytest.mark.parametrize("mutant", [self_only, no_context, causal])
@pytest.mark.parametrize("name", ["llama2", "gpt_neox", "opt"])
def test_a_wrong_mask_is_noticed(name: str, mutant: Any, adapted: Adapted, monkeypatch: pytest.MonkeyPatch) -> None:
    model, backend = adapted(name)
    monkeypatch.setattr(attention_mask, "visible", mutant)
    assert path_difference(model, backend, PROMPT, tree(9, seed=2)) > 100 * TOLERANCE


def test_positions_of_the_cache_are_noticed(adapted: Adapted, monkeypatch: pytest.MonkeyPatch) -> None:
    model, backend = adapted("llama2")
    in_slot_order = property(lambda layout: np.arange(layout.start + 1, layout.start + layout.rows + 1))
    monkeypatch.setattr(attention_mask, "visible", _with_lengths(Layout.__dict__["lengths"].func))
    monkeypatch.setattr(Layout, "lengths", in_slot_order)
    assert path_difference(model, backend, PROMPT, tree(9, seed=2)) > 100 * TOLERANCE


def _with_lengths(lengths: Any) -> Any:
    """The honest mask, whatever was done to the positions."""

    def visible(layout: Layout) -> NDArray[np.bool_]:
        seen: NDArray[np.bool_] = np.arange(layout.used)[None, :] < np.minimum(lengths(layout), layout.context)[:, None]
        for row, path in enumerate(layout.ancestors, start=layout.chain):
            seen[row, list(path)] = True
        return seen

    return visible
