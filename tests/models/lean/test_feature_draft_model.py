"""The feature drafter says what its equations say: along chains and trees, after acceptances of any length, packed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.models import random_drafter
from tests.models.lean import naive
from torch import Tensor

from lope.core.draft import EMPTY, ROOT, Draft, Draw
from lope.core.prompt import Prompt, Span
from lope.core.protocols import Step
from lope.core.rows import Rows
from lope.core.scores import Scores
from lope.core.verdict import NOTHING, Verdict
from lope.models.drafter_folder import DrafterFolder, DrafterTarget
from lope.models.lean.draft_model import SLICE_ROWS
from lope.models.lean.drafter_weights import feature_weights
from lope.models.lean.feature_draft_model import FeatureDraftModel
from lope.models.lean.feature_session import FeatureDraftSession

VOCABULARY, WIDTH, TOLERANCE = 61, 32, 1e-4
ABOUT = random_drafter.about("eagle", DrafterTarget("tiny", "", VOCABULARY, WIDTH, 4), kept=20, context=8)
TENSORS = random_drafter.tensors(ABOUT)
TABLE = torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(1))
LOGITS = Rows(torch.zeros(1, 1), None, 1, float("-inf"))


def made(context: int = 2048) -> FeatureDraftModel:
    return FeatureDraftModel(feature_weights(DrafterFolder(Path(), ABOUT, TENSORS), TABLE, context))


@dataclass
class Told:
    """One sequence: the session, and all that it was ever told, for the reference."""

    model: FeatureDraftModel
    session: FeatureDraftSession
    embedded: Tensor
    features: Tensor = field(default_factory=lambda: torch.zeros(0, len(ABOUT.layers) * WIDTH))
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    @classmethod
    def open(cls, model: FeatureDraftModel, prompt: Prompt, seed: int = 0) -> "Told":
        session: Any = model.open(prompt, None)  # type: ignore[arg-type]
        return cls(model, session, embedded(prompt), chance=random.Random(seed))

    def extend(self, prompt: Prompt) -> None:
        self.session.extend(prompt)
        self.embedded = torch.cat([self.embedded, embedded(prompt)])

    def round(self, draft: Draft, path: Sequence[int], more: Sequence[int] = (3,)) -> None:
        """The target runs what is pending and the draft, and accepts this path and more tokens."""
        context, count = len(self.embedded) - len(self.features), len(draft)
        generator = torch.Generator().manual_seed(self.chance.randrange(1 << 30))
        said = torch.randn(context + count, len(ABOUT.layers) * WIDTH, generator=generator)
        parts = dict(zip(ABOUT.layers, said.split(WIDTH, dim=1), strict=True))
        verdict = Verdict(tuple(path), (*(draft.tokens[node] for node in path), *more))
        self.session.commit(draft, Scores(LOGITS, context, parts), NOTHING)
        self.session.commit(draft, Scores(LOGITS, context, parts), verdict)
        self.features = torch.cat([self.features, said[[*range(context), *(context + node for node in path)]]])
        self.embedded = torch.cat([self.embedded, TABLE[list(verdict.tokens)]])

    def expected(self, tree: Draft, node: int) -> Tensor:
        below = [TABLE[token] for token in tree.words(node)]
        return naive.eagle(TENSORS, ABOUT, self.embedded, self.features, below)


def embedded(prompt: Prompt) -> Tensor:
    rows = TABLE[list(prompt.ids)].clone()
    for span in prompt.spans:
        rows[span.start : span.stop] = span.embeddings
    return rows


def words(count: int, seed: int = 0) -> tuple[int, ...]:
    chance = random.Random(seed)
    return tuple(chance.randrange(VOCABULARY) for _ in range(count))


def tree_of(parents: Sequence[int], seed: int = 0) -> Draft:
    """Different tokens, so that no node is a copy."""
    count = len(parents)
    tokens = tuple(random.Random(seed).sample(range(VOCABULARY), count))
    return Draft(tokens, tuple(parents), (Draw.POINT,) * count, (0,) * count, None, (-1,) * (count + 1))


CHAIN = (-1, 0, 1, 2, 3)
BUSH = (-1, -1, -1, 0, 0, 1, 3, 3, 5, 6)


def levels(tree: Draft) -> list[tuple[int, ...]]:
    deepest = max(tree.depths, default=0)
    deep = [tuple(node for node in range(len(tree)) if tree.depths[node] == depth) for depth in range(1, deepest + 1)]
    return [(ROOT,), *deep]


def check(told: Sequence[Told], trees: Sequence[Draft]) -> None:
    """Grow all trees level by level, packed; every row is the reference's."""
    growing = [(one, tree, levels(tree)) for one, tree in zip(told, trees, strict=True)]
    for level in range(max(len(all_levels) for _, _, all_levels in growing)):
        now = [(one, tree, deep[level]) for one, tree, deep in growing if level < len(deep)]
        answers = told[0].model.step([Step(one.session, tree, frontier) for one, tree, frontier in now])
        for (one, tree, frontier), (rows, hidden) in zip(now, answers, strict=True):
            expected = torch.stack([one.expected(tree, node) for node in frontier])
            assert (rows.size, rows.ids, rows.rest) == (20, None, float("-inf"))
            torch.testing.assert_close(rows.values.double(), expected, atol=TOLERANCE, rtol=0)
            assert hidden is not None
            head = hidden.double() @ TENSORS["lm_head.weight"].double().T
            torch.testing.assert_close(head, expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("parents", [CHAIN, BUSH], ids=["chain", "tree"])
def test_a_draft_says_what_the_equations_say(parents: Sequence[int]) -> None:
    told = Told.open(made(), Prompt(words(7)))
    told.round(EMPTY, ())
    tree = tree_of(parents)
    check([told], [tree])
    check([told], [tree_of(parents, 1)])  # another draft in the same round: the first leaves nothing behind


def test_after_acceptances_of_any_length_and_between_turns_all_packed() -> None:
    """Ragged: four sequences of different lengths and ages; some draft nothing in some rounds."""
    model = made()
    told = [Told.open(model, Prompt(words(count, count)), count) for count in (2, 3, 11, 30)]
    chance = random.Random(5)
    for one in told:
        one.round(EMPTY, ())
    for number in range(5):
        drafting = [one for index, one in enumerate(told) if (number + index) % 4]
        trees = [tree_of((CHAIN, BUSH, ())[(number + index) % 3], number + index) for index in range(len(drafting))]
        check(drafting, trees)
        drafts = {id(one): tree for one, tree in zip(drafting, trees, strict=True)}
        for one in told:
            draft = drafts.get(id(one), EMPTY)
            one.round(draft, draft.path(chance.randrange(ROOT, len(draft))) if len(draft) else ())
    told[1].extend(Prompt(words(5, 77)))
    assert [one.session.ready for one in told] == [True, False, True, True]
    told[1].round(EMPTY, ())
    check(told, [tree_of(BUSH, number) for number in range(4)])


def test_rows_of_drafted_nodes_do_not_stay() -> None:
    """They were computed from the layer's own output; kept, they would show."""
    told = Told.open(made(), Prompt(words(9)))
    told.round(EMPTY, ())
    tree = tree_of(CHAIN)
    check([told], [tree])
    told.round(tree, (0, 1, 2))
    check([told], [EMPTY])
    right = told.expected(EMPTY, ROOT)
    own = naive.eagle(TENSORS, ABOUT, told.embedded[:-3], told.features[:-3], list(told.embedded[-3:]))
    assert float((right - own).abs().max()) > 100 * TOLERANCE


def test_a_long_text_is_read_in_slices() -> None:
    told = Told.open(made(), Prompt(words(1100)))
    told.round(EMPTY, ())
    told.round(EMPTY, ())
    check([told], [tree_of((-1, 0))])
    assert told.session.cache.length == 2 * SLICE_ROWS < 1100


def test_the_context_is_the_targets_however_short_the_drafters() -> None:
    assert ABOUT.decoder.context == 8
    told = Told.open(made(context=20), Prompt(words(14)))
    told.round(EMPTY, ())
    check([told], [tree_of(CHAIN)])


def test_pictures_are_read_where_the_target_reads_them() -> None:
    seen = torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(3))
    told = Told.open(made(), Prompt((5, 0, 0, 0, 0, 6), (Span(1, 5, seen),)))
    told.round(EMPTY, ())
    check([told], [tree_of(BUSH)])
    told.extend(Prompt((0, 0, 9), (Span(0, 2, seen[2:]),)))
    told.round(EMPTY, ())
    check([told], [tree_of(BUSH, 1)])
    blind = naive.eagle(TENSORS, ABOUT, TABLE[[5, 0, 0, 0, 0, 6]], told.features[:5])
    with_picture = naive.eagle(TENSORS, ABOUT, told.embedded[:6], told.features[:5])
    assert float((blind - with_picture).abs().max()) > 100 * TOLERANCE


def test_forks_go_their_own_ways() -> None:
    told = Told.open(made(), Prompt(words(6)))
    told.round(EMPTY, ())
    check([told], [tree_of(CHAIN)])
    session = told.model.fork(told.session, None)  # type: ignore[arg-type]
    copy = Told(told.model, session, told.embedded, told.features, random.Random(9))
    copy.round(tree_of(CHAIN), (0,))
    told.round(EMPTY, (), (4,))
    check([copy, told], [tree_of(BUSH), tree_of(BUSH, 1)])


def test_a_session_that_is_opened_late_reads_from_there_on() -> None:
    """Beside a target that has run the beginning: its hidden states are not delivered again."""
    told = Told.open(made(), Prompt((*words(5), 1, 2, 3, 4)))
    told.embedded = told.embedded[5:]
    told.round(EMPTY, ())
    check([told], [tree_of(CHAIN)])


def test_it_is_ready_once_the_target_has_run_all_but_the_last_item() -> None:
    told = Told.open(made(), Prompt(words(1)))
    assert not told.session.ready
    told.round(EMPTY, ())
    assert told.session.ready
    told.round(EMPTY, (), (5, 6))
    assert not told.session.ready
    with pytest.raises(AssertionError, match="about to run"):
        told.model.step([Step(told.session, EMPTY, (ROOT,))])
    told.round(EMPTY, ())
    check([told], [tree_of(CHAIN)])
