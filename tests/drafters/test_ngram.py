"""n-grams against a scan of the whole text, pictures, repetition, and a mutant that takes the oldest match."""

import random
from typing import Any

import pytest
import torch

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import EMPTY, Draw
from lope.core.errors import SettingError
from lope.core.prompt import Path, Prompt, Span
from lope.core.protocols import Ask
from lope.core.sampling import Sampling
from lope.core.verdict import Verdict
from lope.drafters.ngram import NgramDrafter, NgramSession


def scanned(words: Path, shortest: int, longest: int, count: int) -> Path:
    """Longest match first, latest first, by looking everywhere; beyond the end the copy reads itself."""
    for length in range(min(longest, len(words)), shortest - 1, -1):
        tail = words[-length:]
        for start in range(len(words) - 1, length - 1, -1):
            if words[start - length : start] == tail:
                copy = list(words[start:])
                while len(copy) < count:
                    copy.append(copy[len(copy) - (len(words) - start)])
                return tuple(copy[:count])
    return ()


def matches_a_scan(open_session: Any, rounds: int = 150) -> None:
    chance = random.Random(1)
    words = tuple(chance.randrange(4) for _ in range(5))
    session = open_session()
    session.extend(Prompt(words))
    for _ in range(rounds):
        count = chance.randrange(1, 9)
        assert session.continuation(count) == scanned(words, 1, 3, count)
        new = tuple(chance.randrange(4) for _ in range(chance.randrange(1, 4)))
        session.commit(EMPTY, None, Verdict((), new))
        words += new


def test_it_finds_what_a_scan_finds():
    matches_a_scan(lambda: NgramSession(1, 3))


class OldestMatch(NgramSession):
    """Keeps the first place an n-gram was seen."""

    def _append(self, item: int) -> None:
        before = dict(self._continued)
        super()._append(item)
        self._continued.update(before)


class ShortestFirst(NgramSession):
    def continuation(self, count: int) -> Path:
        for key in self._keys():
            start = self._continued.get(key)
            if start is not None:
                return self._copy(start, count)
        return ()


class MatchesItself(NgramSession):
    """Counts the n-gram at the end as a match of itself: nothing follows it."""

    def continuation(self, count: int) -> Path:
        return () if self._words[-1:] == self._words[-2:-1] else super().continuation(count)


@pytest.mark.parametrize("mutant", [OldestMatch, ShortestFirst, MatchesItself])
def test_mutants_are_caught(mutant):
    with pytest.raises(AssertionError):
        matches_a_scan(lambda: mutant(1, 3))


def draft_after(drafter: NgramDrafter, prompt: Prompt, nodes: int = 99, depth: int = 99) -> Any:
    session = drafter.open(prompt, None)
    ask = Ask(session, Budget(nodes, depth), Sampling().begin(prompt), KeyedChance(0, 0, 0))
    return drafter.propose([ask])[0]


def test_draft_is_a_chain_of_points():
    draft = draft_after(NgramDrafter(num_tokens=3), Prompt((5, 6, 7, 8, 9, 5, 6)))
    assert draft.tokens == (7, 8, 9)
    assert draft.parents == (-1, 0, 1)
    assert draft.draws == (Draw.POINT,) * 3
    assert draft.laws is None
    assert [len(draft_after(NgramDrafter(), Prompt((5, 6, 7, 8, 5)), *cap)) for cap in ((2, 9), (9, 1), (0, 9))] == [
        2,
        1,
        0,
    ]


def test_min_ngram_asks_for_more_evidence():
    prompt = Prompt((1, 2, 3, 4, 1))
    assert draft_after(NgramDrafter(min_ngram=1), prompt).tokens[:3] == (2, 3, 4)
    assert len(draft_after(NgramDrafter(min_ngram=2), prompt)) == 0


def test_a_loop_is_drafted_to_the_full_length():
    assert draft_after(NgramDrafter(num_tokens=7), Prompt((9, 1, 2, 1, 2))).tokens == (1, 2, 1, 2, 1, 2, 1)


def pictures(*spans: tuple[int, int]) -> tuple[Span, ...]:
    return tuple(Span(start, stop, torch.zeros(stop - start, 2)) for start, stop in spans)


def test_matches_do_not_cross_pictures():
    """7 [picture] 8 is no bigram, a copy ends at a picture, and its placeholder is never proposed."""
    drafter = NgramDrafter(min_ngram=2, num_tokens=5)
    assert len(draft_after(drafter, Prompt((7, 0, 0, 8, 5, 7, 8), pictures((1, 3))))) == 0
    assert draft_after(drafter, Prompt((7, 8, 4, 0, 0, 6, 7, 8), pictures((3, 5)))).tokens == (4,)
    behind = Prompt((7, 8, 0, 0, 5, 7, 8), pictures((2, 4)))
    assert len(draft_after(drafter, behind)) == 0
    assert len(draft_after(NgramDrafter(), Prompt((1, 1, 0, 0), pictures((2, 4))))) == 0
    words = drafter.open(Prompt((0, 0, 3, 4, 0, 3, 4), pictures((0, 2), (4, 5))), None)
    assert words.continuation(4) == ()


def test_pictures_of_a_later_turn_are_walls_too():
    drafter = NgramDrafter()
    session = drafter.open(Prompt((1, 2, 3)), None)
    session.extend(Prompt((0, 0, 1), pictures((0, 2))))
    assert session.continuation(9) == (2, 3)


def test_nothing_is_found_in_an_empty_or_new_text():
    assert len(draft_after(NgramDrafter(), Prompt(()))) == 0
    assert len(draft_after(NgramDrafter(), Prompt((4,)))) == 0


@pytest.mark.parametrize("settings", [{"min_ngram": 0}, {"max_ngram": 1, "min_ngram": 2}, {"num_tokens": 0}])
def test_settings_are_checked(settings):
    with pytest.raises(SettingError):
        NgramDrafter(**settings)
