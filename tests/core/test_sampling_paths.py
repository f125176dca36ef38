"""Along tree paths the sampler is what it would be had the path been committed; and rows may hold few columns."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lope.core.errors import SettingError
from lope.core.prompt import Path, Prompt, Span
from lope.core.rows import Rows
from lope.core.sampling import PipelineSampler, Sampling
from lope.core.scores import ALL

SIZE = 9
SAMPLINGS = [
    Sampling(temperature=1.0),
    Sampling(temperature=0.7, repetition_penalty=1.4, top_p=0.9),
    Sampling(temperature=1.3, frequency_penalty=0.6, presence_penalty=-0.4, top_k=4),
    Sampling(temperature=1.0, logit_bias={3: 2.0, 4: float("-inf")}, min_new_tokens=2, min_p=0.1),
    Sampling(temperature=1.0, allowed_tokens=(1, 2, 5), repetition_penalty=0.8, top_p=0.8, top_k=2),
    Sampling(repetition_penalty=1.7, frequency_penalty=0.3),
]
paths = st.lists(st.integers(0, SIZE - 1), max_size=4).map(tuple)
seeds = st.integers(0, 1 << 30)


def random_rows(count: int, seed: int) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, SIZE, generator=generator, dtype=torch.float64)
    return Rows(logits, None, SIZE, float("-inf"))


def begun(sampling: Sampling, prompt: Path = (1, 2, 2)) -> PipelineSampler:
    return sampling.begin(Prompt(prompt), frozenset({0}))


def dense(rows: Rows) -> Tensor:
    return torch.stack([rows.dense(row) for row in range(len(rows))])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SAMPLINGS), st.lists(paths, min_size=1, max_size=4), seeds)
def test_a_path_is_as_good_as_committed(sampling: Sampling, branches: list[Path], seed: int) -> None:
    logits = random_rows(len(branches), seed)
    together = dense(begun(sampling).filtered(logits, branches))
    for row, path in enumerate(branches):
        committed = begun(sampling)
        committed.commit(path)
        assert committed.length == 3 + len(path)
        alone = dense(committed.filtered(logits.select([row]), [()]))[0]
        assert torch.equal(together[row] > 0, alone > 0)
        assert torch.allclose(together[row], alone, rtol=1e-12, atol=0)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SAMPLINGS), paths, paths, seeds)
def test_commits_add_up_and_forks_are_apart(sampling: Sampling, first: Path, second: Path, seed: int) -> None:
    logits = random_rows(1, seed)
    steps, leap = begun(sampling), begun(sampling)
    steps.commit(first)
    fork = steps.fork()
    before = dense(fork.filtered(logits, [()]))
    steps.commit(second)
    leap.commit(first + second)
    assert torch.equal(dense(steps.filtered(logits, [()])), dense(leap.filtered(logits, [()])))
    assert torch.equal(dense(fork.filtered(logits, [()])), before)
    assert fork.length == 3 + len(first)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SAMPLINGS), paths, seeds, st.booleans())
def test_columns_may_stand_in_any_order(sampling: Sampling, path: Path, seed: int, own: bool) -> None:
    logits = random_rows(2, seed)
    order = torch.randperm(SIZE, generator=torch.Generator().manual_seed(seed))
    if own:
        ids = torch.stack([order, order.flip(0)])
        turned = Rows(logits.values.gather(-1, ids), ids, SIZE, float("-inf"))
    else:
        turned = Rows(logits.values[:, order], order, SIZE, float("-inf"))
    expected = dense(begun(sampling).filtered(logits, [path, ()]))
    found = dense(begun(sampling).filtered(turned, [path, ()]))
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_row_that_holds_the_support_is_enough(sampling: Sampling) -> None:
    """Columns that the pipeline would take away need not be held."""
    logits = random_rows(1, 3)
    full = begun(sampling).filtered(logits, [(1,)])
    support = (full.dense(0) > 0).nonzero().flatten()
    processed = begun(sampling).processed(logits, [(1,)]).dense(0)
    assert torch.isfinite(processed[support]).all()
    assert float(full.dense(0).sum()) == pytest.approx(1.0, abs=1e-12)


def test_temperature_0_puts_all_mass_on_the_best() -> None:
    logits = Rows(torch.tensor([[1.0, 3.0, 2.0], [2.5, 1.0, 0.0]]), None, 3, float("-inf"))
    sampler = Sampling().begin(Prompt((0,)))
    assert sampler.greedy
    assert sampler.needs.logits == 1
    assert dense(sampler.filtered(logits, [(), ()])).tolist() == [[0, 1, 0], [1, 0, 0]]
    penalised = Sampling(repetition_penalty=2.0).begin(Prompt((1,)))
    assert penalised.needs.logits == ALL
    assert dense(penalised.filtered(logits, [(), (0,)])).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_pictures_are_no_words() -> None:
    prompt = Prompt((1, 7, 7, 2), (Span(1, 3, torch.zeros(2, 4)),))
    assert prompt.text() == (1, 2)
    logits = random_rows(1, 0)
    seen = Sampling(temperature=1.0, repetition_penalty=2.0).begin(prompt).processed(logits, [()]).dense(0)
    assert (seen != logits.values[0]).nonzero().flatten().tolist() == [1, 2]


def test_masks_that_leave_nothing_are_refused() -> None:
    sampling = Sampling(temperature=1.0, allowed_tokens=(2,), logit_bias={2: float("-inf")})
    with pytest.raises(SettingError, match="no token to choose from"):
        begun(sampling).filtered(random_rows(1, 0), [()])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"temperature": -1.0}, "temperature must lie between"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "top_k must be at least 1"),
        ({"top_p": 1.5}, "top_p"),
        ({"min_p": -0.1}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be a finite number above 0"),
        ({"min_new_tokens": -1}, "min_new_tokens"),
        ({"logit_bias": {1: float("inf")}}, "logit_bias of token 1"),
        ({"logit_bias": {-1: 0.0}}, "logit_bias"),
        ({"allowed_tokens": ()}, "at least one token"),
    ],
)
def test_settings_out_of_range_are_refused(bad: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Sampling(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("sampling", [Sampling(logit_bias={SIZE: 1.0}), Sampling(allowed_tokens=(SIZE,))])
def test_tokens_beyond_the_vocabulary_are_refused(sampling: Sampling) -> None:
    with pytest.raises(SettingError, match=f"token {SIZE}, but the vocabulary has {SIZE}"):
        begun(sampling).filtered(random_rows(1, 0), [()])
