"""Drafter folders beside a target: which one is taken, what does not fit, and that a target of either kind will do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.laws import answers as laws
from tests.models import random_drafter

from lope.core.errors import LopeError, ModelError, SettingError, UsageError
from lope.core.prompt import Prompt, Span
from lope.drafters import DRAFTERS
from lope.drafters.shipped_drafters import shipped
from lope.drafters.workshop import Workshop
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel
from lope.models.loading import load
from lope.shapes import SHAPES
from lope.stops.never import NeverStop

KINDS = ("standalone", "eagle")
Tiny = Callable[..., LoadedModel]
Folder = Callable[..., Path]


def attach(text: str, target: LoadedModel) -> Any:
    return DRAFTERS.make(text).attach(Workshop(target, SHAPES.make("rsd_s"), NeverStop(), load))


def changed(folder: Path, place: Path, **target: Any) -> Path:
    """The same drafter, said to be for another target."""
    shutil.copytree(folder, place)
    document = json.loads((place / "drafter.json").read_text())
    document["target"] |= target
    (place / "drafter.json").write_text(json.dumps(document))
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_path_the_shipped_drafter_of_this_target_is_taken(
    kind: str, tiny_model: Tiny, tiny_folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lope.drafters.shipped_drafters.SHIPPED", tmp_path)
    with pytest.raises(UsageError, match=r"no drafter is shipped for .*: name the folder of one \(.*:path=DIR"):
        attach(kind, tiny_model())
    own = random_drafter.beside(tiny_folder(), kind)
    changed(own, tmp_path / "a-foreign-one", tokenizer="another")
    changed(own, tmp_path / "a-larger-one", num_layers=9)
    assert shipped(kind, tiny_model()) is None
    shutil.copytree(own, tmp_path / "own")
    assert shipped(kind, tiny_model()) == tmp_path / "own"
    assert attach(kind, tiny_model()).sources == (kind,)
    other = KINDS[1 - KINDS.index(kind)]
    assert shipped(other, tiny_model()) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("target", "line"),
    [
        (
            {"tokenizer": "another", "name": "big"},
            r"was made for the tokenizer of big, another\.\.\., which is not that of",
        ),
        ({"vocab_size": 1000}, r"was made for vocab_size 1000 \(the target .* has \d+\)"),
        ({"num_layers": 30}, r"was made for num_layers 30 \(the target .* has 3\)"),
    ],
)
def test_a_drafter_for_another_target_is_refused(
    kind: str, target: dict[str, Any], line: str, tiny_model: Tiny, tiny_folder: Folder, tmp_path: Path
) -> None:
    folder = changed(random_drafter.beside(tiny_folder(), kind), tmp_path / "other", **target)
    with pytest.raises(UsageError, match=line) as caught:
        attach(f"{kind}:path={folder}", tiny_model())
    assert "\n" not in str(caught.value)


def test_a_drafter_for_another_width_is_refused(tiny_model: Tiny, tmp_path: Path) -> None:
    target = random_drafter.DrafterTarget("small", "", tiny_model().backend.vocab_size, 32, 3)
    folder = random_drafter.write(tmp_path / "small", random_drafter.about("eagle", target))
    with pytest.raises(UsageError, match=r"was made for hidden_size 32 \(the target .* has 64\)"):
        attach(f"eagle:path={folder}", tiny_model())


def test_a_folder_of_the_other_kind_is_refused(tiny_model: Tiny, tiny_folder: Folder) -> None:
    folder = random_drafter.beside(tiny_folder(), "eagle")
    with pytest.raises(UsageError, match=f"holds a drafter of kind eagle: write eagle:path={folder}"):
        attach(f"standalone:path={folder}", tiny_model())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_drafter_folder_is_refused(kind: str, tiny_model: Tiny, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is not a drafter folder: it has no drafter\.json"):
        attach(f"{kind}:path={tmp_path}", tiny_model())


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_checked(kind: str) -> None:
    for wrong in ("temperature=-1", "top_k=0", "top_p=2", "layers=3"):
        with pytest.raises(SettingError):
            DRAFTERS.make(f"{kind}:{wrong}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.8, "seed": 4}], ids=["greedy", "sampled"])
def test_a_target_of_transformers_will_do(
    kind: str, settings: dict[str, Any], tiny_model: Tiny, tiny_folder: Folder
) -> None:
    """The same drafter beside the same weights, run by transformers: what is accepted is accepted there too."""
    path = laws.named(f"{kind}:path={{{kind}}}", "llama3", tiny_folder)
    there = load(f"hf:{tiny_folder()}", dtype="float32")
    assert torch.equal(there.backend.embedding, tiny_model().backend.embedding)
    made = [laws.answers(laws.engine(model, path, "chain", exact=False), laws.TEXTS[:3], max_new_tokens=9, **settings)
            for model in (there, tiny_model())]  # fmt: skip
    assert [answer.tokens for answer in made[0]] == [answer.tokens for answer in made[1]]
    assert [answer.stats.accepted for answer in made[0]] == [answer.stats.accepted for answer in made[1]]
    assert settings or sum(answer.stats.accepted for answer in made[0]) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_with_pictures(kind: str, tiny_model: Tiny, tiny_folder: Folder) -> None:
    """In its middle or at its end: the answers are the plain ones, and drafts are made."""
    model = tiny_model()
    seen = torch.randn(5, 64, generator=torch.Generator().manual_seed(2)) * 4
    ids = model.tokenizer.encode("the cat sat on the mat and the cat sat")
    prompts = [
        Prompt(ids, (Span(1, 4, seen[:3]), Span(5, 7, seen[3:]))),
        Prompt(ids, (Span(len(ids) - 5, len(ids), seen),)),
    ]
    made = {}
    for name in ("none", laws.named(f"{kind}:path={{{kind}}}", "llama3", tiny_folder)):
        engine = laws.engine(model, name)
        answers = engine.generate_batch(prompts, max_new_tokens=8, ignore_stop=True)
        made[name] = [answer.tokens for answer in answers]
    assert len({tuple(each) for each in made.values()}) == 1
    assert sum(answer.stats.drafted for answer in answers) > 0


def test_a_target_of_transformers_without_a_plain_table_is_refused(tiny_folder: Folder) -> None:
    there = load(f"hf:{tiny_folder()}", dtype="float32")
    backend: Any = there.backend
    backend._packed.model.set_input_embeddings(torch.nn.Embedding(7, 64))
    with pytest.raises(UsageError, match=r"has no table of token embeddings \[\d+, 64\] \(\[7, 64\]\)"):
        attach(f"eagle:path={random_drafter.beside(tiny_folder(), 'eagle')}", there)


def test_masks_that_leave_a_trimmed_head_no_token_do_not_fail_the_answer(tiny_model: Tiny, tiny_folder: Folder) -> None:
    """Heads know no token that is 3 modulo 7; the target does."""
    model = tiny_model()
    settings = {"max_new_tokens": 6, "allowed_tokens": (17, 45, 66), "ignore_stop": True}
    expected = laws.tokens(laws.engine(model), laws.TEXTS[:2], **settings)
    for kind in KINDS:
        fast = laws.engine(model, laws.named(f"{kind}:path={{{kind}}}", "llama3", tiny_folder), "rsd_s")
        answers = laws.answers(fast, laws.TEXTS[:2], **settings)
        assert [answer.tokens for answer in answers] == expected
        assert sum(answer.stats.drafted for answer in answers) == 0


def test_where_the_target_is_left_none_the_line_is_the_targets(tiny_model: Tiny, tiny_folder: Folder) -> None:
    class Nothing:
        def begin(self, prompt: object) -> "Nothing":
            return self

        def advance(self, token: int) -> "Nothing":
            return self

        def apply(self, values: torch.Tensor, ids: object) -> torch.Tensor:
            return torch.full_like(values, float("-inf"))

    parts = Parts(laws.named("standalone:path={standalone}", "llama3", tiny_folder))
    with pytest.raises(LopeError, match="the masks and penalties leave no token to choose from"):
        Engine(tiny_model(), parts, exact=False).generate("mat", raw=True, processors=(Nothing(),))
