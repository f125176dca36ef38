"""The noise is uniform hash bits turned into Gumbel values: moments, independence, and purity."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lope.core.noise import exponential_noise, gumbel_noise, key, mix

IDS = torch.arange(49_152)
EULER = 0.5772156649015329


def test_the_finaliser_is_splitmix64() -> None:
    """The first outputs of the reference SplitMix64 from state 0 and 1234567 (Vigna's splitmix64.c; Java's tests)."""
    assert mix(0) == 0xE220A8397B1DCDAF
    assert mix(1234567) == 6457827717110365317


def test_a_gumbel_value_has_gumbels_mean_and_variance() -> None:
    noise = torch.cat([gumbel_noise(seed, 3, IDS) for seed in range(8)])
    error = math.pi / math.sqrt(6 * len(noise))
    assert float(noise.mean()) == pytest.approx(EULER, abs=5 * error)
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, rel=0.03)


@pytest.mark.parametrize(("seed", "position"), [(0, 0), (0, 1), (1, 0), (2**63, 5), (-1, 2**31)])
def test_an_exponential_value_has_the_exponential_law(seed: int, position: int) -> None:
    assert stats.kstest(exponential_noise(seed, position, IDS).numpy(), "expon").pvalue > 1e-4


@pytest.mark.parametrize(
    ("one", "other"), [((0, 5), (0, 6)), ((0, 5), (1, 5)), ((0, 5), (5, 0)), ((1, 2), (2, 1)), ((7, 0), (7, 1 << 20))]
)
def test_positions_and_seeds_are_independent(one: tuple[int, int], other: tuple[int, int]) -> None:
    pair = torch.stack([gumbel_noise(*one, IDS), gumbel_noise(*other, IDS)])
    assert abs(float(torch.corrcoef(pair)[0, 1])) < 5 / math.sqrt(len(IDS))


@pytest.mark.parametrize("lag", [1, 2, 64, 4096])
def test_neighbouring_tokens_are_independent(lag: int) -> None:
    noise = gumbel_noise(3, 9, IDS)
    pair = torch.stack([noise[:-lag], noise[lag:]])
    assert abs(float(torch.corrcoef(pair)[0, 1])) < 5 / math.sqrt(len(IDS))


def test_one_token_is_independent_from_position_to_position() -> None:
    token = torch.tensor([7])
    noise = torch.cat([gumbel_noise(3, position, token) for position in range(4000)])
    assert stats.kstest(noise.numpy(), "gumbel_r").pvalue > 1e-4
    assert abs(float(torch.corrcoef(torch.stack([noise[:-1], noise[1:]]))[0, 1])) < 5 / math.sqrt(4000)


@settings(max_examples=50, deadline=None)
@given(st.integers(-(2**63), 2**64), st.integers(0, 2**40), st.lists(st.integers(0, 200_000), min_size=1, max_size=9))
def test_a_tokens_noise_depends_on_nothing_else(seed: int, position: int, tokens: list[int]) -> None:
    together = gumbel_noise(seed, position, torch.tensor(tokens))
    assert torch.isfinite(together).all()
    for token, value in zip(tokens, together, strict=True):
        assert gumbel_noise(seed, position, torch.tensor([token]))[0] == value
    strided = torch.tensor([tokens, tokens]).T[:, 0]
    assert torch.equal(gumbel_noise(seed, position, strided), together)


def test_the_ids_are_left_alone() -> None:
    ids = torch.arange(5)
    gumbel_noise(1, 1, ids)
    assert torch.equal(ids, torch.arange(5))


def test_keys_depend_on_the_order_of_their_parts() -> None:
    assert len({key(0, 1, 2), key(2, 1, 0), key(1, 0, 2), key(0, 1), key(1), key(0)}) == 6
