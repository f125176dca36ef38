"""Acceptance by position, learnt online: P(position k accepted | position k - 1 accepted and k was offered)."""

from dataclasses import dataclass, field

# how many observations a belief weighs against what is seen
_PRIOR_WEIGHT = 2.0
_POOL_WEIGHT = 4.0


@dataclass
class Tally:
    """Discounted trials and successes by position; index 0: whether anything was offered at all."""

    trials: list[float] = field(default_factory=list)
    successes: list[float] = field(default_factory=list)

    def fade(self, keep: float) -> None:
        """Let all that was seen count less, so that what has not been tried for long is tried again."""
        self.trials = [count * keep for count in self.trials]
        self.successes = [count * keep for count in self.successes]

    def add(self, position: int, success: bool) -> None:
        """Count one trial."""
        while len(self.trials) <= position:
            self.trials.append(0.0)
            self.successes.append(0.0)
        self.trials[position] += 1.0
        self.successes[position] += success

    def mean(self, position: int, belief: float, weight: float) -> float:
        """The share of successes, `belief` counting as `weight` trials."""
        if position >= len(self.trials):
            return belief
        return (self.successes[position] + weight * belief) / (self.trials[position] + weight)


class Acceptance:
    """Tallies for each mood of a request, which lean on a tally of all.

    A mood is what became of the request's last draft and which source proposed it: copied text comes in runs, so a
    draft that was accepted whole foretells another. Position k is believed to be like position k - 1 until it has been
    tried; the first like `prior`.

    depth:  positions that are told.
    memory: about how many drafts count.
    """

    def __init__(self, depth: int, prior: float, memory: float) -> None:
        self._depth = depth
        self._prior = prior
        self._keep = 1.0 - 1.0 / memory
        self._all = Tally()
        self._moods: dict[tuple[int, int], Tally] = {}
        self._told: dict[tuple[int, int], tuple[float, list[float]]] = {}

    def chances(self, mood: tuple[int, int]) -> tuple[float, list[float]]:
        """(chance that a draft comes at all, [depth] chances that it is accepted down to position 1, 2, ...)."""
        told = self._told.get(mood)
        if told is None:
            told = self._told[mood] = self._chances(mood)
        return told

    def learn(self, mood: tuple[int, int], offered: bool, accepted: int, rejected: bool) -> None:
        """One draft: was there any, how many positions were accepted, was the next one offered and rejected?"""
        for tally in (self._all, self._moods.setdefault(mood, Tally())):
            tally.fade(self._keep)
            tally.add(0, offered)
            for position in range(1, accepted + 1):
                tally.add(position, True)
            if rejected:
                tally.add(accepted + 1, False)
        self._told.clear()

    def fade(self, keep: float) -> None:
        """Let all that was learnt count less."""
        for tally in (self._all, *self._moods.values()):
            tally.fade(keep)
        self._told.clear()

    def _chances(self, mood: tuple[int, int]) -> tuple[float, list[float]]:
        own = self._moods.get(mood, Tally())
        chance, belief, chances = 1.0, self._prior, []
        for position in range(1, self._depth + 1):
            belief = self._all.mean(position, belief, _PRIOR_WEIGHT)
            chance *= own.mean(position, belief, _POOL_WEIGHT)
            chances.append(chance)
        return own.mean(0, self._all.mean(0, 1.0, _PRIOR_WEIGHT), _POOL_WEIGHT), chances
