"""Our own systems at a temperature: drawn answers are another text, and the same one each time."""

from collections.abc import Callable

from lope.bench.ours import OurSystem
from lope.bench.suite import Item
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel


def test_answers_are_drawn_at_the_temperature_with_the_seed(tiny_model: Callable[..., LoadedModel]) -> None:
    engine = Engine(tiny_model(), Parts(drafter="none"), exact=False)
    item = Item("a", "qa", ("the cat sat on", "and the dog?"))

    def tokens(temperature: float, seed: int) -> list[tuple[int, ...]]:
        return [turn.tokens for turn in OurSystem("it", engine, temperature, seed).answer(item, 12)]

    assert tokens(1.0, 3) == tokens(1.0, 3)
    assert tokens(1.0, 3) != tokens(1.0, 4)
    assert tokens(1.0, 3) != tokens(0.0, 3)
    assert tokens(0.0, 3) == tokens(0.0, 4)
    assert tokens(1.0, 3)[0] == engine.generate(item.turns[0], max_new_tokens=12, temperature=1.0, seed=3).tokens
