"""Row invariance: in exact mode a token's logits have the same bits whatever else is in the pass, whoever computes it.

With torch's kernels any other mode fails, and this file shows it: the planted fault is attention in slot order.
"""

from collections.abc import Callable

import pytest
import torch
from tests.models.lean.random_decoder import backend, one_by_one, scored, tree_with_path, words
from torch import Tensor

from lope.core.draft import EMPTY, chain
from lope.core.prompt import Prompt
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs
from lope.core.verdict import Verdict
from lope.models.lean.backend import LeanBackend
from lope.models.lean.target import LeanTarget, LeanTargetSession

ROWS = {1: range(1, 34), 2: (1, 2, 5, 16, 17, 31, 32, 33)}  # by threads: two are slow where cores are shared
CONTEXTS = (1, 8, 40, 63, 64, 65, 100, 127, 129, 200)
SIZES = {
    "tiny": {},
    "SmolLM2's": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_heads": 9,
        "num_kv_heads": 3,
        "head_dim": 64,
        "tied": True,
    },
    "nothing round": {
        "hidden_size": 90,
        "intermediate_size": 203,
        "num_heads": 5,
        "num_kv_heads": 5,
        "head_dim": 18,
        "qkv_bias": True,
    },
}
DTYPES = [torch.float32, torch.bfloat16]


def made(sizes: str, dtype: torch.dtype) -> LeanBackend:
    found = backend(dtype=dtype, **SIZES[sizes])
    if dtype != torch.float32 and not found.can_be_exact:
        pytest.skip(f"no {dtype} kernels that are alike for all rows here ({torch.backends.cpu.get_cpu_capability()})")
    return found


def packed(target: LeanTarget, session: LeanTargetSession, context: int, rows: int) -> Tensor:
    """[1 + 3, V]: the root and a path of three tokens (or as many as fit), scored in a random tree of so many rows."""
    path = words(min(3, rows - 1), context)
    draft, nodes = tree_with_path(path, rows - 1, seed=rows)
    return scored(target, session.fork(), draft)[[0, *(node + 1 for node in nodes)]]


def read(target: LeanTarget, context: int) -> LeanTargetSession:
    """A session that has run its prompt (all but what a pass needs)."""
    session = target.open(Prompt(words(context, 7)))
    scored(target, session)
    return session


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES)
def test_bits_do_not_depend_on_the_pass(sizes: str, dtype: torch.dtype, set_threads: Callable[[int], None]) -> None:
    target = made(sizes, dtype).target(exact=True)
    alone = {context: one_by_one(target, words(context, 7), chain(words(3, context))) for context in CONTEXTS}
    for threads, counts in ROWS.items():
        set_threads(threads)
        sessions = {context: read(target, context) for context in CONTEXTS}
        for index, rows in enumerate(counts):
            context = CONTEXTS[index % len(CONTEXTS)]
            logits = packed(target, sessions[context], context, rows)
            assert torch.equal(logits, alone[context][: len(logits)]), (threads, rows, context)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_do_not_depend_on_other_requests(dtype: torch.dtype) -> None:
    target = made("tiny", dtype).target(exact=True)
    path = words(3)
    jobs = []
    for number, context in enumerate(CONTEXTS):
        draft, nodes = tree_with_path(path, 4 + 3 * number, seed=number)
        jobs.append((context, draft, nodes))
    together = target.score(
        [Job(target.open(Prompt(words(context, 7))), draft, Needs(logits=ALL)) for context, draft, _ in jobs]
    )
    for (context, _, nodes), scores in zip(jobs, together, strict=True):
        rows = scores.logits.values[[0, *(node + 1 for node in nodes)]]
        assert torch.equal(rows, one_by_one(target, words(context, 7), chain(path))), context


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_do_not_depend_on_how_a_context_was_committed(dtype: torch.dtype) -> None:
    """Read at once, written token by token, or accepted out of trees: up to 128 items have the same bits."""
    target = made("tiny", dtype).target(exact=True)
    text = words(90)
    at_once = scored(target, target.open(Prompt(text)))
    by_tokens = target.open(Prompt(text[:1]))
    by_trees = target.open(Prompt(text[:1]))
    for token in text[1:]:
        scored(target, by_tokens)
        by_tokens.commit(EMPTY, Verdict((), (token,)))
    for start in range(1, len(text), 4):
        draft, nodes = tree_with_path(text[start : start + 3], 9, seed=start)
        scored(target, by_trees, draft)
        emitted = text[start : start + 4]
        by_trees.commit(draft, Verdict(nodes[: len(emitted) - 1], emitted))
    assert torch.equal(scored(target, by_tokens), at_once)
    assert torch.equal(scored(target, by_trees), at_once)


@pytest.mark.usefixtures("torch_kernels")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_slot_order_moves_some_bit(dtype: torch.dtype) -> None:
    target = made("tiny", dtype).target(exact=False)
    moved = 0
    for rows in (9, 33):
        for context in CONTEXTS[2::2]:
            alone = one_by_one(target, words(context, 7), chain(words(min(3, rows - 1), context)))
            moved += int((packed(target, read(target, context), context, rows) != alone).sum())
    assert moved > 0
