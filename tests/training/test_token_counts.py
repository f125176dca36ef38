"""Counts to trim by: over answers, over text, and over what a drafter proposes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.training.folders import distilled, drafter

from lope.core.errors import UsageError
from lope.drafters.around import AroundDrafter
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel
from lope.training.listener import Listener
from lope.training.token_counts import TokenCounts, prompts_of


def test_answers_are_counted_and_every_tenth_is_held_out(
    tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    model = tiny_model()
    place = distilled(tmp_path / "set", model, [(7, number % 3) for number in range(20)])
    found = TokenCounts.of_target(model, [place])
    assert int(found.counts.sum()) == 36
    assert found.counts[7] == 18
    # answers 9 and 19: 9 % 3 == 0, 19 % 3 == 1
    assert found.held_out.nonzero()[:, 0].tolist() == [0, 1, 7]
    assert found.held_out[7] == 2


def test_lines_of_text_are_counted(tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> None:
    model = tiny_model()
    path = tmp_path / "text.txt"
    path.write_text("the cat\nthe dog\n", encoding="utf-8")
    found = TokenCounts.of_text(model, path)
    assert int(found.counts.sum()) == sum(len(model.tokenizer.encode(line)) for line in ("the cat", "the dog"))
    assert int(found.held_out.sum()) == 0


@pytest.mark.parametrize("kind", ["standalone", "eagle"])
def test_what_a_drafter_proposes_is_counted_by_its_laws(
    kind: str, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    model = tiny_model()
    folder = drafter(tmp_path / "drafter", model, kind, kept=60)
    place = distilled(tmp_path / "set", model, [(7, 8)] * 10)
    prompts = prompts_of(model, [place], None, 10, 6)
    assert [prompt.ids for prompt in prompts] == [model.tokenizer.encode("the cat")] * 10
    found = TokenCounts.of_drafts(model, folder, prompts, 6, seed=0)
    outside = torch.ones(model.backend.vocab_size, dtype=torch.bool)
    outside[folder.tensors["kept"]] = False
    for counts in (found.counts, found.held_out):
        assert float(counts[outside].sum()) == 0.0
        # a law a drafted token, so whole numbers of them
        assert float(counts.sum()) == pytest.approx(round(float(counts.sum())), abs=1e-3)
        assert float(counts.sum()) >= 1.0
    assert float(found.counts.sum()) > float(found.held_out.sum())


def test_a_listened_drafter_drafts_what_it_would(tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> None:
    model = tiny_model()
    folder = drafter(tmp_path / "drafter", model, "standalone")
    parts = Parts(f"standalone:path={folder.path}", policy="fixed:depth=3")
    listener = Listener(torch.zeros(model.backend.vocab_size, dtype=torch.float64))
    heard = AroundDrafter(parts.make_drafter(model), listener)
    settings = {"max_new_tokens": 16, "temperature": 1.0, "seed": 3, "ignore_stop": True}
    said = Engine(model, parts, exact=False, drafter=heard).generate("the cat", **settings)
    alone = Engine(model, parts, exact=False).generate("the cat", **settings)
    assert said.tokens == alone.tokens
    assert float(listener.heard.sum()) == pytest.approx(said.stats.drafted, abs=1e-3)


def test_prompts_come_from_lines_where_there_is_no_set(tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> None:
    model = tiny_model()
    path = tmp_path / "prompts.txt"
    path.write_text("the cat\nthe dog\nthe mat\n", encoding="utf-8")
    engine = Engine(model, Parts(drafter="none"), exact=False)
    assert [p.ids for p in prompts_of(model, [], path, 2, 8)] == [engine.ids("the cat"), engine.ids("the dog")]
    with pytest.raises(UsageError, match="no prompt leaves room for 256 tokens"):
        prompts_of(model, [], path, 2, 256)


def test_sets_and_texts_with_nothing_to_count_are_one_line(
    tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    model = tiny_model()
    with pytest.raises(UsageError, match="empty: holds no sequence yet"):
        TokenCounts.of_target(model, [distilled(tmp_path / "empty", model, [])])
    with pytest.raises(UsageError, match="was distilled with another tokenizer"):
        TokenCounts.of_target(model, [distilled(tmp_path / "other", model, [(1, 2)], tokenizer="another")])
    (tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no text"):
        TokenCounts.of_text(model, tmp_path / "blank.txt")
