"""VocabTrim on real folders: what is kept is kept bit for bit, and the trimmed law obeys the paper's bounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.training.folders import drafter
from torch import Tensor

from lope.core.draft import EMPTY, Draft
from lope.core.errors import SettingError, UsageError
from lope.core.prompt import Path as Ids
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Job
from lope.core.scores import ALL, Needs
from lope.drafters.around import AroundDrafter
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel
from lope.training.listener import Listener
from lope.training.token_counts import TokenCounts
from lope.training.trimming import Trimming
from lope.training.vocabulary import always_kept

KINDS = ("standalone", "eagle")
STORED = ("kept", "lm_head.weight", "lm_head.weight.scale")


def trimmed(folder: DrafterFolder, vocab: int, out: Path, *, always: frozenset[int] = frozenset()) -> DrafterFolder:
    """By random counts."""
    size = folder.about.target.vocab_size
    counts = torch.randint(1, 1000, (size,), generator=torch.Generator().manual_seed(1))
    Trimming(folder, vocab, TokenCounts(counts, torch.zeros(size)), always, {"counts": "target"}).write(out)
    return DrafterFolder.read(out)


@pytest.mark.parametrize("storage", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_is_kept_bit_for_bit(
    kind: str, storage: str, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    whole = drafter(tmp_path / "whole", tiny_model(), kind, storage=storage)
    _shrink_steps(whole.path / "drafter.safetensors")
    whole = DrafterFolder.read(whole.path)
    cut = trimmed(whole, 50, tmp_path / "cut")
    before, after = (load_file(folder.path / "drafter.safetensors") for folder in (whole, cut))
    rows = torch.isin(before["kept"], after["kept"])
    assert int(rows.sum()) == len(after["kept"]) == 50
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(after[name], tensor[rows] if name in STORED else tensor), name
        assert after[name].dtype == tensor.dtype
    for name, tensor in whole.tensors.items():
        assert torch.equal(cut.tensors[name], tensor[rows] if name in STORED else tensor), name


def _shrink_steps(path: Path) -> None:
    """Halve the int8 steps, so that quantising what is read again would choose other scales."""
    stored = load_file(path)
    if "lm_head.weight.scale" in stored:
        stored["lm_head.weight"] = torch.div(stored["lm_head.weight"], 2, rounding_mode="trunc").to(torch.int8)
        stored["lm_head.weight.scale"] = stored["lm_head.weight.scale"] * 2.0
        save_file(stored, path)


def test_the_most_said_of_its_own_tokens_stay_and_those_that_end_a_turn(
    tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    model = tiny_model()
    whole = drafter(tmp_path / "whole", model, "standalone")
    own = whole.tensors["kept"]
    counts = torch.zeros(model.backend.vocab_size, dtype=torch.int64)
    counts[own] = torch.arange(1, len(own) + 1)
    foreign = [token for token in range(len(counts)) if token not in own.tolist()]
    counts[foreign] = 10_000
    always = frozenset({int(own[0]), foreign[0]})
    cut = Trimming(whole, 10, TokenCounts(counts, counts), always, {"counts": "target"})
    assert cut.kept().tolist() == [int(own[0]), *own[-9:].tolist()]
    told = cut.write(tmp_path / "cut")
    assert told["coverage"] == told["held_out_coverage"] == float(counts[cut.kept()].sum() / counts.sum())
    assert always_kept(model) == frozenset({0, 1})


def test_the_folder_says_what_was_trimmed_and_what_was_measured_before(
    tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    whole = drafter(tmp_path / "whole", tiny_model(), "eagle")
    first = trimmed(whole, 50, tmp_path / "first")
    again = trimmed(first, 20, tmp_path / "again")
    recipe = again.about.recipe["trim"]
    assert (recipe["vocab"], recipe["vocab_before"], recipe["counts"]) == (20, 50, "target")
    assert again.about.figures["parameters"] == sum(v.numel() for k, v in again.tensors.items() if k != "kept")
    assert again.about.figures["untrimmed"] == whole.about.figures
    assert again.about.operating_point is None
    assert "kept 20 of its 50 tokens" in (again.path / "README.md").read_text(encoding="utf-8")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(("vocab", "words"), [(121, "keeps 120 tokens: it cannot be trimmed to 121"), (0, "to 0")])
def test_a_head_cannot_grow(vocab: int, words: str, tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> None:
    whole = drafter(tmp_path / "whole", tiny_model(), "standalone")
    with pytest.raises(SettingError, match=words):
        trimmed(whole, vocab, tmp_path / "cut")
    assert not (tmp_path / "cut").exists()


def test_a_folder_that_holds_something_is_left_alone(tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> None:
    whole = drafter(tmp_path / "whole", tiny_model(), "standalone")
    with pytest.raises(UsageError, match="is not an empty folder"):
        trimmed(whole, 50, whole.path)
    (tmp_path / "empty").mkdir()
    assert len(trimmed(whole, 50, tmp_path / "empty").tensors["kept"]) == 50


@dataclass(eq=False)
class Recorder(Listener):
    """Keeps the law at the root of every draft, by the length of its context."""

    laws: dict[int, Tensor] = field(default_factory=dict)

    def __call__(self, propose: Any, asks: Sequence[Ask[Any]]) -> list[Draft]:
        drafts: list[Draft] = propose(asks)
        for ask, draft in zip(asks, drafts, strict=True):
            if draft.laws is not None:
                self.laws[ask.sampler.length] = draft.laws.dense(draft.law_of[0])
        return drafts


def first_law(model: LoadedModel, folder: DrafterFolder, ids: Ids, seed: int) -> tuple[Ids, Tensor]:
    """(context, the drafter's law there): the first that it draws from in an answer."""
    parts = Parts(f"{folder.about.kind}:path={folder.path}", policy="fixed:depth=1")
    recorder = Recorder(torch.zeros(0))
    answer = Engine(model, parts, exact=False, drafter=AroundDrafter(parts.make_drafter(model), recorder)).generate(
        Prompt(ids), max_new_tokens=3, temperature=1.0, seed=seed, ignore_stop=True
    )
    length = min(recorder.laws)
    return (*ids, *answer.tokens)[:length], recorder.laws[length].double()


def target_law(model: LoadedModel, context: Ids) -> Tensor:
    target = model.backend.target(False)
    [scores] = target.score([Job(target.open(Prompt(context)), EMPTY, Needs(logits=ALL))])
    return torch.softmax(scores.logits.dense(0).double(), dim=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_trimmed_law_is_the_whole_one_given_what_is_kept_and_the_bounds_hold(
    kind: str, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    model = tiny_model()
    whole = drafter(tmp_path / "whole", model, kind, storage="int8")
    cuts = [trimmed(whole, vocab, tmp_path / f"cut-{vocab}") for vocab in (90, 30, 5)]
    for seed, text in enumerate(("the cat sat on", "mat", "Über 5 cats, naïve — ran", "the dog ran after the dog")):
        context, draft = first_law(model, whole, model.tokenizer.encode(text), seed)
        target = target_law(model, context)
        accepted = torch.minimum(draft, target)
        for cut in cuts:
            same, law = first_law(model, cut, model.tokenizer.encode(text), seed)
            assert same == context
            inside = torch.zeros(len(law), dtype=torch.bool)
            inside[cut.tensors["kept"]] = True
            assert float(law[~inside].abs().max()) == 0.0
            given = torch.where(inside, draft, 0.0) / draft[inside].sum()
            assert torch.allclose(law, given, atol=1e-6)
            after = float(torch.minimum(law, target).sum())
            assert after <= float(target[inside].sum()) + 1e-6
            assert after >= float(accepted.sum() - accepted[~inside].sum()) - 1e-6
            assert after >= float(accepted.sum() - target[~inside].sum()) - 1e-6


@pytest.mark.parametrize("shape", ["chain", "rsd_s:width=3,depth=3"])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_with_a_trimmed_drafter_are_the_plain_ones(
    kind: str, shape: str, tiny_model: Callable[..., LoadedModel], tmp_path: Path
) -> None:
    model = tiny_model()
    cut = trimmed(drafter(tmp_path / "whole", model, kind), 40, tmp_path / "cut")
    prompt = Prompt(model.tokenizer.encode("the cat sat on the mat"))
    # drawn ones by the rule whose text is the plain one, token for token; laws/ tries the others
    for temperature, verifier in ((0.0, "auto"), (1.0, "coupled")):
        parts = Parts(f"{kind}:path={cut.path}", shape, verifier)
        engine = Engine(model, parts, exact=True)
        asked = {"max_new_tokens": 24, "temperature": temperature, "seed": 5, "ignore_stop": True}
        assert engine.generate(prompt, **asked).tokens == engine.plain().generate(prompt, **asked).tokens
