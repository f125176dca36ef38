"""The pipeline means what transformers' processors mean, in the order in which `generate` runs them."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.generation import logits_process as theirs

from lope.core.filters import candidates, min_p, top_k
from lope.core.prompt import Path, Prompt
from lope.core.rows import Rows
from lope.core.sampling import Sampling

quick = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
SIZES = st.sampled_from([5, 40, 129, 700, 6000])


def random_logits(rows: int, size: int, spread: float, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(rows, size, generator=generator, dtype=torch.float64)


def their_law(sampling: Sampling, ids: tuple[int, ...], prompt: int, stops: tuple[int, ...], logits: Tensor) -> Tensor:
    """Probabilities [r, V] by transformers' processors; which of them run, and in which order, is as in `generate`."""
    chain: theirs.LogitsProcessorList = theirs.LogitsProcessorList()
    if sampling.logit_bias:
        bias = {(token,): float(value) for token, value in sampling.logit_bias.items()}
        chain.append(theirs.SequenceBiasLogitsProcessor(bias))
    if sampling.repetition_penalty != 1.0:
        chain.append(theirs.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    if sampling.min_new_tokens and stops:
        chain.append(theirs.MinNewTokensLengthLogitsProcessor(prompt, sampling.min_new_tokens, list(stops)))
    chain.append(theirs.TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k is not None:
        chain.append(theirs.TopKLogitsWarper(sampling.top_k))
    if sampling.top_p is not None and sampling.top_p < 1.0:
        chain.append(theirs.TopPLogitsWarper(sampling.top_p))
    if sampling.min_p is not None:
        chain.append(theirs.MinPLogitsWarper(sampling.min_p))
    context = torch.tensor([ids] * len(logits))
    return torch.softmax(chain(context, logits.clone()), dim=-1)


def our_law(sampling: Sampling, prompt: Path, path: Path, stops: frozenset[int], logits: Tensor) -> Tensor:
    sampler = sampling.begin(Prompt(prompt), stops)
    rows = sampler.filtered(Rows(logits, None, logits.shape[-1], float("-inf")), [path] * len(logits))
    return torch.stack([rows.dense(row) for row in range(len(logits))])


thousandths = st.integers(0, 1000).map(lambda count: count / 1000)
samplings = st.builds(
    Sampling,
    temperature=st.floats(0.2, 3.0),
    top_k=st.none() | st.integers(1, 300),
    top_p=st.none() | thousandths,
    min_p=st.none() | thousandths,
    repetition_penalty=st.sampled_from([1.0, 0.7, 1.3, 2.0]),
    logit_bias=st.dictionaries(st.integers(0, 4), st.floats(-5.0, 5.0, width=32), max_size=3),
    min_new_tokens=st.integers(0, 4),
)


@quick
@given(samplings, SIZES, st.floats(0.05, 6.0), st.integers(0, 1 << 30), st.integers(0, 3))
def test_the_pipeline_is_transformers(sampling: Sampling, size: int, spread: float, seed: int, words: int) -> None:
    logits = random_logits(3, size, spread, seed)
    context = tuple(torch.randint(0, size, (5,), generator=torch.Generator().manual_seed(seed)).tolist())
    prompt, path = context[: 5 - words], context[5 - words :]
    expected = their_law(sampling, context, len(prompt), (2, 3), logits)
    ours = our_law(sampling, prompt, path, frozenset({3, 2}), logits)
    assert torch.equal(ours > 0, expected > 0)
    assert torch.allclose(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [49_152, 128_256])
@pytest.mark.parametrize("spread", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("mass", [0.3, 0.9, 0.999])
def test_top_p_looks_as_far_as_it_must(size: int, spread: float, mass: float) -> None:
    """Flat laws keep tens of thousands of tokens, far more than the first look at the largest logits."""
    logits = random_logits(2, size, spread, 1)
    kept = torch.isfinite(theirs.TopPLogitsWarper(mass)(torch.zeros(2, 1, dtype=torch.int64), logits))
    columns, ours = candidates(logits, mass)
    found = torch.zeros_like(kept).scatter(-1, columns, ours)
    assert torch.equal(found, kept)
    assert int(kept.sum(-1).max()) > 1


@quick
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=40), st.integers(1, 50), st.floats(0.01, 1.0))
def test_ties(values: list[int], count: int, ratio: float) -> None:
    """Whole numbers tie often. At top-p's edge transformers may keep another one of equals, but never another law."""
    logits = torch.tensor([values], dtype=torch.float64)
    nothing = torch.zeros(1, 1, dtype=torch.int64)
    kept = torch.isfinite(theirs.TopKLogitsWarper(count)(nothing, logits))
    columns, ours = top_k(logits, count)
    assert torch.equal(torch.zeros_like(kept).scatter(-1, columns, ours), kept)
    assert torch.equal(min_p(logits, ratio), torch.isfinite(theirs.MinPLogitsWarper(ratio)(nothing, logits)))
    columns, ours = candidates(logits, ratio)
    survivors = logits.gather(-1, columns)[ours].sort().values
    expected = logits[torch.isfinite(theirs.TopPLogitsWarper(ratio)(nothing, logits))].sort().values
    assert torch.equal(survivors, expected)


def test_float32_keeps_what_float64_keeps_but_at_the_edge() -> None:
    logits = random_logits(8, 49_152, 3.0, 5)
    wide = our_law(Sampling(temperature=0.8, top_p=0.9), (0,), (), frozenset(), logits)
    narrow = our_law(Sampling(temperature=0.8, top_p=0.9), (0,), (), frozenset(), logits.float())
    assert float((wide - narrow).abs().max()) < 1e-5
    assert torch.allclose(narrow.sum(-1), torch.ones(8), atol=1e-6)
