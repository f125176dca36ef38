"""One file of a distilled set: many conversations with what the target thought of each answer token.

n tokens, m sequences, a answer tokens, k log-probabilities, L layers, d hidden size of the target:

    number       int64 [m]          which prompt a sequence answers (with the manifest's seed: where it came from)
    temperature  float32 [m]        what its answer was drawn at
    starts       int64 [m + 1]      sequence s is tokens[starts[s] : starts[s + 1]]
    answers      int64 [m]          how many tokens of it, from its start, are prompt: the answer begins there
    tokens       uint16/int32 [n]
    top_ids      uint16/int32 [a, k]  for each answer token, in order: the target's k most probable tokens there ...
    top_logprobs float16 [a, k]     ... and their log-probabilities at temperature 1
    features     bfloat16 [n, L·d]  hidden states after the manifest's layers; absent where they were not kept

float16 for log-probabilities: over 1,284 answer tokens of SmolLM2-135M rounding moved 1.2e-4 of a row's probability on
average and 4e-4 at most (total variation over the 128 largest); bfloat16 would have moved 1.0e-3.
"""

import itertools
from collections.abc import Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save
from torch import Tensor

from lope.core.errors import UsageError

_IDS = ("U16", "I32")
_ROUNDED = 0.01  # how far above 0 rounding lifts the log of a row's sum
# (dtypes, dimensions) of the tensors that every shard has
_LAYOUT = {
    "number": (("I64",), 1),
    "temperature": (("F32",), 1),
    "starts": (("I64",), 1),
    "answers": (("I64",), 1),
    "tokens": (_IDS, 1),
    "top_ids": (_IDS, 2),
    "top_logprobs": (("F16",), 2),
}


@dataclass(frozen=True, eq=False)
class Sequence:
    """One conversation. tokens int64 [n]; top_ids, top_logprobs [answer tokens, k]; features [n, L·d] or None.

    prompt: how many of the tokens are prompt. Row a of top_ids is the target's law after tokens[: prompt + a]. The last
    row of the features repeats the one before it: nobody asks what comes after the last token, so it was never run.
    """

    number: int
    temperature: float
    prompt: int
    tokens: Tensor
    top_ids: Tensor
    top_logprobs: Tensor
    features: Tensor | None


@dataclass(frozen=True, eq=False)
class Text:
    """Only what was said: tokens int64 [n], of which the first `prompt` are prompt."""

    number: int
    temperature: float
    prompt: int
    tokens: Tensor


@dataclass(frozen=True)
class Shard:
    """A file that is there. Its tensors are read from the mapped file."""

    path: Path

    @cached_property
    def file(self) -> Any:
        """The mapped file. Raises UsageError where it is no whole safetensors file."""
        try:
            return safetensors.safe_open(self.path, framework="pt")
        except (OSError, safetensors.SafetensorError) as error:
            raise self._damage(str(error)) from None

    def get(self, name: str) -> Tensor:
        """One tensor. Raises UsageError where it is absent."""
        try:
            found: Tensor = self.file.get_tensor(name)
        except safetensors.SafetensorError as error:
            raise self._damage(str(error)) from None
        return found

    def get_slice(self, name: str) -> Any:
        """A tensor that is not read yet. Raises UsageError where it is absent."""
        try:
            return self.file.get_slice(name)
        except safetensors.SafetensorError as error:
            raise self._damage(str(error)) from None

    def rows(self, name: str) -> int:
        """How many rows a tensor has."""
        return int(self.get_slice(name).get_shape()[0])

    def check(self) -> None:
        """Raises UsageError where the sizes contradict each other, as after a crash of the machine."""
        for name, (dtypes, dimensions) in _LAYOUT.items():
            part = self.get_slice(name)
            if part.get_dtype() not in dtypes or len(part.get_shape()) != dimensions:
                raise self._damage(f"{name} is {part.get_dtype()} {part.get_shape()}")
        starts, answers = self.get("starts"), self.get("answers")
        lengths = starts.diff()
        tokens, count = self.rows("tokens"), len(answers)
        fits = (
            0 < len(starts) == count + 1 == self.rows("number") + 1 == self.rows("temperature") + 1
            and int(starts[0]) == 0
            and int(starts[-1]) == tokens
            and bool(((answers >= 1) & (answers < lengths)).all())
            and self.rows("top_ids") == tokens - int(answers.sum())
            and self.get_slice("top_ids").get_shape() == self.get_slice("top_logprobs").get_shape()
            and ("features" not in self.file.keys() or self.rows("features") == tokens)  # noqa: SIM118 - not a dict
        )
        if not fits:
            raise self._damage("its tensors do not fit each other")

    def texts(self) -> Iterator[Text]:
        """What was said, without reading anything else."""
        numbers, temperatures, tokens = self.get("number"), self.get("temperature"), self.get("tokens")
        prompts = self.get("answers").tolist()
        for s, (first, last) in enumerate(itertools.pairwise(self.get("starts").tolist())):
            yield Text(int(numbers[s]), float(temperatures[s]), prompts[s], tokens[first:last].to(torch.int64))

    def sequences(self) -> Iterator[Sequence]:
        """Everything. Raises UsageError where the log-probabilities are none."""
        names = self.file.keys()
        ids, logprobs = self.get("top_ids"), self.get("top_logprobs")
        if not _probable(logprobs):
            raise self._damage("its log-probabilities are those of no law")
        features = self.get("features") if "features" in names else None
        begin = answer = 0
        for text in self.texts():
            end, top = begin + len(text.tokens), answer + len(text.tokens) - text.prompt
            yield Sequence(
                text.number,
                text.temperature,
                text.prompt,
                text.tokens,
                ids[answer:top].to(torch.int64),
                logprobs[answer:top],
                None if features is None else features[begin:end],
            )
            begin, answer = end, top

    def _damage(self, reason: str) -> UsageError:
        return UsageError(f"{self.path}: is not a whole shard ({reason})")


def _probable(logprobs: Tensor) -> bool:
    """Whether rows [a, k] can be the largest log-probabilities of laws, in float16."""
    sums = torch.logsumexp(logprobs.float(), dim=-1)
    return bool(logprobs.isfinite().all()) and bool((sums <= _ROUNDED).all())


def packed(sequences: Many[Sequence], vocab_size: int) -> bytes:
    """The content of a shard's file."""
    narrow = torch.uint16 if vocab_size <= 1 << 16 else torch.int32
    lengths = torch.tensor([0, *(len(sequence.tokens) for sequence in sequences)])
    tensors = {
        "number": torch.tensor([sequence.number for sequence in sequences]),
        "temperature": torch.tensor([sequence.temperature for sequence in sequences], dtype=torch.float32),
        "starts": lengths.cumsum(0),
        "answers": torch.tensor([sequence.prompt for sequence in sequences]),
        "tokens": torch.cat([sequence.tokens for sequence in sequences]).to(narrow),
        "top_ids": torch.cat([sequence.top_ids for sequence in sequences]).to(narrow),
        "top_logprobs": torch.cat([sequence.top_logprobs for sequence in sequences]).to(torch.float16),
    }
    features = [sequence.features for sequence in sequences if sequence.features is not None]
    if features:
        assert len(features) == len(sequences), "features of all sequences, or of none"
        tensors["features"] = torch.cat(features).to(torch.bfloat16)
    return save(tensors)
