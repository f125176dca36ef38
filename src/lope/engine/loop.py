"""The loop: choose, propose, score, verify, commit, learn. One request is a batch of one."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lope.core.budget import Budget, Round, Times
from lope.core.draft import EMPTY, Draft
from lope.core.errors import DraftError, LopeError
from lope.core.protocols import Drafter, Policy, Target
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.engine.answer import Piece
from lope.engine.interrupt import Uninterrupted
from lope.engine.request import Request


@dataclass(frozen=True, eq=False)
class Loop:
    """The parts of one engine. `fall_back`: a drafter that raises is reported once and the answer goes on plainly."""

    target: Target[Any]
    drafter: Drafter[Any, Any]
    policy: Policy
    fall_back: bool = False

    def run(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Piece]]:
        """Yield what each round adds to each request, until all have ended."""
        live = [request for request in requests if not request.done]
        while live:
            with Uninterrupted():
                pieces = self.round(live)
            yield from zip(live, pieces, strict=True)
            live = [request for request in live if not request.done]

    def round(self, live: Sequence[Request]) -> list[Piece]:
        """One round of every request."""
        marks = [time.perf_counter()]
        asked = self.policy.choose([request.situation() for request in live])
        granted = [request.clamp(budget) for request, budget in zip(live, asked, strict=True)]
        drafts = self._propose(live, granted)
        marks.append(time.perf_counter())
        jobs = [request.job(draft, self.drafter.needs) for request, draft in zip(live, drafts, strict=True)]
        scores = self.target.score(jobs)
        marks.append(time.perf_counter())
        judged = [request.judge(d, s) for request, d, s in zip(live, drafts, scores, strict=True)]
        marks.append(time.perf_counter())
        rounds, pieces = [], []
        for request, draft, score, (verdict, text) in zip(live, drafts, scores, judged, strict=True):
            prompt = request.first
            request.commit(draft, verdict)
            pieces.append(request.record(draft, score, verdict, text))
            rounds.append((request, draft, verdict, prompt))
            self._tell_drafter(request, draft, score, verdict)
        marks.append(time.perf_counter())
        self._learn(rounds, asked, granted, [b - a for a, b in pairwise(marks)])
        return pieces

    def _propose(self, live: Sequence[Request], granted: Sequence[Budget]) -> list[Draft]:
        drafts = [EMPTY] * len(live)
        able = [i for i, request in enumerate(live) if request.draft_error is None and granted[i].nodes]
        if not able:
            return drafts
        try:
            proposed = self.drafter.propose([live[i].ask(granted[i]) for i in able])
            _check(proposed, [granted[i] for i in able])
        except Exception as error:  # noqa: BLE001 - a drafter is anybody's code; the target must outlive it
            for i in able:
                live[i].draft_error = self._broke(error)
            return drafts
        for i, draft in zip(able, proposed, strict=True):
            drafts[i] = draft
        return drafts

    def begin_drafting(self, make: Callable[[], Any]) -> tuple[Any, str | None]:
        """(the drafter's session, None); or (None, what it failed with) where the answer may go on without it."""
        try:
            return make(), None
        except LopeError:
            raise
        except Exception as error:  # noqa: BLE001 - a drafter is anybody's code; the target must outlive it
            return None, self._broke(error)

    def _tell_drafter(self, request: Request, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        if request.draft_error is None:
            try:
                request.draft_session.commit(draft, scores, verdict)
            except Exception as error:  # noqa: BLE001 - a drafter is anybody's code; the target must outlive it
                request.draft_error = self._broke(error)

    def _broke(self, error: Exception) -> str:
        """The error in words; unless the user allowed plain decoding, fail loudly."""
        words = f"the drafter failed ({type(error).__name__}: {error})"
        if not self.fall_back:
            raise DraftError(f"{words}; --on-draft-error fall-back would go on without it") from error
        return words

    def _learn(
        self,
        rounds: Sequence[tuple[Request, Draft, Verdict, bool]],
        asked: Sequence[Budget],
        granted: Sequence[Budget],
        seconds: Sequence[float],
    ) -> None:
        times = Times(*seconds)
        rows = sum(1 + len(draft) for _, draft, _, _ in rounds)
        records = [
            Round(
                request=request.number,
                asked=asked[i],
                granted=granted[i],
                parents=draft.parents,
                source=draft.source,
                path=verdict.path,
                emitted=len(verdict.tokens),
                cut=request.done,
                prompt=prompt,
                requests=len(rounds),
                rows=rows,
                times=times,
            )
            for i, (request, draft, verdict, prompt) in enumerate(rounds)
        ]
        for (request, *_), record in zip(rounds, records, strict=True):
            request.recent.append(record)
            request.spend(times.propose, times.score)
        self.policy.learn(records)


def _check(drafts: Sequence[Draft], granted: Sequence[Budget]) -> None:
    for draft, budget in zip(drafts, granted, strict=True):
        if len(draft) > budget.nodes or max(draft.depths, default=0) > budget.depth:
            raise ValueError(f"a draft of {len(draft)} nodes, {max(draft.depths)} deep, is beyond its budget: {budget}")
