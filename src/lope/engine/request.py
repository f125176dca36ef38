"""One request on its way through the loop: its sessions, its samplers, its chance, what it has said so far."""

import time
from collections import Counter, deque
from typing import Any

from lope.core.budget import Budget, Round, Situation
from lope.core.chance import KeyedChance, SharedChance
from lope.core.draft import ROOT, Draft
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Chance, Job, Sampler, Verifier
from lope.core.scores import ALL, Needs, Scores
from lope.core.verdict import Verdict
from lope.engine.answer import Answer, FinishReason, Piece, Stats
from lope.engine.ending import Ending
from lope.verifiers import VERIFIERS

_RECENT = 64
_DRAFTING, _VERIFYING = 1, 2


class Request:
    """State of one answer. Owns nothing but references: sessions belong to the target and the drafter."""

    def __init__(
        self,
        number: int,
        *,
        session: Any,
        draft_session: Any,
        sampler: Sampler,
        draft_sampler: Sampler,
        verifier: Verifier,
        ending: Ending,
        seed: int,
        context: Prompt,
        logprobs: bool = False,
        draft_error: str | None = None,
    ) -> None:
        self.number = number
        self.session = session
        self.draft_session = draft_session
        self.sampler = sampler
        self.draft_sampler = draft_sampler
        self.verifier = verifier
        self.ending = ending
        self.seed = seed
        self.recent: deque[Round] = deque(maxlen=_RECENT)
        self.draft_error = draft_error
        self._shared = SharedChance(seed) if verifier.shares_noise else None
        self._logprobs: list[float] | None = [] if logprobs else None
        self.context = context
        self._began = time.perf_counter()
        self._tokens: list[int] = []
        self._drafted: list[bool] = []
        self._text: list[str] = []
        self._times: list[float] = []
        self._rounds: list[tuple[int, int, int]] = []
        self._offered: Counter[int] = Counter()
        self._accepted: Counter[int] = Counter()
        self._seconds = [0.0, 0.0]

    @property
    def done(self) -> bool:
        """Whether the answer has ended."""
        return self.ending.reason is not None

    @property
    def first(self) -> bool:
        """Whether the prompt's own pass is still to come."""
        return not self._rounds

    @property
    def needs(self) -> Needs:
        """What the request must know of a pass, beside what its drafter must."""
        return self.sampler.needs | Needs(logits=ALL if self._logprobs is not None else 0)

    def situation(self) -> Situation:
        """What a policy may look at."""
        return Situation(self.number, self.sampler.length, self._room(), self.sampler.greedy, self.recent)

    def clamp(self, budget: Budget) -> Budget:
        """The budget cut to what the context and the answer's limit leave: a path and one more token must fit."""
        depth = max(0, min(budget.depth, self._room()))
        nodes = max(0, budget.nodes) if depth else 0
        return Budget(nodes, depth if nodes else 0, budget.stop, budget.source, budget.ticket)

    def ask(self, budget: Budget) -> Ask[Any]:
        """This round's request to the drafter."""
        return Ask(self.draft_session, budget, self.draft_sampler, self._chance(_DRAFTING))

    def job(self, draft: Draft, needs: Needs) -> Job[Any]:
        """This round's request to the target."""
        return Job(self.session, draft, self.needs | needs)

    def judge(self, draft: Draft, scores: Scores) -> tuple[Verdict, str]:
        """The verdict, cut where the answer ends, and the text that it releases."""
        verdict = self.verifier.verify(draft, scores, self.sampler, self._chance(_VERIFYING))
        count, text = self.ending.feed(verdict.tokens)
        return verdict.cut(count), text

    def commit(self, draft: Draft, verdict: Verdict) -> None:
        """Move the target's session and both samplers."""
        self.session.commit(draft, verdict)
        self.sampler.commit(verdict.tokens)
        self.draft_sampler.commit(verdict.tokens)

    def record(self, draft: Draft, scores: Scores, verdict: Verdict, text: str) -> Piece:
        """Note what a round emitted."""
        drafted = tuple(place < len(verdict.path) for place in range(len(verdict.tokens)))
        logprobs = None
        if self._logprobs is not None:
            logprobs = _logprobs(scores, verdict)
            self._logprobs += logprobs
        self._tokens += verdict.tokens
        self._drafted += drafted
        self._text.append(text)
        self._times += [time.perf_counter() - self._began] * len(verdict.tokens)
        self._rounds.append((len(verdict.tokens), len(draft), len(verdict.path)))
        self._count(draft, verdict)
        return Piece(text, verdict.tokens, drafted, logprobs)

    def spend(self, proposing: float, scoring: float) -> None:
        """Note the seconds of a round's two costly steps."""
        self._seconds[0] += proposing
        self._seconds[1] += scoring

    def answer(self) -> Answer:
        """What has been said; an answer that was broken off counts as ended by its length."""
        stats = Stats(
            prompt_tokens=len(self.context.ids),
            num_tokens=len(self._tokens),
            passes=max(0, len(self._rounds) - 1),
            prompt_emitted=self._rounds[0][0] if self._rounds else 0,
            drafted=sum(drafted for _, drafted, _ in self._rounds),
            accepted=sum(accepted for _, _, accepted in self._rounds),
            offered_at=tuple(self._offered[depth] for depth in sorted(self._offered)),
            accepted_at=tuple(self._accepted[depth] for depth in sorted(self._offered)),
            seconds=self._times[-1] if self._times else 0.0,
            time_to_first_token=self._times[0] if self._times else 0.0,
            seconds_proposing=self._seconds[0],
            seconds_scoring=self._seconds[1],
            token_times=tuple(self._times),
        )
        logprobs = None if self._logprobs is None else tuple(self._logprobs)
        reason = self.ending.reason or FinishReason.LENGTH
        text, tokens = "".join(self._text), tuple(self._tokens)
        rule, drafted = VERIFIERS.spell(self.verifier), tuple(self._drafted)
        return Answer(text, tokens, reason, stats, self.seed, rule, drafted, logprobs, self.draft_error)

    def _room(self) -> int:
        return int(min(self.session.room - 1, self.ending.left - 1))

    def _chance(self, purpose: int) -> Chance:
        return self._shared or KeyedChance(self.seed, purpose, self.sampler.length)

    def _count(self, draft: Draft, verdict: Verdict) -> None:
        """A depth was offered where the path above it was accepted and had a child there."""
        for depth, node in enumerate((ROOT, *verdict.path), start=1):
            if draft.children[node + 1]:
                self._offered[depth] += 1
                self._accepted[depth] += depth <= len(verdict.path)


def _logprobs(scores: Scores, verdict: Verdict) -> tuple[float, ...]:
    rows = scores.logits.values[[node + 1 for node in (ROOT, *verdict.path)][: len(verdict.tokens)]].float()
    chosen = rows.gather(-1, rows.new_tensor(verdict.tokens).long()[:, None])[:, 0] - rows.logsumexp(dim=-1)
    return tuple(chosen.tolist())
