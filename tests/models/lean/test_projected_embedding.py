"""A decoder that reads another model's embedding through a projection says what its equations say."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.models import random_drafter
from tests.models.lean import naive
from tests.models.lean.test_feature_draft_model import BUSH, CHAIN, LOGITS, levels, tree_of, words
from torch import Tensor

from lope.core.draft import EMPTY, ROOT, Draft
from lope.core.prompt import Prompt
from lope.core.protocols import Step
from lope.core.scores import Scores
from lope.core.verdict import Verdict
from lope.models.drafter_folder import DrafterFolder, DrafterTarget
from lope.models.lean.decoder import Decoder
from lope.models.lean.draft_model import LeanDraftModel
from lope.models.lean.drafter_weights import standalone_weights

VOCABULARY, WIDTH, TOLERANCE = 61, 24, 1e-4
ABOUT = random_drafter.about("standalone", DrafterTarget("tiny", "", VOCABULARY, WIDTH, 4), kept=20)
TENSORS = random_drafter.tensors(ABOUT)
TABLE = torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(1))
MODEL = LeanDraftModel(Decoder(standalone_weights(DrafterFolder(Path(), ABOUT, TENSORS), TABLE), invariant=False))


def check(sessions: Sequence[Any], texts: Sequence[tuple[int, ...]], trees: Sequence[Draft]) -> None:
    """Grow all trees level by level, packed; every row is the reference's."""
    growing = list(zip(sessions, texts, trees, map(levels, trees), strict=True))
    for level in range(max(len(deep) for *_, deep in growing)):
        now = [(session, text, tree, deep[level]) for session, text, tree, deep in growing if level < len(deep)]
        answers = MODEL.step([Step(session, tree, frontier) for session, _, tree, frontier in now])
        for (_, text, tree, frontier), (rows, _) in zip(now, answers, strict=True):
            expected = [naive.standalone(TENSORS, ABOUT, TABLE, (*text, *tree.words(node))) for node in frontier]
            torch.testing.assert_close(rows.values.double(), torch.stack(expected), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("parents", [CHAIN, BUSH], ids=["chain", "tree"])
def test_after_acceptances_of_any_length_all_packed(parents: Sequence[int]) -> None:
    chance = random.Random(1)
    texts = [words(count, count) for count in (1, 2, 9, 40)]
    sessions: list[Any] = [MODEL.open(Prompt(text), None) for text in texts]  # type: ignore[arg-type]
    for number in range(3):
        trees = [tree_of(parents[: len(parents) - index], number + index) for index in range(4)]
        check(sessions, texts, trees)
        for index, draft in enumerate(trees):
            path = draft.path(chance.randrange(ROOT, len(draft)))
            verdict = Verdict(path, (*(draft.tokens[node] for node in path), 7, 8)[: len(path) + 1 + index % 2])
            sessions[index].commit(draft, Scores(LOGITS, 1), verdict)
            texts[index] += verdict.tokens
    check(sessions, texts, [EMPTY] * 4)


def test_only_rows_that_are_looked_up_are_projected(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table of the projected embedding is ever made: 100,000 rows of one vocabulary would cost more than a draft."""
    seen: list[int] = []
    weights = standalone_weights(DrafterFolder(Path(), ABOUT, TENSORS), TABLE)
    projection = weights.embedding._projection  # type: ignore[attr-defined]

    def counting(x: Tensor, residual: Tensor | None = None) -> Tensor:
        seen.append(len(x))
        return projection(x)  # type: ignore[no-any-return]

    monkeypatch.setattr(weights.embedding, "_projection", counting)
    model = LeanDraftModel(Decoder(weights, invariant=False))
    session: Any = model.open(Prompt(words(9)), None)  # type: ignore[arg-type]
    model.step([Step(session, EMPTY, (ROOT,))])
    model.step([Step(session, tree_of((-1, -1)), (0, 1))])
    assert seen == [9, 2]
    assert weights.embedding.table is TABLE
