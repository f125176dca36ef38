"""Every registered shape: tree invariants, hard budgets, the law of its draws, points at temperature 0."""

import dataclasses
import random
from collections import Counter, defaultdict
from typing import Any

import pytest
import torch
from scipy.stats import chi2

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path
from lope.core.protocols import Laws
from lope.core.rows import Rows, stack
from lope.core.sampling import Sampling
from lope.models.table import TableModel
from lope.models.table_draft import TableDraftModel
from lope.shapes import SHAPES
from lope.shapes.rsd_s import RsdSShape

MORE = (
    "rsd_c:branching=2-2-2",
    "rsd_c:branching=1-3",
    "rsd_s:width=3,depth=2",
    "independent:chains=3,depth=3",
)
WIDE = Budget(100, 100)
PLAIN = Sampling(temperature=1.0)
FILTERED = Sampling(temperature=0.7, top_k=50, top_p=0.8, repetition_penalty=1.3)


@pytest.fixture(params=[*SHAPES, *MORE])
def shape(request: pytest.FixtureRequest) -> Any:
    return SHAPES.make(request.param)


@pytest.mark.parametrize("nodes", [0, 1, 3, 5, 100])
@pytest.mark.parametrize("depth", [0, 2, 100])
@pytest.mark.parametrize("sampling", [Sampling(), PLAIN, FILTERED], ids=["greedy", "plain", "filtered"])
def test_draft_is_a_tree_within_its_budget(kit, shape, nodes, depth, sampling):
    budget = Budget(nodes, depth)
    model = kit.wordy(700, 3, 4.0)
    for seed in range(2):
        draft = kit.grown(shape, budget=budget, sampling=sampling, seed=seed, model=model)
        kit.check_draft(draft, budget, shape.draws(sampling.temperature == 0.0), 1)
        assert (len(draft) > 0) == (nodes > 0 and depth > 0)


def test_laws_are_exactly_what_was_drawn_from(kit, shape):
    model = kit.wordy(300, 5, 3.0)
    seen: list[Laws] = []

    @dataclasses.dataclass(frozen=True)
    class Spy:
        def should_stop(self, laws, memos):
            seen.append(laws)
            return [(False, ())] * len(memos)

    draft = kit.grown(shape, budget=WIDE, sampling=FILTERED, model=model, stop=Spy())
    given = {node: laws.rows.dense(row) for laws in seen for row, node in enumerate(laws.nodes)}
    for parent in range(ROOT, len(draft)):
        if draft.law_of[parent + 1] >= 0:
            law = draft.laws.dense(draft.law_of[parent + 1])
            assert law.dtype == torch.float32
            assert torch.equal(law, given[parent])
    own = {node: value for laws in seen for node, value in zip(laws.nodes, laws.own, strict=True)}
    assert own.pop(ROOT) == 1.0
    for node, value in own.items():
        assert value == pytest.approx(float(given[draft.parents[node]][draft.tokens[node]]), rel=1e-6)


def test_children_of_a_last_row_are_drawn_and_never_expanded(kit, shape):
    @dataclasses.dataclass(frozen=True)
    class AtRoot:
        def should_stop(self, laws, memos):
            return [(True, ())] * len(memos)

    draft = kit.grown(shape, budget=WIDE, stop=AtRoot())
    assert set(draft.depths) == {1}
    free = kit.grown(shape, budget=WIDE)
    assert draft.tokens == free.tokens[: len(draft)]


def test_same_chance_same_draft(kit, shape):
    one, other, third = (kit.grown(shape, budget=WIDE, seed=seed) for seed in (4, 4, 5))
    assert kit.same_draft(one, other)
    assert len(shape.draws(False)) > 0
    assert not kit.same_draft(one, third) or one.tokens == third.tokens


def test_temperature_zero_takes_the_ordered_best(kit, shape):
    model = TableDraftModel(8, 2)
    draft = kit.grown(shape, budget=WIDE, sampling=Sampling(), model=model)
    assert set(draft.draws) == {Draw.POINT}
    assert draft.laws is None
    for parent in range(ROOT, len(draft)):
        row = model.table.after([(0, 1, *draft.words(parent))])[0]
        best = row.argsort(descending=True).tolist()
        family = [draft.tokens[node] for node in draft.children[parent + 1]]
        assert family == best[: len(family)]


def test_forbidden_tokens_are_never_named(kit, shape):
    for temperature in (0.0, 1.0):
        sampling = Sampling(temperature=temperature, allowed_tokens=(1, 3))
        draft = kit.grown(shape, budget=WIDE, sampling=sampling)
        assert set(draft.tokens) <= {1, 3}
        kit.check_draft(draft, WIDE, shape.draws(temperature == 0.0), 1)


@pytest.mark.parametrize("name", [*SHAPES, *MORE])
def test_siblings_follow_the_law_of_their_draw(kit, name):
    assert family_law(SHAPES.make(name)) > 1e-3


# What makes recursive verification exact: given the elder siblings and that there is another one, the next token is
# drawn from what is left (without replacement) or from the whole law (independent). Whether there is another one may
# depend on anything but that token.


def drawn(shape: Any, rows: dict[Path, Rows], seed: int) -> Draft:
    """One draft of at most two levels over given laws by path."""
    growth = shape.start(Budget(100, 2), KeyedChance(seed, 0, 0), False, 2)
    while growth.frontier:
        nodes, tree = growth.frontier, growth.tree
        laws = stack([rows[tree.words(node)] for node in nodes])
        growth.grow(Laws(nodes, laws, (1.0,) * len(nodes)), [False] * len(nodes))
    return growth.draft()


def family_law(shape: Any, samples: int = 1500) -> float:
    """P-value of a chi-square test of every next sibling, given its parent's path and its elders."""
    table = TableModel(4, 7, 1.5)
    paths = [(), *((token,) for token in range(4))]
    rows = {path: Rows(table.after([(0, 1, *path)]).softmax(-1), None, 4, 0.0) for path in paths}
    counts: dict[tuple[Any, ...], Counter[int]] = defaultdict(Counter)
    for seed in range(samples):
        draft = drawn(shape, rows, seed)
        for parent in range(ROOT, len(draft)):
            elders: tuple[int, ...] = ()
            for node in draft.children[parent + 1]:
                replaced = draft.draws[node] is Draw.INDEPENDENT
                counts[draft.words(parent), () if replaced else elders][draft.tokens[node]] += 1
                elders += (draft.tokens[node],)
    statistic, freedom = 0.0, 0
    for (path, elders), seen in counts.items():
        law = rows[path].values[0].clone()
        law[list(elders)] = 0.0
        expected = law / law.sum() * seen.total()
        tokens = [token for token in range(4) if token not in elders]
        if len(tokens) < 2 or min(float(expected[token]) for token in tokens) < 5:
            continue
        statistic += sum((seen[token] - float(expected[token])) ** 2 / float(expected[token]) for token in tokens)
        statistic += sum(1e6 * seen[token] for token in elders)
        freedom += len(tokens) - 1
    assert freedom >= 3
    return float(chi2.sf(statistic, freedom))


class Reworked:
    """A shape whose finished draft is changed: the change must be as harmless as it claims."""

    def __init__(self, shape: Any, change: Any) -> None:
        self._shape, self._change = shape, change

    def draws(self, greedy: bool) -> frozenset[Draw]:
        return frozenset(Draw)

    def start(self, budget: Budget, chance: Any, greedy: bool, position: int) -> Any:
        growth, change = self._shape.start(budget, chance, greedy, position), self._change

        class Changed:
            tree = property(lambda self: growth.tree)
            frontier = property(lambda self: growth.frontier)

            def grow(self, laws: Laws, last: Any) -> None:
                growth.grow(laws, last)

            def draft(self) -> Draft:
                return change(growth.draft())

        return Changed()


def rebuilt(draft: Draft, nodes: list[int]) -> Draft:
    """The draft with only these nodes, in this order."""
    number = {ROOT: ROOT, **{node: index for index, node in enumerate(nodes)}}
    return Draft(
        tuple(draft.tokens[node] for node in nodes),
        tuple(number[draft.parents[node]] for node in nodes),
        tuple(draft.draws[node] for node in nodes),
        (0,) * len(nodes),
        draft.laws,
        (draft.law_of[0], *(draft.law_of[node + 1] for node in nodes)),
    )


def test_pruning_a_beam_to_the_ancestors_of_its_last_level_is_harmless(kit):
    def prune(draft: Draft) -> Draft:
        deepest = max(draft.depths)
        kept = {step for node in range(len(draft)) if draft.depths[node] == deepest for step in draft.path(node)}
        return rebuilt(draft, sorted(kept))

    assert family_law(Reworked(RsdSShape(3, 3), prune)) > 1e-3


def by_family(draft: Draft, order: Any) -> Draft:
    """The draft with the children of every parent reordered."""
    nodes: list[int] = []
    level = [ROOT]
    while level:
        level = [node for parent in level for node in order(draft.children[parent + 1])]
        nodes += level
    return rebuilt(draft, nodes)


def sorted_by_token(draft: Draft) -> Draft:
    return by_family(draft, lambda nodes: sorted(nodes, key=lambda node: draft.tokens[node]))


def shuffled(draft: Draft) -> Draft:
    order = random.Random(len(draft.tokens) + 31 * sum(draft.tokens))
    return by_family(draft, lambda nodes: order.sample(nodes, len(nodes)))


def without_token_zero(draft: Draft) -> Draft:
    return rebuilt(draft, [node for node in range(len(draft)) if 0 not in draft.words(node)])


@pytest.mark.parametrize("mutation", [sorted_by_token, shuffled, without_token_zero])
@pytest.mark.parametrize("name", ["rsd_s:width=3,depth=2", "rsd_c:branching=2-2"])
def test_mutants_that_reorder_or_drop_are_caught(kit, name, mutation):
    assert family_law(Reworked(SHAPES.make(name), mutation)) < 1e-6


def test_mutant_that_merges_copies_is_caught(kit):
    def merge(draft: Draft) -> Draft:
        return rebuilt(draft, [node for node in range(len(draft)) if draft.firsts[node] == node])

    assert family_law(Reworked(SHAPES.make("independent:chains=3,depth=2"), merge)) < 1e-6


def test_mutant_invariants_are_caught(kit):
    budget = Budget(6, 3)
    draft = kit.grown(SHAPES.make("rsd_c:branching=2-2"), budget=budget)
    kinds = frozenset(Draw)
    kit.check_draft(draft, budget, kinds, 1)
    half = Rows(draft.laws.values / 2, None, 4, 0.0)
    faults = {
        "hard cap": (draft, Budget(5, 3)),
        "a drafter draws": (draft, budget, frozenset({Draw.POINT})),
        "parents come first": (dataclasses.replace(draft, parents=(*draft.parents[:-1], 5)), budget),
        "ONLY": (dataclasses.replace(draft, draws=(Draw.ONLY,) * 6), budget),
        "sum to one": (dataclasses.replace(draft, laws=half), budget),
        "stand together": (
            dataclasses.replace(draft, parents=(-1, -1, 0, 1, 0, 1), law_of=draft.law_of),
            budget,
        ),
        "may be equal": (dataclasses.replace(draft, tokens=(0, 1, 2, 2, 1, 2)), budget),
    }
    for message, (faulty, cap, *rest) in faults.items():
        allowed = rest[0] if rest else kinds
        with pytest.raises(AssertionError, match=message):
            kit.check_draft(faulty, cap, allowed, 1)
