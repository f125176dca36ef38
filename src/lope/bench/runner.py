"""The run: every prompt by every system before the next prompt, so that a slow minute of the machine meets them all."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lope.bench.record import Row
from lope.bench.results_file import ResultsFile
from lope.bench.suite import Item, Suite
from lope.bench.system import System
from lope.core.errors import LopeError, RunError


@dataclass(frozen=True)
class Runner:
    """Prompts in shuffled order, systems in an order that rotates from prompt to prompt.

    needed: systems without which there is nothing to compare with; any other that fails is left out from there on.
    say:    told one line about every system that is left out.
    """

    systems: Sequence[System]
    suite: Suite
    max_new_tokens: int
    seed: int
    needed: frozenset[str]
    say: Callable[[str], None]
    dropped: dict[str, str] = field(default_factory=dict)

    def schedule(self) -> list[tuple[Item, int, System]]:
        """All that is to be run, in order: the item, the place in its rotation, the system."""
        items = list(self.suite.items)
        random.Random(self.seed).shuffle(items)
        planned = []
        for number, item in enumerate(items):
            turn = number % len(self.systems)
            rotated = [*self.systems[turn:], *self.systems[:turn]]
            planned += [(item, place, system) for place, system in enumerate(rotated)]
        return planned

    def run(self, results: ResultsFile) -> Iterator[Row | None]:
        """Run what the results lack; each row is on the disk before it is yielded, None where one was left out.

        Raises RunError when a needed system fails or the disk is full; finished rows are kept.
        """
        todo = [step for step in self.schedule() if not results.has(step[0].id, step[2].name)]
        warm: set[str] = set()
        for item, place, system in todo:
            if system.name in self.dropped:
                yield None
                continue
            try:
                if system.name not in warm:
                    system.answer(item, 4)  # the first answer of a process pays for what later ones find ready
                    warm.add(system.name)
                turns = system.answer(item, self.max_new_tokens)
            except LopeError as error:
                self._drop(system, item, error)
                yield None
                continue
            row = Row(item.id, item.category, item.group, system.name, turns, system.peak_memory(), place)
            results.add(row)
            yield row

    def _drop(self, system: System, item: Item, error: LopeError) -> None:
        words = f"{system.name} failed at prompt {item.id}: {error}"
        if system.name in self.needed:
            raise RunError(f"{words}; finished rows are kept") from error
        self.dropped[system.name] = str(error)
        self.say(f"{words}; it is left out from here on, its finished rows are kept")
        system.close()
