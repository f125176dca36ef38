"""On Bernoulli arms 0.6 and 0.4 regret stays below each method's bound; forgetting pays where rewards drift."""

import math

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning.bandits.experiment import BernoulliExperiment

GAP, STEPS, SEEDS = 0.2, 3000, range(8)
AT = np.array([STEPS // 10, STEPS])


STILL = BernoulliExperiment()


def regret(method: str, experiment: BernoulliExperiment = STILL) -> np.ndarray:
    return experiment.run(method, SEEDS, STEPS, AT).mean


def ucb1_bound(steps: int) -> float:
    """Auer et al. 2002, theorem 1."""
    return 8 * math.log(steps) / GAP + (1 + math.pi**2 / 3) * GAP


def exploring_bound(steps: int) -> float:
    """epsilon_n-greedy explores sum min(1, 5 * 2 / (gap^2 t)) times, half of it on the wrong arm; as much again for
    the mistakes in between, which theorem 3 shows to be of lower order."""
    return 2 * GAP / 2 * sum(min(1.0, 10 / (GAP**2 * step)) for step in range(1, steps + 1))


BOUNDS = {
    "ucb1": ucb1_bound,
    "ucb_tuned": ucb1_bound,  # has no theorem; its authors find it below UCB1 everywhere
    "thompson": ucb1_bound,  # its own (ln T / gap + 1 / gap^3 with large constants) is weaker here
    "gaussian_thompson": ucb1_bound,
    "exp3:horizon=3000": lambda steps: 2 * math.sqrt((math.e - 1) * STEPS * 2 * math.log(2)),
    "epsilon_greedy:gap=0.2": exploring_bound,
}


@pytest.mark.parametrize("method", list(BOUNDS))
def test_regret_grows_no_faster_than_the_bound(method: str) -> None:
    early, late = regret(method)
    assert early < BOUNDS[method](AT[0])
    assert late < BOUNDS[method](AT[1])
    if not method.startswith("exp3"):  # logarithmic: a tenfold horizon adds 29 % to ln t; linear would be tenfold
        assert late < 5 * early


def test_linear_regret_is_noticed() -> None:
    for method in ("fixed:arm=1", "epsilon_greedy:epsilon=1"):
        early, late = regret(method)
        assert late > 5 * early
        assert late > BOUNDS["exp3:horizon=3000"](STEPS)


def test_a_fixed_arm_costs_its_gap() -> None:
    assert regret("fixed:arm=1")[1] == pytest.approx(GAP * STEPS)
    assert regret("fixed")[1] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("forgetful", "faithful"),
    [
        ("ucb1:bonus=0.5,window=300", "ucb1:bonus=0.5"),
        ("thompson:discount=0.99", "thompson"),
        ("gaussian_thompson:window=200", "gaussian_thompson"),
        ("ucb_tuned:discount=0.99", "ucb_tuned"),
    ],
)
def test_forgetting_pays_when_the_arms_change_places(forgetful: str, faithful: str) -> None:
    drifting = BernoulliExperiment((0.9, 0.1), switch_at=STEPS // 2)
    assert regret(forgetful, drifting)[1] < regret(faithful, drifting)[1]


def test_chances_are_checked() -> None:
    with pytest.raises(LopeError, match="between 0 and 1"):
        BernoulliExperiment((0.5, 1.5))
    with pytest.raises(LopeError, match="at least one arm"):
        BernoulliExperiment(())
