"""The tokens of a set in one small file and back, and what the target thinks of them computed again."""

import json
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.distilling import after, by_number, conversation, distil, file_prompts, manifest_for
from tests.training.test_distilled_set import MANIFEST

from lope.core.errors import RunError, UsageError
from lope.models.loaded import LoadedModel
from lope.training.distilled_set import DistilledSet
from lope.training.replay import Replay
from lope.training.token_archive import TokenArchive


def _archive(tmp_path: Path, **settings: Any) -> TokenArchive:
    place = DistilledSet.begin(tmp_path / "set", replace(MANIFEST, layers=(), **settings))
    place.append([conversation(number, length=6 + number) for number in (5, 2, 9)])
    place.append([conversation(number) for number in (4, 0)])
    place.close()
    return TokenArchive.of(place)


@pytest.mark.parametrize("vocab_size", [50, 100_000])
def test_an_archive_comes_back_in_the_order_of_numbers(tmp_path: Path, vocab_size: int) -> None:
    written = _archive(tmp_path, vocab_size=vocab_size)
    written.write(tmp_path / "tokens.xz")
    read = TokenArchive.read(tmp_path / "tokens.xz")
    assert read.manifest == written.manifest
    assert [text.number for text in read.texts] == [0, 2, 4, 5, 9]
    expected = {number: conversation(number, length=6 + number if number in (5, 2, 9) else 9) for number in range(10)}
    for text in read.texts:
        assert torch.equal(text.tokens, expected[text.number].tokens)
        assert (text.prompt, text.temperature) == (4, expected[text.number].temperature)
    assert read.answer_tokens == sum(len(text.tokens) - 4 for text in read.texts)


def test_a_large_archive_takes_less_than_two_bytes_a_token(tmp_path: Path) -> None:
    place = DistilledSet.begin(tmp_path / "set", replace(MANIFEST, vocab_size=49152, layers=()))
    place.append([conversation(number, length=1000) for number in range(50)])
    TokenArchive.of(place).write(tmp_path / "tokens.xz")
    assert (tmp_path / "tokens.xz").stat().st_size < 2 * 50_000
    place.close()


@pytest.mark.parametrize("cut", [0, 5, 40, -60, -1])
def test_an_archive_cut_short_is_one_line(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "tokens.xz"
    _archive(tmp_path).write(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(UsageError, match=r"tokens\.xz: is not ") as caught:
        TokenArchive.read(path)
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "tokens.xz"
    _archive(tmp_path).write(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a whole archive"):
        TokenArchive.read(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"something else", "is not an archive of tokens"),
        (b"lope tokens 1\n", "it ends too early"),
        (b"lope tokens 1\n\x02\0\0\0{}", "its header cannot be read"),
        (b"lope tokens 1\n\xff\xff\xff\xff{}", "its header cannot be read"),
        (b'lope tokens 1\n\x22\0\0\0{"sequences": -1, "tokens": 1e999}', "its header cannot be read"),
        (b"lope tokens 1\n\xe8\x03\0\0" + b"[" * 1000, "its header cannot be read"),
    ],
)
def test_a_file_that_is_no_archive_is_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "tokens.xz"
    path.write_bytes(lzma.compress(content))
    with pytest.raises(UsageError, match=words):
        TokenArchive.read(path)


def test_lengths_and_tokens_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.xz"
    archive = _archive(tmp_path)
    longer = lzma.compress(b"".join(archive._parts()) + b"!!")
    foreign = replace(archive, manifest=replace(archive.manifest, vocab_size=10))
    beyond = replace(archive, texts=(replace(archive.texts[0], prompt=9), *archive.texts[1:]))
    for content, words in (
        (longer, "other tokens than it says"),
        (lzma.compress(b"".join(foreign._parts())), "other tokens than it says"),
        (lzma.compress(b"".join(beyond._parts())), "its lengths do not fit its tokens"),
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=words):
            TokenArchive.read(path)


@pytest.mark.parametrize("count", [10**14, 10**18, 10**30])
def test_an_archive_that_says_it_holds_more_than_can_be_is_one_line(tmp_path: Path, count: int) -> None:
    path = tmp_path / "tokens.xz"
    manifest = json.dumps(replace(MANIFEST, layers=()).document())
    header = f'{{"manifest": {manifest}, "sequences": {count}, "tokens": 9}}'.encode()
    path.write_bytes(lzma.compress(b"lope tokens 1\n" + len(header).to_bytes(4, "little") + header))
    with pytest.raises(UsageError, match=r"tokens\.xz: (is not a whole archive|its header cannot be read)") as caught:
        TokenArchive.read(path)
    assert "\n" not in str(caught.value)


def test_no_file_an_empty_set_and_a_place_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.xz: is not a whole archive of tokens: No such file"):
        TokenArchive.read(tmp_path / "none.xz")
    place = DistilledSet.begin(tmp_path / "empty", MANIFEST)
    with pytest.raises(UsageError, match="empty: holds no sequence yet"):
        TokenArchive.of(place)
    with pytest.raises(RunError, match="cannot be written: No such file or directory"):
        _archive(tmp_path).write(tmp_path / "none" / "tokens.xz")


@pytest.fixture
def model(tiny_model: Callable[..., LoadedModel]) -> LoadedModel:
    return tiny_model("llama3")


@pytest.mark.parametrize("shard_tokens", [30, 1 << 14])
def test_a_set_archived_and_computed_again_is_the_same(model: LoadedModel, tmp_path: Path, shard_tokens: int) -> None:
    first = distil(model, tmp_path / "set", file_prompts(), after(9), max_new_tokens=20)
    TokenArchive.of(first).write(tmp_path / "tokens.xz")
    archive = TokenArchive.read(tmp_path / "tokens.xz")
    again = DistilledSet.begin(tmp_path / "again", archive.manifest)
    list(Replay(model, archive, again, rows=50, shard_tokens=shard_tokens).run(lambda progress: False))
    again.close()
    assert again.manifest == first.manifest
    _check_same(by_number(first), by_number(again), first.manifest.vocab_size)


def _check_same(before: dict[int, Any], after: dict[int, Any], size: int) -> None:
    assert before.keys() == after.keys()
    for number, one in before.items():
        other = after[number]
        assert torch.equal(one.tokens, other.tokens)
        assert (one.prompt, one.temperature) == (other.prompt, other.temperature)
        torch.testing.assert_close(one.top_logprobs, other.top_logprobs, atol=8e-3, rtol=0)
        torch.testing.assert_close(_dense(one, size), _dense(other, size), atol=1e-2, rtol=0)
        torch.testing.assert_close(one.features, other.features, atol=4e-2, rtol=2e-2)


def _dense(sequence: Any, size: int) -> torch.Tensor:
    """Probabilities over the vocabulary: two tokens as probable as each other may change places."""
    full = torch.zeros(len(sequence.top_ids), size)
    return full.scatter(-1, sequence.top_ids, sequence.top_logprobs.float().exp())


def test_computing_again_goes_on_where_it_was(model: LoadedModel, tmp_path: Path) -> None:
    archive = TokenArchive.of(distil(model, tmp_path / "set", file_prompts(), after(9)))
    kept = 0
    while True:
        place = DistilledSet.begin(tmp_path / "again", replace(archive.manifest, layers=(2,), top_k=1))
        run = Replay(model, archive, place, rows=20).run(lambda progress: progress.sequences >= 3)
        progress = list(run)
        place.close()
        if not progress:
            break
        assert place.sizes()[0] == kept + progress[-1].sequences
        kept = place.sizes()[0]
    found = by_number(place)
    assert found.keys() == {text.number for text in archive.texts}
    for sequence in found.values():
        assert sequence.top_ids.shape[1] == 1
        assert float(sequence.top_logprobs.max()) <= 0.0
        assert sequence.features is not None
        assert sequence.features.shape == (len(sequence.tokens), model.backend.hidden_size)


def test_how_many_log_probabilities_are_kept_is_chosen_again_where_it_is_left_open(
    model: LoadedModel, tmp_path: Path
) -> None:
    archive = TokenArchive.of(distil(model, tmp_path / "set", file_prompts(), after(9), layers=()))
    place = DistilledSet.begin(tmp_path / "again", replace(archive.manifest, top_k=0, outside=None))
    list(Replay(model, archive, place).run(lambda progress: False))
    assert place.manifest.outside_tokens == archive.answer_tokens
    assert place.manifest.top_k in range(8, 129, 8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokenizer": "another"}, "has another tokenizer"),
        ({"vocab_size": 60_000}, "knows 60000 tokens, not"),
    ],
)
def test_another_targets_tokens_are_refused(
    change: dict[str, Any], words: str, model: LoadedModel, tmp_path: Path
) -> None:
    archive = TokenArchive(manifest_for(model, **change), (conversation(0),))
    with pytest.raises(UsageError, match=words):
        Replay(model, archive, DistilledSet(tmp_path, archive.manifest))


def test_sequences_longer_than_the_context_are_refused(model: LoadedModel, tmp_path: Path) -> None:
    archive = TokenArchive(manifest_for(model), (conversation(0, length=257),))
    with pytest.raises(UsageError, match=r"has 257 tokens in one sequence, and the context of .* holds 256"):
        Replay(model, archive, DistilledSet(tmp_path, archive.manifest))
