"""Which prompts are still to be answered, in order, and what has been asked and said before, also in earlier runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lope.core.errors import UsageError
from lope.core.prompt import Path as Ids
from lope.engine.prompting import prompt_ids
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet
from lope.training.prompt_sources import PromptSource
from lope.training.seen import Seen

_SHORTEST_MESSAGE = 3
# conversations on end that brought nothing new, before the prompts count as used up
_BARREN = 256


@dataclass(frozen=True)
class Question:
    """ids: what the target goes on from. asking: it is to write the user's message first."""

    number: int
    temperature: float
    ids: Ids
    asking: bool


class Questions:
    """Deals out what is to be answered; a prompt's temperature follows from its number, and changes each time round.

    room:     tokens that a prompt may have: half of the context, the rest is for its answer.
    too_long: how many prompts were left out because they have more.
    used_up:  why there are no more, once `next` has said so.
    """

    def __init__(self, model: LoadedModel, source: PromptSource, place: DistilledSet) -> None:
        self.room = model.backend.context // 2
        self.too_long = 0
        self.used_up = ""
        self._model = model
        self._source = source
        self._temperatures = place.manifest.temperatures
        self._asked = Seen()
        self._said = Seen()
        self._barren = 0
        done = set()
        for text in place.texts():
            tokens = text.tokens.tolist()
            done.add(text.number)
            self._said.add(tokens)
            self._may_ask(tokens[: text.prompt], text.temperature)
        self._fresh = self._unanswered(done)

    def next(self) -> Question | None:
        """The next one, or None: there are no more."""
        if not self.used_up and self._barren >= _BARREN:
            self.used_up = f"the last {self._barren} conversations said nothing new: give more prompts, or other ones"
        return None if self.used_up else next(self._fresh, None)

    def of_message(self, asked: Question, message: Sequence[int]) -> Question | None:
        """The question whose message the target has just written; None where it is no message, or not new."""
        words = [token for token in message if token not in self._model.stop_tokens]
        text = self._model.tokenizer.decode(words).strip()
        if len(words) >= _SHORTEST_MESSAGE and text:
            ids = prompt_ids(self._model, text, system=None, raw=False)
            if len(ids) <= self.room and self._may_ask(ids, asked.temperature):
                return Question(asked.number, asked.temperature, ids, False)
        self._barren += 1
        return None

    def is_new(self, tokens: Sequence[int]) -> bool:
        """Whether this conversation, prompt and answer, was not had before."""
        new = self._said.add(tokens)
        self._barren = 0 if new else self._barren + 1
        return new

    def _unanswered(self, done: set[int]) -> Iterator[Question]:
        number = skipped = 0
        # after so many numbers every prompt has met every temperature
        limit = (self._source.count or 1) * len(self._temperatures)
        while skipped < limit:
            question = None if number in done else self._question(number)
            if question is not None:
                skipped = 0
                yield question
            elif number not in done:
                skipped += 1
            number += 1
        name, room = self._source.name, self.room
        if self.too_long == self._source.count:
            self.used_up = f"every prompt of {name} has more than {room} tokens, half of the context: give shorter ones"
        else:
            self.used_up = (
                f"every prompt of {name} of at most {room} tokens has had its greedy answer: give more prompts, or "
                "temperatures above 0"
            )

    def _question(self, number: int) -> Question | None:
        """None where the prompt is too long, or can only be answered as it was before."""
        ids, asking = self._source.opening(number, self._model)
        count = self._source.count
        turn = number if count is None else number % count + number // count
        temperature = self._temperatures[turn % len(self._temperatures)]
        if len(ids) > self.room:
            if count is None:
                raise UsageError(f"{self._model.name} has a context of {2 * self.room}: too short for its own prompts")
            self.too_long += number < count
            return None
        if not asking and not self._may_ask(ids, temperature):
            return None
        return Question(number, temperature, ids, asking)

    def _may_ask(self, prompt: Sequence[int], temperature: float) -> bool:
        """Prompts of a file come again, but not to be answered greedily twice; others come once."""
        if self._source.count is not None and temperature > 0.0:
            return True
        return self._asked.add(prompt)
