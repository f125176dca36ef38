"""What every bandit of the table promises: waiting plays, state, merging, clear errors."""

import json

import pytest

from lope.core.errors import LopeError
from lope.learning import BANDITS

SPELLINGS = [
    *BANDITS,
    "ucb1:window=20",
    "ucb1:discount=0.9",
    "ucb_tuned:window=20",
    "thompson:discount=0.9",
    "thompson:fractional=true,window=20",
    "gaussian_thompson:window=20",
    "exp3:discount=0.9",
    "exp3:window=20,horizon=1000",
    "epsilon_greedy:gap=0.2",
    "linear_thompson:discount=0.9",
]
REWARDS = [0.1, 0.9, 0.35, 1.0, 0.0, 0.6, 0.85]


def play(bandit, steps: int, first: int = 0) -> list[int]:
    arms = []
    for step in range(first, first + steps):
        arms.append(bandit.choose())
        bandit.learn(arms[-1], REWARDS[(3 * step + arms[-1]) % len(REWARDS)])
    return arms


def check_restored(spelling: str, restore) -> None:
    saved_from = BANDITS.make(spelling).open(3, seed=5)
    play(saved_from, 50)
    saved_from.choose()  # one play is waiting when the state is taken
    state = json.loads(json.dumps(saved_from.save()))
    restored = BANDITS.make(spelling).open(3, seed=99)
    restore(restored, state)
    for bandit in (saved_from, restored):
        bandit.learn(1, 0.5)
    assert play(restored, 60, first=50) == play(saved_from, 60, first=50)
    assert restored.save() == saved_from.save()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_restored_bandit_continues_bit_by_bit(spelling: str) -> None:
    check_restored(spelling, lambda bandit, state: bandit.restore(state))


@pytest.mark.parametrize("lost", ["stream", "plays", "history", "counts"])
def test_state_that_is_not_restored_is_noticed(lost: str) -> None:
    def forgetful(bandit, state) -> None:
        bandit.restore({**state, lost: bandit.save()[lost]})

    with pytest.raises(AssertionError):
        check_restored("exp3:window=20", forgetful)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_requests_that_choose_together_spread(spelling: str) -> None:
    bandit = BANDITS.make(spelling).open(8, seed=3)
    chosen = {bandit.choose() for _ in range(8)}
    assert len(chosen) > 1 or spelling == "fixed"
    if spelling.startswith("ucb"):
        assert chosen == set(range(8))


@pytest.mark.parametrize("spelling", ["ucb1", "ucb_tuned"])
def test_waiting_plays_count_after_learning_too(spelling: str) -> None:
    bandit = BANDITS.make(spelling).open(4)
    for arm in range(4):
        bandit.learn(arm, 0.5)
    assert sorted(bandit.choose() for _ in range(8)) == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("spelling", ["ucb1", "ucb_tuned"])
def test_without_waiting_plays_all_would_pick_one_arm(spelling: str) -> None:
    bandit = BANDITS.make(spelling).open(4)
    for arm in range(4):
        bandit.learn(arm, 0.5)
    chosen = []
    for _ in range(8):
        chosen.append(bandit.choose())
        bandit.withdraw(chosen[-1])
    assert chosen == [0] * 8


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_withdrawn_play_teaches_nothing(spelling: str) -> None:
    bandit = BANDITS.make(spelling).open(3, seed=1)
    play(bandit, 10)
    before = bandit.save()
    bandit.withdraw(bandit.choose())
    after = bandit.save()
    assert {k: v for k, v in after.items() if k != "stream"} == {k: v for k, v in before.items() if k != "stream"}
    with pytest.raises(LopeError, match="no play of arm 0 is waiting"):
        bandit.withdraw(0)


@pytest.mark.parametrize("spelling", [s for s in SPELLINGS if "window" not in s])
def test_merging_adds_what_the_other_learned_since(spelling: str) -> None:
    shared = BANDITS.make(spelling).open(3, seed=1)
    for step in range(9):
        shared.learn(step % 3, REWARDS[step % 7])
    base = shared.save()
    one, two = (BANDITS.make(spelling).open(3, seed=seed) for seed in (2, 3))
    one.restore(base)
    two.restore(base)
    two.learn(2, 1.0)
    two.learn(0, 0.0)
    one.merge(two, since=base)
    # nothing learned by `one` itself: with no discount it now knows what `two` knows
    for key in ("counts", "sums", "squares") if "counts" in base else ("moment",):
        expected = two.save()[key]
        if "discount" in spelling:  # one's own past has not faded, since nothing came after it on its side
            fade = 0.9**2
            expected = _plus(base[key], _plus(expected, base[key], -fade), 1.0)
        assert _flat(one.save()[key]) == pytest.approx(_flat(expected), abs=1e-12)
    assert one.save()["learned"] == 11


def _flat(values) -> list[float]:
    return [x for row in values for x in row] if isinstance(values[0], list) else list(values)


def _plus(left, right, scale: float) -> list[float]:
    return [a + scale * b for a, b in zip(_flat(left), _flat(right), strict=True)]


def test_merged_windows_hold_the_newest_of_both() -> None:
    one, two = (BANDITS.make("ucb1:window=4").open(2) for _ in range(2))
    for reward in (0.1, 0.2, 0.3):
        one.learn(0, reward)
    for reward in (0.4, 0.5, 0.6):
        two.learn(1, reward)
    one.merge(two)
    assert sorted(credit for _, credit in one.tally.history) == [0.2, 0.3, 0.5, 0.6]
    assert one.tally.counts == [2.0, 2.0]
    assert one.tally.sums == pytest.approx([0.5, 1.1])


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan"), float("inf")])
def test_rewards_outside_the_unit_interval_are_refused(spelling: str, reward: float) -> None:
    bandit = BANDITS.make(spelling).open(2)
    with pytest.raises(LopeError, match=r"a reward lies in \[0, 1\]"):
        bandit.learn(bandit.choose(), reward)


@pytest.mark.parametrize("spelling", [s for s in SPELLINGS if s != "fixed"])
def test_arms_that_are_not_there_are_refused(spelling: str) -> None:
    for none in (0, -1):
        with pytest.raises(LopeError, match="at least one arm"):
            BANDITS.make(spelling).open(none)
    bandit = BANDITS.make(spelling).open(2)
    for arm in (-1, 2):
        with pytest.raises(LopeError, match="arms are 0 to 1"):
            bandit.learn(arm, 0.5)


def test_the_state_of_another_bandit_is_refused() -> None:
    state = BANDITS.make("ucb1").open(2).save()
    for spelling, arms in (("ucb1:bonus=1.0", 2), ("ucb1", 3), ("exp3", 2), ("linear_thompson", 2)):
        with pytest.raises(LopeError, match="this is the state of ucb1 with 2 arms"):
            BANDITS.make(spelling).open(arms).restore(state)
    with pytest.raises(LopeError, match="lacks plays"):
        BANDITS.make("ucb1").open(2).restore({k: v for k, v in state.items() if k != "plays"})


def test_plays_lost_with_their_process_can_be_dropped() -> None:
    bandit = BANDITS.make("ucb1").open(2)
    bandit.choose()
    again = BANDITS.make("ucb1").open(2)
    again.restore(bandit.save(), waiting=False)
    assert again.choose() == 0
    assert again.tally.waiting == [1, 0]


@pytest.mark.parametrize("spelling", [s for s in SPELLINGS if s != "fixed"])
def test_one_arm_is_always_chosen(spelling: str) -> None:
    assert set(play(BANDITS.make(spelling).open(1), 30)) == {0}


@pytest.mark.parametrize(
    "spelling",
    [
        "ucb1:window=0",
        "ucb1:discount=0",
        "ucb1:discount=1.5",
        "ucb1:window=5,discount=0.5",
        "ucb1:bonus=-1",
        "thompson:success=0",
        "gaussian_thompson:scale=0",
        "exp3:exploration=0",
        "exp3:horizon=0",
        "epsilon_greedy:epsilon=2",
        "epsilon_greedy:gap=0",
        "linear_thompson:dimension=0",
        "fixed:arm=-1",
    ],
)
def test_settings_out_of_range_are_refused(spelling: str) -> None:
    with pytest.raises(LopeError):
        BANDITS.make(spelling)
