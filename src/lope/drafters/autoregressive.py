"""Drafts with a model, level by level: the shape draws, the stop rule ends, one packed pass runs all requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar, overload

import torch
from torch import Tensor

from lope.core.budget import Budget
from lope.core.draft import Draft, Draw
from lope.core.errors import NoTokenLeftError
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, DraftModel, Laws, Memo, Shape, Step, Stop
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import Needs
from lope.drafters.own_sampling import AS_THE_REQUEST, OwnSampling

M = TypeVar("M")
BesideT = TypeVar("BesideT", contravariant=True)


@dataclass(frozen=True, eq=False)
class AutoregressiveDrafter(Generic[M, BesideT]):
    """Any draft model with any shape and any stop rule; its sessions are the model's own.

    name:      of its one source.
    own:       how it samples where not as the request does.
    max_nodes: what the model can hold beside its context, or None.
    """

    model: DraftModel[M, BesideT]
    shape: Shape
    stop: Stop
    name: str = "model"
    own: OwnSampling = AS_THE_REQUEST
    max_nodes: int | None = None

    @property
    def needs(self) -> Needs:
        """What the model must know of the target's pass."""
        return self.model.needs

    @property
    def sources(self) -> tuple[str, ...]:
        """The model's name."""
        return (self.name,)

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """The shape's."""
        return self.shape.draws(self.own.greedy(greedy))

    def sampling(self, request: Sampling) -> Sampling:
        """The request's, with the drafter's own temperature, top-k and top-p where it has them."""
        return self.own.apply(request)

    def open(self, prompt: Prompt, beside: BesideT) -> M:
        """A session of the model; runs nothing."""
        return self.model.open(prompt, beside)

    def fork(self, session: M, beside: BesideT) -> M:
        """An independent copy."""
        return self.model.fork(session, beside)

    def propose(self, asks: Sequence[Ask[M]]) -> list[Draft]:
        """One tree for each ask: levels of all requests still growing run in one pass."""
        growing = sprouts = [_Sprout(ask, self.shape, self.stop, self.max_nodes) for ask in asks]
        while growing := [sprout for sprout in growing if sprout.growing]:
            answers = self.model.step([sprout.step() for sprout in growing])
            for sprout, (logits, hidden) in zip(growing, answers, strict=True):
                sprout.grow(logits, hidden)
        return [sprout.growth.draft() for sprout in sprouts]


class _Sprout(Generic[M]):
    """One request's draft while it grows, with what its frontier inherits from the level above."""

    def __init__(self, ask: Ask[M], shape: Shape, stop: Stop, max_nodes: int | None) -> None:
        budget = ask.budget if max_nodes is None else _capped(ask.budget, max_nodes)
        self._ask = ask
        self._stop = stop if budget.stop is None else budget.stop
        self._memos: list[Memo] = [()]
        self._own: Sequence[float] = (1.0,)
        self._ended = False
        self.growth = shape.start(budget, ask.chance, ask.sampler.greedy, ask.sampler.length)

    @property
    def growing(self) -> bool:
        return bool(self.growth.frontier) and not self._ended

    def step(self) -> Step[M]:
        return Step(self._ask.session, self.growth.tree, self.growth.frontier)

    def grow(self, logits: Rows, hidden: Tensor | None) -> None:
        tree, nodes, sampler = self.growth.tree, self.growth.frontier, self._ask.sampler
        paths = [tree.words(node) for node in nodes]
        try:
            rows = sampler.processed(logits, paths) if sampler.greedy else sampler.filtered(logits, paths)
        except NoTokenLeftError:
            # the model may know none of the tokens that are allowed here: if nobody does, the target says so
            self._ended = True
            return
        laws = Laws(nodes, rows, self._own, hidden)
        stops = self._stop.should_stop(laws, self._memos)
        self.growth.grow(laws, [stop for stop, _ in stops])
        self._inherit(laws, [memo for _, memo in stops])

    def _inherit(self, laws: Laws, memos: list[Memo]) -> None:
        tree, nodes = self.growth.tree, self.growth.frontier
        row_of = {node: row for row, node in enumerate(laws.nodes)}
        parents = [row_of[tree.parents[node]] for node in nodes]
        self._memos = [memos[row] for row in parents]
        self._own = _OwnProbabilities(laws.rows, parents, [tree.tokens[node] for node in nodes]) if nodes else ()


def _capped(budget: Budget, nodes: int) -> Budget:
    return Budget(min(budget.nodes, nodes), budget.depth, budget.stop, budget.source, budget.ticket)


@dataclass(frozen=True, eq=False)
class _OwnProbabilities(Sequence[float]):
    """The probability of tokens[i] under row which[i]: of the law, or at temperature 0 of the softmax at 1.

    Computed when a rule reads it: most rules do not, and it takes as long as drawing a token.
    """

    rows: Rows
    which: list[int]
    tokens: list[int]

    def __len__(self) -> int:
        return len(self.tokens)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Memo: ...
    def __getitem__(self, index: int | slice) -> float | Memo:
        return self._values[index]

    @cached_property
    def _values(self) -> Memo:
        rows = self.rows
        index = torch.tensor(self.which, device=rows.values.device)
        token = torch.tensor(self.tokens, device=rows.values.device)
        if rows.ids is None:
            values = rows.values[index, token]
        else:
            held = rows.ids.expand_as(rows.values)[index] == token[:, None]
            values = rows.values[index].masked_fill(~held, float("-inf")).amax(dim=-1)
        if rows.rest != 0.0:
            total = torch.logsumexp(rows.values, dim=-1) if rows.total is None else rows.total
            values = (values - total[index]).exp()
        return tuple(values.tolist())
