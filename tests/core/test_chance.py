"""Ordered draws without replacement have the law of Plackett and Luce, for both kinds of chance."""

from collections.abc import Callable
from itertools import permutations

import pytest
import torch

from lope.core.chance import KeyedChance, SharedChance
from lope.core.protocols import Chance
from lope.core.statistics import chi_square

WEIGHTS = torch.tensor([0.45, 0.0, 0.3, 0.15, 0.1])
KINDS: dict[str, Callable[[int], Chance]] = {
    "keyed": lambda seed: KeyedChance(seed, 1, 9),
    "shared": SharedChance,
}


def plackett_luce(order: tuple[int, ...], weights: list[float]) -> float:
    """The probability of drawing these columns in this order."""
    left = sum(weights)
    probability = 1.0
    for column in order:
        probability *= weights[column] / left
        left -= weights[column]
    return probability


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_orders_have_the_law_of_plackett_and_luce(kind: str, count: int) -> None:
    orders = list(permutations((0, 2, 3, 4), count))
    counts = dict.fromkeys(orders, 0)
    for seed in range(6000):
        counts[tuple(KINDS[kind](seed).order(WEIGHTS, None, count, 5))] += 1
    law = torch.tensor([plackett_luce(order, WEIGHTS.tolist()) for order in orders])
    assert chi_square(torch.tensor(list(counts.values())), law)[1] > 1e-4


def test_one_stream_has_that_law_too() -> None:
    chance = KeyedChance(3, 0, 0)
    orders = list(permutations((0, 2, 3, 4), 2))
    counts = dict.fromkeys(orders, 0)
    for _ in range(6000):
        counts[tuple(chance.order(WEIGHTS, None, 2, 0))] += 1
    law = torch.tensor([plackett_luce(order, WEIGHTS.tolist()) for order in orders])
    assert chi_square(torch.tensor(list(counts.values())), law)[1] > 1e-4


@pytest.mark.parametrize("kind", list(KINDS))
def test_columns_without_weight_are_never_drawn(kind: str) -> None:
    chance = KINDS[kind](0)
    assert sorted(chance.order(WEIGHTS, None, 9, 0)) == [0, 2, 3, 4]
    assert chance.order(torch.tensor([0.0, 1e-40, 0.0]), None, 3, 0) == [1]
    assert chance.order(torch.zeros(3), None, 2, 0) == []
    assert chance.order(torch.zeros(3), None, 1, 0) == []
    assert torch.equal(WEIGHTS, torch.tensor([0.45, 0.0, 0.3, 0.15, 0.1])), "weights are left alone"


def test_acceptance_has_its_probability() -> None:
    chance = KeyedChance(5, 2, 7)
    assert all(chance.accept(1.0) and chance.accept(1.5) for _ in range(100))
    assert not any(chance.accept(0.0) or chance.accept(-0.1) for _ in range(100))
    accepted = sum(chance.accept(0.3) for _ in range(5000))
    assert chi_square(torch.tensor([accepted, 5000 - accepted]), torch.tensor([0.3, 0.7]))[1] > 1e-4


def test_a_round_repeats_itself_and_no_other() -> None:
    weights = torch.ones(1000)

    def stream(*keys: int) -> list[int]:
        chance = KeyedChance(*keys)
        return [chance.order(weights, None, 1, 0)[0] for _ in range(4)] + chance.gumbel(3, None, 0).tolist()

    assert stream(1, 2, 3) == stream(1, 2, 3)
    assert len({tuple(stream(*keys)) for keys in [(1, 2, 3), (1, 2, 4), (1, 3, 2), (2, 1, 3)]}) == 4


def test_shared_noise_belongs_to_tokens_not_to_columns() -> None:
    chance = SharedChance(11)
    weights = torch.rand(50, generator=torch.Generator().manual_seed(0))
    ids = torch.randperm(50, generator=torch.Generator().manual_seed(1))
    order = chance.order(weights, None, 10, 4)
    assert ids[chance.order(weights[ids], ids, 10, 4)].tolist() == order
    assert (weights.log() + chance.gumbel(50, None, 4)).argsort(descending=True)[:10].tolist() == order
    assert chance.order(weights, None, 10, 5) != order


def test_shared_noise_decides_no_acceptance() -> None:
    with pytest.raises(AssertionError, match="shared noise"):
        SharedChance(0).accept(0.5)
