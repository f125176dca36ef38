"""A target answers prompts, many at a time in one packed pass, and what it thought of each token is written down."""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lope.core import checks
from lope.core.draft import EMPTY
from lope.core.errors import UsedUpError
from lope.core.noise import exponential_noise, key
from lope.core.prompt import Prompt
from lope.core.protocols import Job, Sampler, Target
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import ALL, Needs, Scores
from lope.core.verdict import Verdict
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet, Sequence
from lope.training.prompt_sources import PromptSource
from lope.training.questions import Question, Questions
from lope.training.shard_writer import ShardWriter, with_last

# (temperature, top_p)
Law = tuple[float, float]
# how the user's words are drawn: varied, and seldom nonsense
_USER: Law = (1.0, 0.95)
_USER_TOKENS = 128
# tokens are drawn from so many of the most probable at most: a full sort of the vocabulary costs more than the pass
_CANDIDATES = 64


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    sequences, tokens: finished in this run; tokens are those of answers. live: answer tokens not yet finished.
    outside:           mean probability of the answers' places that is not kept.
    too_long:          prompts that were left out because they take more than half of the context.
    """

    sequences: int = 0
    tokens: int = 0
    live: int = 0
    seconds: float = 0.0
    outside: float = 0.0
    too_long: int = 0

    @property
    def pace(self) -> float:
        """Answer tokens a second."""
        return (self.tokens + self.live) / self.seconds if self.seconds else 0.0


@dataclass(eq=False)
class _Speaker:
    """One conversation while it is written."""

    question: Question
    session: Any
    law: Law
    limit: int
    seed: int
    said: list[int] = field(default_factory=list)
    top: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    features: list[Tensor] = field(default_factory=list)


class Distiller:
    """Writes a set. width: conversations in a pass; shard_tokens: tokens in a shard (what a kill can lose at most).

    What is drawn depends on (the set's seed, a prompt's number, the answer's length) and on nothing else but the last
    bits of a pass: an interrupted run, continued, says what an uninterrupted one says.
    """

    def __init__(
        self, model: LoadedModel, source: PromptSource, place: DistilledSet, *, width: int, shard_tokens: int = 16384
    ) -> None:
        """Raises UsageError where the set cannot be gone on with."""
        checks.at_least("width", width, 1)
        self._model = model
        self._about = place.manifest
        self._width = width
        self._target: Target[Any] = model.backend.target(exact=False)
        self._questions = Questions(model, source, place)
        self._writer = ShardWriter(place, shard_tokens)
        self._samplers: dict[Law, Sampler] = {}
        self._before = bool(place.shards)
        self._sequences = self._tokens = 0  # kept in this run; tokens are those of answers

    def run(self, enough: Callable[[Progress], bool]) -> Generator[Progress, None, None]:
        """Answer prompts until it is enough; what is finished by then is on disk, and also if the caller stops.

        Raises RunError where the disk is full, UsedUpError where the prompts are.
        """
        began = time.perf_counter()
        live: list[_Speaker] = []
        progress = Progress()
        try:
            while not enough(progress):
                self._fill(live)
                if not live:
                    kept = "; what was finished is kept" if self._before or self._tokens else ""
                    raise UsedUpError(f"{self._questions.used_up}{kept}")
                ended = self._pass(live)
                live = [speaker for speaker in live if speaker not in ended]
                live += [speaker for each in ended for speaker in self._end(each)]
                progress = self._progress(live, time.perf_counter() - began)
                yield progress
        finally:
            self._writer.flush()

    def _progress(self, live: list[_Speaker], seconds: float) -> Progress:
        unfinished = sum(len(speaker.said) for speaker in live if not speaker.question.asking)
        return Progress(
            self._sequences, self._tokens, unfinished, seconds, self._writer.outside, self._questions.too_long
        )

    def _fill(self, live: list[_Speaker]) -> None:
        while len(live) < self._width:
            question = self._questions.next()
            if question is None:
                return
            live.append(self._speaker(question))

    def _speaker(self, question: Question) -> _Speaker:
        session = self._target.open(Prompt(question.ids))
        seed = key(self._about.seed, question.number, int(question.asking))
        if question.asking:
            return _Speaker(question, session, _USER, min(_USER_TOKENS, self._model.backend.context // 8), seed)
        law = (question.temperature, self._about.top_p)
        return _Speaker(question, session, law, self._about.max_new_tokens, seed)

    def _end(self, speaker: _Speaker) -> list[_Speaker]:
        """Keep an answer; after a message, who answers it."""
        if speaker.question.asking:
            answering = self._questions.of_message(speaker.question, speaker.said)
            return [] if answering is None else [self._speaker(answering)]
        tokens = [*speaker.question.ids, *speaker.said]
        if self._questions.is_new(tokens):
            self._writer.add(_sequence(speaker, tokens))
            self._sequences += 1
            self._tokens += len(speaker.said)
        return []

    @torch.inference_mode()
    def _pass(self, live: list[_Speaker]) -> list[_Speaker]:
        """One token for each; returns those that have ended."""
        plain, featured = Needs(logits=ALL), Needs(self._about.layers, ALL)
        jobs = [Job(speaker.session, EMPTY, plain if speaker.question.asking else featured) for speaker in live]
        scores = self._target.score(jobs)
        logits = torch.cat([score.logits.values for score in scores])
        top = torch.topk(logits, min(max(_CANDIDATES, self._writer.columns), logits.shape[-1]), dim=-1)
        drawn_from = Rows(top.values[:, :_CANDIDATES], top.indices[:, :_CANDIDATES], logits.shape[-1], float("-inf"))
        tokens = self._draw(live, drawn_from)
        logprobs = top.values[:, : self._writer.columns] - torch.logsumexp(logits, dim=-1, keepdim=True)
        self._writer.note(logprobs[[row for row, speaker in enumerate(live) if not speaker.question.asking]])
        for row, (speaker, score) in enumerate(zip(live, scores, strict=True)):
            if not speaker.question.asking:
                self._remember(speaker, score, top.indices[row, : self._writer.columns], logprobs[row])
        return [speaker for speaker, token in zip(live, tokens, strict=True) if self._say(speaker, token)]

    def _remember(self, speaker: _Speaker, score: Scores, ids: Tensor, logprobs: Tensor) -> None:
        speaker.top.append((ids, logprobs.to(torch.float16)))
        if self._about.layers:
            rows = torch.cat([score.features[layer] for layer in self._about.layers], dim=-1)
            speaker.features.append(rows.to(torch.bfloat16))

    def _say(self, speaker: _Speaker, token: int) -> bool:
        """Append a token; whether it was the last one."""
        speaker.said.append(token)
        speaker.session.commit(EMPTY, Verdict((), (token,)))
        return token in self._model.stop_tokens or len(speaker.said) >= speaker.limit or speaker.session.room < 2

    def _draw(self, live: list[_Speaker], rows: Rows) -> list[int]:
        """One token for each row, by noise keyed to the conversation and its length: the same in any company."""
        groups: dict[Law, list[int]] = {}
        for row, speaker in enumerate(live):
            groups.setdefault(speaker.law, []).append(row)
        tokens = [0] * len(live)
        for law, members in groups.items():
            if law not in self._samplers:
                self._samplers[law] = Sampling(temperature=law[0], top_p=law[1]).begin(Prompt(()))
            laws = self._samplers[law].filtered(rows.select(members), [()] * len(members))
            for place, row in enumerate(members):
                ids = laws.held(place)
                noise = exponential_noise(live[row].seed, len(live[row].said), ids.cpu()).to(ids.device)
                tokens[row] = int(ids[(noise / laws.values[place]).argmin()])
        return tokens


def _sequence(speaker: _Speaker, tokens: list[int]) -> Sequence:
    question = speaker.question
    ids, logprobs = (torch.stack(side).cpu() for side in zip(*speaker.top, strict=True))
    features = with_last(torch.cat(speaker.features)).cpu() if speaker.features else None
    return Sequence(
        question.number, question.temperature, len(question.ids), torch.tensor(tokens), ids, logprobs, features
    )
