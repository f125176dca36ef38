"""What a target said and thought, against transformers; kills, resumes, duplicates, prompts that run out."""

import contextlib
import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.models import families
from tests.training.distilling import PROMPTS, after, by_number, distil, file_prompts, manifest_for

from lope.core.errors import RunError, SettingError, UsageError
from lope.models.lean.target import LeanTarget
from lope.models.loaded import LoadedModel
from lope.training import distilled_set, questions
from lope.training.distilled_set import DistilledSet
from lope.training.distiller import Distiller, Progress
from lope.training.prompt_sources import OwnPrompts
from lope.training.seen import Seen


@pytest.fixture
def model(tiny_model: Callable[..., LoadedModel]) -> LoadedModel:
    return tiny_model("llama3")


def _teacher(tokens: torch.Tensor) -> Any:
    """What transformers' own implementation of the same model says of a sequence."""
    with torch.no_grad():
        return families.hugging_face("llama3")(tokens[None], output_hidden_states=True)


@pytest.mark.parametrize("source", [file_prompts(), OwnPrompts()], ids=["file", "own"])
def test_laws_and_hidden_states_are_those_of_the_target(source: Any, model: LoadedModel, tmp_path: Path) -> None:
    place = distil(model, tmp_path, source, after(6))
    assert place.sizes()[0] >= 6
    for sequence in by_number(place).values():
        said = _teacher(sequence.tokens)
        laws = torch.log_softmax(said.logits[0].double(), dim=-1)[sequence.prompt - 1 : -1]
        top = laws.topk(16, dim=-1)
        assert sequence.top_logprobs.dtype == torch.float16
        torch.testing.assert_close(sequence.top_logprobs.double(), top.values, atol=5e-3, rtol=0)
        torch.testing.assert_close(laws.gather(-1, sequence.top_ids), top.values, atol=1e-3, rtol=0)
        assert sequence.features is not None
        hidden = torch.cat([said.hidden_states[layer][0] for layer in (1, 3)], dim=-1)
        torch.testing.assert_close(sequence.features[:-1].float(), hidden[:-1], atol=2e-2, rtol=1e-2)
        assert torch.equal(sequence.features[-1], sequence.features[-2])
        _check_drawn(sequence.tokens[sequence.prompt :], laws, sequence.temperature)


def _check_drawn(answer: torch.Tensor, laws: torch.Tensor, temperature: float) -> None:
    """Greedy where the temperature is 0, else from the nucleus of 0.95."""
    if temperature == 0.0:
        best, chosen = laws.amax(dim=-1), laws.gather(-1, answer[:, None])[:, 0]
        torch.testing.assert_close(chosen, best, atol=1e-3, rtol=0)
        return
    warmed = torch.softmax(laws / temperature, dim=-1)
    for row, token in zip(warmed, answer.tolist(), strict=True):
        assert float(row[row > row[token] + 1e-4].sum()) < 0.95 + 1e-3


def test_temperatures_follow_from_numbers_and_change_each_time_round(model: LoadedModel, tmp_path: Path) -> None:
    source = file_prompts(PROMPTS[:3])
    found = by_number(distil(model, tmp_path, source, after(7), max_new_tokens=8))
    for number, sequence in found.items():
        expected = (0.0, 0.7, 1.0)[(number % 3 + number // 3) % 3]
        assert sequence.temperature == pytest.approx(expected)
        assert tuple(sequence.tokens[: sequence.prompt].tolist()) == source.opening(number, model)[0]


def test_answers_end_at_stop_tokens_and_at_the_limit(model: LoadedModel, tmp_path: Path) -> None:
    often = replace(model, stop_tokens=frozenset(range(0, 320, 8)))
    found = by_number(distil(often, tmp_path, file_prompts(), after(15), temperatures=(1.0,)))
    lengths = {len(sequence.tokens) - sequence.prompt for sequence in found.values()}
    assert min(lengths) < 12 >= max(lengths)
    for sequence in found.values():
        answer = sequence.tokens[sequence.prompt :].tolist()
        assert not often.stop_tokens & set(answer[:-1])
        assert answer[-1] in often.stop_tokens or len(answer) == 12


@pytest.mark.parametrize(
    ("source", "passes"), [(file_prompts(), [5, 14, 20, 13, 17]), (OwnPrompts(), [20, 40, 50])], ids=["file", "own"]
)
def test_interrupted_at_any_moment_and_continued_it_says_the_same(
    source: Any, passes: list[int], model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = by_number(distil(model, tmp_path / "whole", source, after(8), width=4, max_new_tokens=10))
    score, left = LeanTarget.score, [0]

    def interrupted(target: Any, jobs: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return score(target, jobs)

    monkeypatch.setattr(LeanTarget, "score", interrupted)
    kept: dict[int, list[int]] = {}
    for count in [*passes, 1 << 20]:
        left[0] = count
        enough = after(8 - len(kept) if count == 1 << 20 else 100)
        with contextlib.nullcontext() if count == 1 << 20 else pytest.raises(KeyboardInterrupt):
            distil(model, tmp_path / "parts", source, enough, width=4, shard_tokens=90, max_new_tokens=10)
        place = DistilledSet.open(tmp_path / "parts")
        now = {number: sequence.tokens.tolist() for number, sequence in by_number(place).items()}
        assert kept.items() <= now.items(), "what is finished is kept"
        kept = now
    both = whole.keys() & kept.keys()
    assert len(both) >= 6
    assert all(kept[number] == whole[number].tokens.tolist() for number in both)


def test_ctrl_c_while_a_shard_is_written_waits_for_it(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = distilled_set.packed

    def pressed(*arguments: Any) -> bytes:
        os.kill(os.getpid(), signal.SIGINT)
        return packed(*arguments)

    monkeypatch.setattr(distilled_set, "packed", pressed)
    with pytest.raises(KeyboardInterrupt):
        distil(model, tmp_path, file_prompts(), after(20), shard_tokens=50)
    place = DistilledSet.open(tmp_path)
    assert len(place.shards) == 1
    assert place.sizes()[0] >= 1


def test_a_caller_who_stops_in_the_middle_keeps_what_is_finished(model: LoadedModel, tmp_path: Path) -> None:
    source = file_prompts()
    place = DistilledSet.begin(tmp_path, manifest_for(model, source))
    run = Distiller(model, source, place, width=4).run(lambda progress: False)
    finished = next(progress for progress in run if progress.sequences >= 3)
    assert not place.shards
    run.close()
    assert place.sizes()[0] == finished.sequences
    assert place.sizes()[2] == finished.tokens


def test_a_full_disk_keeps_the_shards_before_it(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = DistilledSet.append
    written = []

    def full(place: DistilledSet, sequences: Any) -> None:
        if written:
            raise RunError("the disk is full")
        append(place, sequences)
        written.extend(sequences)

    monkeypatch.setattr(DistilledSet, "append", full)
    with pytest.raises(RunError, match="the disk is full"):
        distil(model, tmp_path, file_prompts(), after(50), shard_tokens=60)
    monkeypatch.undo()
    kept = by_number(DistilledSet.open(tmp_path))
    assert len(kept) == len(written) > 0
    more = by_number(distil(model, tmp_path, file_prompts(), after(2)))
    assert more.keys() > kept.keys()


def test_no_conversation_comes_twice_also_after_a_resume(model: LoadedModel, tmp_path: Path) -> None:
    """Answers of one token: they repeat at once."""
    for _ in range(3):
        settings = {"max_new_tokens": 1, "temperatures": (0.0, 0.7, 1.0), "top_p": 0.5}
        place = distil(model, tmp_path, file_prompts(PROMPTS[:2]), after(2), width=2, **settings)
    said = [tuple(sequence.tokens.tolist()) for sequence in place.read()]
    assert len(said) == len(set(said)) >= 6


def test_the_targets_own_messages_are_asked_once_also_after_a_resume(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target writes one of three messages: each is answered once, and then they are used up."""
    messages = [model.tokenizer.encode(text) for text in PROMPTS[:3]]
    draw = Distiller._draw

    def few(distiller: Any, live: Any, rows: Any) -> list[int]:
        tokens = draw(distiller, live, rows)
        for row, speaker in enumerate(live):
            if speaker.question.asking:
                message = [*messages[speaker.question.number % 3], 1]
                tokens[row] = message[len(speaker.said)]
        return tokens

    monkeypatch.setattr(Distiller, "_draw", few)
    monkeypatch.setattr(questions, "_BARREN", 40)
    distil(model, tmp_path, OwnPrompts(), after(1), width=1, layers=())
    with pytest.raises(RunError, match="said nothing new: give more prompts, or other ones; what was finished is kept"):
        distil(model, tmp_path, OwnPrompts(), after(100), width=16, layers=())
    asked = [tuple(text.tokens[: text.prompt].tolist()) for text in DistilledSet.open(tmp_path).texts()]
    assert len(asked) == len(set(asked)) == 3


def test_digests_do_not_depend_on_the_process() -> None:
    seen = Seen()
    assert seen.add([1, 2, 3])
    assert not seen.add((1, 2, 3))
    assert seen.add([1, 2])
    # BLAKE2b-128 of three little-endian int64, by coreutils' `b2sum -l 128`
    assert {digest.hex() for digest in seen._digests} >= {"abccad42d03c940bc2b249bf5a4e1e3d"}


def test_a_corpus_of_one_line_ends_when_all_is_said(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "_BARREN", 40)
    source = file_prompts(PROMPTS[:1])
    with pytest.raises(RunError, match=r"every prompt .* has had its greedy answer: give more prompts") as caught:
        distil(model, tmp_path / "greedy", source, after(9), temperatures=(0.0,))
    assert "\n" not in str(caught.value)
    assert DistilledSet.open(tmp_path / "greedy").sizes()[0] == 1
    settings = {"temperatures": (0.0, 0.5), "max_new_tokens": 1, "top_p": 0.3, "layers": ()}
    with pytest.raises(RunError, match="conversations said nothing new"):
        distil(model, tmp_path / "drawn", source, after(1000), width=32, **settings)
    assert DistilledSet.open(tmp_path / "drawn").sizes()[0] >= 1


def test_prompts_that_are_used_up_do_not_cost_the_answers_under_way(model: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has had its greedy answer"):
        distil(model, tmp_path, file_prompts(), after(100), temperatures=(0.0,), width=3)
    assert DistilledSet.open(tmp_path).numbers() == set(range(len(PROMPTS)))


def test_prompts_longer_than_half_of_the_context_are_left_out_and_counted(model: LoadedModel, tmp_path: Path) -> None:
    source = file_prompts([PROMPTS[0], "cat " * 300, "dog " * 120, PROMPTS[1]])
    place = DistilledSet.begin(tmp_path / "some", manifest_for(model, source))
    distiller = Distiller(model, source, place, width=4)
    last = list(distiller.run(after(6)))[-1]
    place.close()
    assert last.too_long == 2
    assert max(text.prompt for text in place.texts()) <= model.backend.context // 2
    with pytest.raises(
        RunError, match=r"every prompt of .* has more than 128 tokens, half of the context: give shorter ones$"
    ):
        distil(model, tmp_path / "none", file_prompts(["cat " * 300]), after(1))


def test_a_target_without_a_template_answers_a_file_and_writes_no_prompts(model: LoadedModel, tmp_path: Path) -> None:
    base = replace(model, template=None)
    found = by_number(distil(base, tmp_path / "file", file_prompts(), after(3)))
    for number, sequence in found.items():
        text = file_prompts().prompts[file_prompts().order[number % 5]]
        assert tuple(sequence.tokens[: sequence.prompt].tolist()) == base.tokenizer.encode(text, add_special=True)
    with pytest.raises(UsageError, match="has no chat template"):
        distil(base, tmp_path / "own", OwnPrompts(), after(1))


def test_the_number_of_log_probabilities_is_chosen_by_what_is_measured(model: LoadedModel, tmp_path: Path) -> None:
    place = distil(model, tmp_path, file_prompts(), after(8), top_k=0, shard_tokens=100)
    about = DistilledSet.open(tmp_path).manifest
    assert about.outside is not None
    assert about.outside_tokens > 0
    noted = []
    for sequence in place.read():
        assert sequence.top_ids.shape[1] == about.top_k
        laws = torch.softmax(_teacher(sequence.tokens).logits[0].double(), dim=-1)[sequence.prompt - 1 : -1]
        noted.append(1.0 - laws.sort(descending=True).values.cumsum(-1))
    outside = torch.cat(noted).mean(dim=0)
    assert about.outside == pytest.approx(float(outside[about.top_k - 1]), rel=0.3)
    assert about.outside < 0.02 or about.top_k == 128
    distil(model, tmp_path, file_prompts(), after(2), top_k=0)
    assert DistilledSet.open(tmp_path).manifest == about


def test_more_log_probabilities_than_the_target_has_tokens_are_refused(model: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="top_k must lie between 1 and"):
        distil(model, tmp_path, file_prompts(), after(1), top_k=model.backend.vocab_size + 1)


def test_progress_counts_what_is_finished_and_what_is_not(model: LoadedModel, tmp_path: Path) -> None:
    source, model = file_prompts(), replace(model, stop_tokens=frozenset())
    place = DistilledSet.begin(tmp_path, manifest_for(model, source))
    seen: list[Progress] = list(Distiller(model, source, place, width=3).run(after(5)))
    assert [progress.live for progress in seen[:3]] == [3, 6, 9]
    assert seen[-1].tokens == place.sizes()[2]
    assert seen[-1].pace > 0
    assert 0.0 < seen[-1].outside < 1.0
    assert all(a.seconds < b.seconds for a, b in itertools.pairwise(seen))
