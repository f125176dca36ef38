"""Drafts of every kind from a table: random trees whose tokens are drawn through the same chance that verifies them."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Chance
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.models.table import TableModel


@dataclass(frozen=True)
class Fork:
    """The children that a node gets: `drawn` ones of one kind, then `points`; each entry says what hangs below."""

    draw: Draw = Draw.POINT
    drawn: "tuple[Fork, ...]" = ()
    points: "tuple[Fork, ...]" = ()


LEAF = Fork()
HOT = Sampling(temperature=1.0)


@dataclass(frozen=True)
class TableDrafter:
    """Draws a tree of a given form. Points are the draft's best tokens, without those that were drawn beside them.

    keep:    the tokens that the draft's vocabulary was trimmed to, or None.
    columns: how the laws are held: "dense", "shared" ids or "own" ids for each row.
    """

    form: Fork
    model: TableModel
    sampling: Sampling = HOT
    keep: tuple[int, ...] | None = None
    columns: str = "dense"
    known: dict[tuple[Path, Path], Tensor] = field(default_factory=dict)

    def propose(self, context: Path, depth: int, chance: Chance) -> Draft:
        tree = _Tree(self, context, chance)
        level = {ROOT: [self.form]}
        for _ in range(depth):
            level = tree.grow(level)
        return tree.draft()

    def law(self, context: Path, words: Path) -> Tensor:
        if (context, words) not in self.known:
            self.known[context, words] = self._law(context, words)
        return self.known[context, words]

    def _law(self, context: Path, words: Path) -> Tensor:
        sampler = self.sampling.begin(Prompt(context))
        logits = self.model.after([context + words])
        if self.keep is not None:
            kept = torch.full_like(logits, float("-inf"))
            kept[:, list(self.keep)] = logits[:, list(self.keep)]
            logits = kept
        return sampler.filtered(Rows(logits, None, logits.shape[-1], float("-inf")), [words]).dense(0)


@dataclass
class _Tree:
    drafter: TableDrafter
    context: Path
    chance: Chance
    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    laws: dict[int, Tensor] = field(default_factory=dict)

    def grow(self, level: dict[int, list[Fork]]) -> dict[int, list[Fork]]:
        """Draw the children of a level; what hangs under a copy is drawn under its first."""
        below: dict[int, list[Fork]] = {}
        for node, forks in level.items():
            words = self.draft().words(node)
            law = self.drafter.law(self.context, words)
            position = len(self.context) + len(words)
            drawn = [fork for parent in forks for fork in parent.drawn]
            named = forks[0].points
            tokens = self._draw(forks[0].draw, law, len(drawn), position) if drawn else []
            if tokens:
                self.laws[node] = law
            best = torch.argsort(law, descending=True, stable=True).tolist()[: len(named)]
            points = [(token, fork) for token, fork in zip(best, named, strict=True) if token not in tokens]
            firsts: dict[int, int] = {}
            children = [(token, forks[0].draw, fork) for token, fork in zip(tokens, drawn, strict=False)]
            for token, draw, fork in children + [(token, Draw.POINT, fork) for token, fork in points]:
                below.setdefault(firsts.setdefault(token, len(self.tokens)), []).append(fork)
                self.tokens.append(token)
                self.parents.append(node)
                self.draws.append(draw)
        return below

    def _draw(self, draw: Draw, law: Tensor, count: int, position: int) -> list[int]:
        if draw is Draw.INDEPENDENT:
            return [self.chance.order(law, None, 1, position)[0] for _ in range(count)]
        return self.chance.order(law, None, count, position)

    def draft(self) -> Draft:
        law_of = [-1] * (len(self.tokens) + 1)
        for row, node in enumerate(self.laws):
            law_of[node + 1] = row
        laws = self._rows() if self.laws else None
        source = (0,) * len(self.tokens)
        return Draft(tuple(self.tokens), tuple(self.parents), tuple(self.draws), source, laws, tuple(law_of))

    def _rows(self) -> Rows:
        values = torch.stack(list(self.laws.values()))
        size = values.shape[-1]
        if self.drafter.columns == "shared":
            ids = torch.tensor(self.drafter.keep or tuple(reversed(range(size))))
            return Rows(values[:, ids], ids, size, 0.0)
        if self.drafter.columns == "own":
            own = torch.stack([torch.arange(size).roll(row + 1) for row in range(len(values))])
            return Rows(values.gather(-1, own), own, size, 0.0)
        return Rows(values, None, size, 0.0)
