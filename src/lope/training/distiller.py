"""A target answers prompts, many at a time in one packed pass, and what it thought of each token is written down."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lope.core.draft import EMPTY
from lope.core.noise import exponential_noise, key
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job, Sampler, Target
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import ALL, Needs, Scores
from lope.core.verdict import Verdict
from lope.engine.prompting import prompt_ids
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet, Sequence
from lope.training.prompt_sources import PromptSource

# (temperature, top_p)
Law = tuple[float, float]
# how the user's words are drawn: varied, and seldom nonsense
_USER: Law = (1.0, 0.95)
_USER_TOKENS = 128
_SHORTEST_MESSAGE = 3
_CANDIDATES = 64


@dataclass(frozen=True)
class Progress:
    """How far a run is. tokens: of answers, kept in this run; outside: mean probability that is not on disk."""

    sequences: int
    tokens: int
    seconds: float
    outside: float


@dataclass(eq=False)
class _Speaker:
    """One conversation while it is written. `asking`: the target is writing the user's message."""

    number: int
    session: Any
    law: Law
    asking: bool
    seed: int
    prompt: Path
    said: list[int] = field(default_factory=list)
    top: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    features: list[Tensor] = field(default_factory=list)


class Distiller:
    """Writes a set. width: conversations in a pass; shard_tokens: tokens in a shard (what a kill can lose at most)."""

    def __init__(
        self, model: LoadedModel, source: PromptSource, place: DistilledSet, *, width: int, shard_tokens: int = 16384
    ) -> None:
        self._model = model
        self._source = source
        self._place = place
        self._about = place.manifest
        self._width = width
        self._shard_tokens = shard_tokens
        self._target: Target[Any] = model.backend.target(exact=False)
        self._done = place.numbers()
        self._seen: set[int] = set()
        self._finished: list[Sequence] = []
        self._numbers = self._fresh_numbers()
        self._samplers: dict[Law, Sampler] = {}
        self._outside = [0.0, 0]

    def run(self, enough: Callable[[Progress], bool]) -> Iterator[Progress]:
        """Answer prompts until it is enough; what is finished by then is on disk, and also if the caller stops."""
        began = time.perf_counter()
        sequences = tokens = 0
        live: list[_Speaker] = []
        progress = Progress(0, 0, 0.0, 0.0)
        try:
            while not enough(progress):
                while len(live) < self._width:
                    live.append(self._begin(next(self._numbers)))
                ended = self._pass(live)
                live = [speaker for speaker in live if speaker not in ended]
                for speaker in ended:
                    if speaker.asking:
                        live += self._answering(speaker)
                    elif self._keep(speaker):
                        sequences, tokens = sequences + 1, tokens + len(speaker.said)
                if sum(len(sequence.tokens) for sequence in self._finished) >= self._shard_tokens:
                    self._flush()
                outside = self._outside[0] / max(1, self._outside[1])
                progress = Progress(sequences, tokens, time.perf_counter() - began, outside)
                yield progress
        finally:
            self._flush()

    def _fresh_numbers(self) -> Iterator[int]:
        number = 0
        while True:
            if number not in self._done:
                yield number
            number += 1

    def _begin(self, number: int) -> _Speaker:
        ids, asking = self._source.opening(number, self._model)
        room = self._model.backend.context // 2
        return self._speaker(number, ids[-room:], asking)

    def _speaker(self, number: int, ids: Path, asking: bool) -> _Speaker:
        temperature = self._about.temperatures[number % len(self._about.temperatures)]
        law = _USER if asking else (temperature, self._about.top_p)
        seed = key(self._about.seed, number, int(asking))
        return _Speaker(number, self._target.open(Prompt(ids)), law, asking, seed, ids)

    def _answering(self, asker: _Speaker) -> list[_Speaker]:
        """The conversation in which the message just written is answered; none where it is no message."""
        words = [token for token in asker.said if token not in self._model.stop_tokens]
        text = self._model.tokenizer.decode(words).strip()
        if len(words) < _SHORTEST_MESSAGE or not text or hash(text) in self._seen:
            return []
        self._seen.add(hash(text))
        return [self._speaker(asker.number, prompt_ids(self._model, text, system=None, raw=False), False)]

    @torch.inference_mode()
    def _pass(self, live: list[_Speaker]) -> list[_Speaker]:
        """One token for each; returns those that have ended."""
        plain, featured = Needs(logits=ALL), Needs(self._about.layers, ALL)
        jobs = [Job(speaker.session, EMPTY, plain if speaker.asking else featured) for speaker in live]
        scores = self._target.score(jobs)
        logits = torch.cat([score.logits.values for score in scores])
        count = min(max(_CANDIDATES, self._about.top_k), logits.shape[-1])
        top = torch.topk(logits, count, dim=-1)
        logprobs = top.values - torch.logsumexp(logits, dim=-1, keepdim=True)
        tokens = self._draw(live, Rows(top.values, top.indices, logits.shape[-1], float("-inf")))
        ended = []
        for row, (speaker, score, token) in enumerate(zip(live, scores, tokens, strict=True)):
            if not speaker.asking:
                self._note(speaker, score, top.indices[row], logprobs[row])
            speaker.said.append(token)
            speaker.session.commit(EMPTY, Verdict((), (token,)))
            limit = _USER_TOKENS if speaker.asking else self._about.max_new_tokens
            if token in self._model.stop_tokens or len(speaker.said) >= limit or speaker.session.room < 2:
                ended.append(speaker)
        return ended

    def _note(self, speaker: _Speaker, score: Scores, ids: Tensor, logprobs: Tensor) -> None:
        kept = self._about.top_k
        speaker.top.append((ids[:kept], logprobs[:kept].to(torch.float16)))
        self._outside[0] += 1.0 - float(logprobs[:kept].exp().sum())
        self._outside[1] += 1
        if self._about.layers:
            rows = torch.cat([score.features[layer] for layer in self._about.layers], dim=-1)
            speaker.features.append(rows.to(torch.bfloat16))

    def _draw(self, live: list[_Speaker], rows: Rows) -> list[int]:
        """One token for each row, by noise keyed to the conversation and its length: the same in any company."""
        groups: dict[Law, list[int]] = {}
        for row, speaker in enumerate(live):
            groups.setdefault(speaker.law, []).append(row)
        tokens = [0] * len(live)
        for law, members in groups.items():
            if law not in self._samplers:
                self._samplers[law] = Sampling(temperature=law[0], top_p=law[1]).begin(Prompt(()))
            sampler = self._samplers[law]
            laws = sampler.filtered(rows.select(members), [()] * len(members))
            for place, row in enumerate(members):
                ids = laws.held(place)
                noise = exponential_noise(live[row].seed, len(live[row].said), ids.cpu()).to(ids.device)
                tokens[row] = int(ids[(noise / laws.values[place]).argmin()])
        return tokens

    def _keep(self, speaker: _Speaker) -> bool:
        tokens = torch.tensor([*speaker.prompt, *speaker.said])
        content = hash(tuple(tokens.tolist()))
        if content in self._seen:
            return False
        self._seen.add(content)
        features = None
        if speaker.features:
            # the last token was not run: nobody asks what comes after it, so it stands there with its neighbour's rows
            features = torch.cat([*speaker.features, speaker.features[-1][-1:]])
        ids, logprobs = (torch.stack(side) for side in zip(*speaker.top, strict=True))
        self._finished.append(
            Sequence(speaker.number, speaker.law[0], len(speaker.prompt), tokens, ids.cpu(), logprobs.cpu(), features)
        )
        return True

    def _flush(self) -> None:
        if self._finished:
            self._place.append(self._finished)
            self._finished = []
