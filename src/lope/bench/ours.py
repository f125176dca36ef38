"""Our own systems: engines over one loaded model."""

from lope.bench.memory import PeakMemory
from lope.bench.record import Turn
from lope.bench.suite import Item
from lope.engine.answer import Answer
from lope.engine.conversation import Conversation
from lope.engine.engine import Engine


class OurSystem:
    """An engine, as a system. All of them share the weights, so their peak memory is that of one process.

    temperature, seed: of every answer; 0 is greedy, and the seed then says nothing.
    """

    def __init__(self, name: str, engine: Engine, temperature: float = 0.0, seed: int = 0) -> None:
        self.name = name
        self._engine = engine
        self._temperature = temperature
        self._seed = seed
        self._memory = PeakMemory()

    def answer(self, item: Item, max_new_tokens: int) -> tuple[Turn, ...]:
        """Answer every turn of a conversation, the cache kept between them."""
        self._memory.reset()
        conversation = Conversation(
            self._engine, max_new_tokens=max_new_tokens, temperature=self._temperature, seed=self._seed
        )
        turns = []
        for text in item.turns:
            stream = conversation.say(text)
            for _ in stream:
                pass
            turns.append(turn_of(stream.answer))
        return tuple(turns)

    def peak_memory(self) -> int | None:
        """Bytes of this process at most during the last answer."""
        return self._memory.read()

    def close(self) -> None:
        """Nothing to give back: the model is shared."""


def turn_of(answer: Answer) -> Turn:
    """An answer's figures as they are recorded."""
    stats = answer.stats
    steps: list[tuple[int, float]] = []
    before = last = 0.0
    for moment in stats.token_times:  # tokens of one pass share its moment
        if steps and moment == last:
            steps[-1] = (steps[-1][0] + 1, steps[-1][1])
        else:
            steps.append((1, moment - before))
            before = last = moment
    return Turn(
        prompt_tokens=stats.prompt_tokens,
        tokens=answer.tokens,
        steps=tuple(steps),
        passes=stats.passes,
        drafted=stats.drafted,
        accepted=stats.accepted,
        offered_at=stats.offered_at,
        accepted_at=stats.accepted_at,
    )
