"""What a target thinks of answers that are there already: log-probabilities and hidden states of archived tokens."""

import time
from collections.abc import Callable, Generator, Iterator
from collections.abc import Sequence as Many
from typing import Any

import torch

from lope.core.draft import chain
from lope.core.prompt import Prompt
from lope.core.protocols import Job, Target
from lope.core.scores import Needs, Scores
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet
from lope.training.distiller import Progress
from lope.training.shard import Sequence, Text
from lope.training.shard_writer import ShardWriter, with_last
from lope.training.token_archive import TokenArchive


class Replay:
    """Writes the set of an archive: nothing is drawn, so whole answers run in one pass.

    An answer is to the target a draft that hangs under the prompt's last token: each node's row is the law of the next
    token. rows: answer tokens in a pass.
    """

    def __init__(
        self,
        model: LoadedModel,
        archive: TokenArchive,
        place: DistilledSet,
        *,
        rows: int = 512,
        shard_tokens: int = 16384,
    ) -> None:
        """Raises UsageError where the archive was made with another tokenizer, or the set cannot be gone on with."""
        archive.check(model)
        self._layers = place.manifest.layers
        self._target: Target[Any] = model.backend.target(exact=False)
        self._rows = rows
        self._writer = ShardWriter(place, shard_tokens)
        done = place.numbers()
        self._left = [text for text in archive.texts if text.number not in done]

    def run(self, enough: Callable[[Progress], bool]) -> Generator[Progress, None, None]:
        """Go through what is not in the set yet; what is finished is on disk, and also if the caller stops.

        Raises RunError where the disk is full.
        """
        began = time.perf_counter()
        progress = Progress()
        try:
            for texts in self._passes():
                if enough(progress):
                    break
                self._pass(texts)
                sequences = progress.sequences + len(texts)
                tokens = progress.tokens + sum(len(text.tokens) - text.prompt for text in texts)
                seconds = time.perf_counter() - began
                progress = Progress(sequences, tokens, 0, seconds, self._writer.outside)
                yield progress
        finally:
            self._writer.flush()

    def _passes(self) -> Iterator[list[Text]]:
        """Texts in order, as many together as have `rows` answer tokens; a longer one alone."""
        texts: list[Text] = []
        rows = 0
        for text in self._left:
            answer = len(text.tokens) - text.prompt
            if texts and rows + answer > self._rows:
                yield texts
                texts, rows = [], 0
            texts.append(text)
            rows += answer
        if texts:
            yield texts

    @torch.inference_mode()
    def _pass(self, texts: Many[Text]) -> None:
        needs = Needs(self._layers, max(2, self._writer.columns))  # of one alone the whole row's sum is not told
        jobs = []
        for text in texts:
            tokens = tuple(text.tokens.tolist())
            session = self._target.open(Prompt(tokens[: text.prompt]))
            jobs.append(Job(session, chain(tokens[text.prompt : -1]), needs))
        for text, score in zip(texts, self._target.score(jobs), strict=True):
            self._writer.add(self._sequence(text, score))

    def _sequence(self, text: Text, score: Scores) -> Sequence:
        rows, columns = score.logits, self._writer.columns
        top = torch.topk(rows.values, columns, dim=-1)
        total = torch.logsumexp(rows.values, dim=-1) if rows.total is None else rows.total
        ids = top.indices if rows.ids is None else rows.ids.expand_as(rows.values).gather(-1, top.indices)
        logprobs = top.values - total[:, None]
        self._writer.note(logprobs)
        features = None
        if self._layers:
            features = torch.cat([score.features[layer] for layer in self._layers], dim=-1).to(torch.bfloat16)
            features = with_last(features).cpu()
        return Sequence(
            text.number,
            text.temperature,
            text.prompt,
            text.tokens,
            ids.cpu(),
            logprobs.to(torch.float16).cpu(),
            features,
        )
