"""The real n-gram drafter over real text, byte by byte: accounted time beside plain decoding's and fixed budgets'."""

import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from tests.policies.simulated import FLAT, PROPORTIONAL, STEEP, machine

from lope.core.budget import Budget, Round, Situation, Times
from lope.core.cost import Calibration
from lope.core.draft import EMPTY
from lope.core.prompt import Prompt
from lope.core.verdict import Verdict
from lope.drafters.ngram import NgramSession
from lope.policies import POLICIES

_LICENCE = (Path(__file__).parents[2] / "LICENSE").read_bytes()
TEXTS = {
    "prose": _LICENCE[:3000],
    "repetitive": _LICENCE[:150] * 12,
    "noise": random.Random(0).randbytes(2000),
    "few letters": bytes(random.Random(1).choices(b"abcd", k=2000)),
}
READ = 500  # bytes that are the prompt


def replay(policy: Any, calibration: Calibration, text: bytes) -> float:
    """Accounted seconds of all rounds after the prompt's, over those of plain decoding."""
    session = NgramSession(1, 4)
    session.extend(Prompt(tuple(text[:READ])))
    accounted, at = 0.0, READ
    recent: deque[Round] = deque(maxlen=64)
    while at < len(text):
        room = len(text) - at - 1
        [asked] = policy.choose([Situation(0, at, room, True, recent)])
        granted = Budget(asked.nodes, min(asked.depth, room)) if room else Budget(0, 0)
        draft = session.continuation(min(granted.nodes, granted.depth, 10)) if granted.nodes else ()
        accepted = 0
        while accepted < len(draft) and draft[accepted] == text[at + accepted]:
            accepted += 1
        tokens = tuple(text[at : at + accepted + 1])
        session.commit(EMPTY, EMPTY, Verdict(tuple(range(accepted)), tokens))  # type: ignore[arg-type]
        propose = calibration.draft_seconds(1 if granted.nodes else 0)
        score = calibration.seconds(1 + len(draft), at)
        if recent:
            accounted += propose + score + calibration.overhead
        record = Round(
            0, asked, granted, tuple(range(-1, len(draft) - 1)), (0,) * len(draft), tuple(range(accepted)), len(tokens),
            cut=at + len(tokens) >= len(text), prompt=not recent, requests=1, rows=1 + len(draft),
            times=Times(propose, score, calibration.overhead, 0.0),
        )  # fmt: skip
        recent.append(record)
        policy.learn([record])
        at += len(tokens)
    return accounted / ((len(text) - READ - 1) * (calibration.seconds(1, 0) + calibration.overhead))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("curve", [STEEP, FLAT, PROPORTIONAL])
def test_never_slower_than_plain_by_more_than_the_allowance(name, curve):
    calibration = machine(curve)
    assert replay(POLICIES.make("calibrated").attach(lambda: calibration), calibration, TEXTS[name]) <= 1.03


def test_one_engine_over_all_texts():
    """What one text taught, or gained, is not lost on the next."""
    for curve in (STEEP, PROPORTIONAL):
        calibration = machine(curve)
        policy = POLICIES.make("calibrated").attach(lambda here=calibration: here)
        for text in (*TEXTS.values(), *reversed(TEXTS.values())):
            assert replay(policy, calibration, text) <= 1.03


@pytest.mark.parametrize("curve", [STEEP, FLAT])
def test_nearly_as_fast_as_the_best_fixed_depth(curve):
    calibration = machine(curve)
    for text in TEXTS.values():
        fixed = [replay(POLICIES.make(f"fixed:depth={depth}"), calibration, text) for depth in (0, 1, 2, 4, 6, 10)]
        assert replay(POLICIES.make("calibrated").attach(lambda: calibration), calibration, text) < 1.06 * min(fixed)


def test_a_fixed_budget_is_slower_than_plain_somewhere():
    """So the bound above is no matter of course."""
    assert replay(POLICIES.make("fixed:depth=10"), machine(STEEP), TEXTS["few letters"]) > 1.2
