"""The set on disk: what was written comes back, shards are whole or set aside, one process writes it."""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.training.distilling import conversation
from torch import Tensor

from lope.core.errors import RunError, UsageError
from lope.training.distilled_set import DistilledSet
from lope.training.manifest import Manifest

MANIFEST = Manifest("tiny", "fingerprint", 50, 4, "own", (0.0, 0.5, 1.0), 0.95, 3, (1, 2), 16, 7)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[DistilledSet]:
    found = DistilledSet.begin(tmp_path / "set", MANIFEST)
    yield found
    found.close()


def test_what_was_written_comes_back(place: DistilledSet) -> None:
    written = [conversation(number, length=6 + number, width=8) for number in range(5)]
    place.append(written[:2])
    place.append(written[2:])
    again = DistilledSet.open(place.folder)
    assert again.manifest == MANIFEST
    for before, after in zip(written, again.read(), strict=True):
        assert (after.number, after.prompt) == (before.number, before.prompt)
        assert after.temperature == before.temperature
        for name in ("tokens", "top_ids", "top_logprobs", "features"):
            assert torch.equal(getattr(before, name), getattr(after, name)), name
    assert again.numbers() == set(range(5))
    tokens = sum(len(sequence.tokens) for sequence in written)
    assert again.sizes() == (5, tokens, tokens - 5 * 4)


def test_features_may_be_absent_and_large_vocabularies_fit(tmp_path: Path) -> None:
    place = DistilledSet.begin(tmp_path, replace(MANIFEST, vocab_size=100_000, layers=()))
    big = replace(conversation(0), tokens=torch.arange(99_991, 100_000), top_ids=torch.full((5, 3), 99_999))
    place.append([big])
    (found,) = place.read()
    assert found.features is None
    assert torch.equal(found.tokens, big.tokens)
    assert torch.equal(found.top_ids, big.top_ids)


def test_a_shard_that_is_gone_leaves_a_gap_and_is_not_written_over(place: DistilledSet) -> None:
    for number in range(3):
        place.append([conversation(number)])
    place.shards[1].unlink()
    last = place.shards[-1].read_bytes()
    place.append([conversation(3)])
    assert place.shards[1].read_bytes() == last
    assert place.numbers() == {0, 2, 3}


@pytest.mark.parametrize("left", [0.0, 0.001, 0.1, 0.5, 0.99, "zeros"])
def test_a_truncated_shard_is_one_line_set_aside_and_done_again(place: DistilledSet, left: float | str) -> None:
    place.append([conversation(0)])
    place.append([conversation(1)])
    path = place.shards[0]
    whole = path.read_bytes()
    path.write_bytes(b"\0" * len(whole) if left == "zeros" else whole[: int(float(left) * len(whole))])
    (place.folder / ".shard-00002.safetensors.partial").write_bytes(whole[:50])
    for read in (lambda: list(place.read()), place.numbers, place.sizes):
        with pytest.raises(UsageError, match=r"shard-00000\.safetensors: is not a whole shard") as caught:
            read()
        assert "\n" not in str(caught.value)
    place.close()
    again = DistilledSet.begin(place.folder, MANIFEST)
    half, damaged = again.mended
    assert half.startswith(".shard-00002.safetensors.partial: was half written")
    assert "it is set aside as shard-00000.damaged, and its work is done again" in damaged
    assert "\n" not in half + damaged
    assert again.numbers() == {1}
    again.append([conversation(0)])
    assert again.numbers() == {0, 1}
    assert sorted(path.name for path in place.folder.iterdir()) == [
        ".lock",
        "manifest.json",
        "shard-00000.damaged",
        "shard-00001.safetensors",
        "shard-00002.safetensors",
    ]
    again.close()


def test_a_shard_whose_tensors_contradict_each_other_is_not_whole(place: DistilledSet) -> None:
    short = replace(conversation(0), top_ids=torch.zeros(2, 3, dtype=torch.int64))
    place.append([short])
    with pytest.raises(UsageError, match="its tensors do not fit each other"):
        place.sizes()


def test_only_one_process_writes(place: DistilledSet) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom lope.training.distilled_set import DistilledSet\n"
        "place = DistilledSet.open(Path(sys.argv[1]))\nDistilledSet.begin(place.folder, place.manifest)"
    )
    command = [sys.executable, "-c", code, str(place.folder)]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert "another run is writing its results there" in refused.stderr.splitlines()[-1]
    place.close()
    subprocess.run(command, check=True)


def test_an_empty_set_takes_other_settings(place: DistilledSet) -> None:
    place.close()
    other = replace(MANIFEST, max_new_tokens=8)
    DistilledSet.begin(place.folder, other).close()
    assert DistilledSet.open(place.folder).manifest == other


def test_other_settings_are_refused_by_name(place: DistilledSet) -> None:
    place.append([conversation(0)])
    place.close()
    other = replace(MANIFEST, seed=8, temperatures=(0.0,))
    with pytest.raises(UsageError, match=r"was begun with another temperatures \(.*\), seed \(7, now 8\): go on"):
        DistilledSet.begin(place.folder, other)
    DistilledSet.begin(place.folder, MANIFEST).close()


def test_a_folder_that_holds_something_else_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "drafter.json").write_text("mine")
    with pytest.raises(UsageError, match=r"holds something else, such as drafter\.json"):
        DistilledSet.begin(tmp_path, MANIFEST)
    assert [path.name for path in tmp_path.iterdir()] == ["drafter.json"]


def test_what_was_measured_or_not_said_refuses_nobody(place: DistilledSet) -> None:
    place.append([conversation(0)])
    place.close()
    DistilledSet.begin(place.folder, replace(MANIFEST, dtype="float32", prompts_sha256="ab", outside=0.1)).close()
    with pytest.raises(UsageError, match="another top-k"):
        DistilledSet.begin(place.folder, replace(MANIFEST, top_k=4))
    found = DistilledSet.begin(place.folder, replace(MANIFEST, top_k=0))
    assert found.manifest.top_k == 3
    found.close()


def test_the_number_of_log_probabilities_is_kept_once_chosen(tmp_path: Path) -> None:
    place = DistilledSet.begin(tmp_path, replace(MANIFEST, top_k=0))
    place.keep_top(3, 0.0125, 400)
    found = DistilledSet.open(tmp_path).manifest
    assert (found.top_k, found.outside, found.outside_tokens) == (3, 0.0125, 400)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not the manifest of a distilled set"),
        ("[1]", "is not the manifest of a distilled set"),
        ("{}", "is not the manifest of a distilled set"),
        ('{"format": 2}', "has format 2, this lope reads 1"),
        ('{"format": 1, "layers": [], "temperatures": []}', "missing"),
        ('{"format": 1, "layers": 3, "temperatures": []}', "not iterable"),
        ("\udcff", "is not the manifest of a distilled set"),
    ],
)
def test_a_manifest_that_is_none_is_one_line(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "manifest.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=words) as caught:
        DistilledSet.open(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_manifest_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a distilled set: it has no manifest"):
        DistilledSet.open(tmp_path)


def test_a_manifest_of_fewer_fields_is_read(tmp_path: Path) -> None:
    row = MANIFEST.document()
    for name in ("dtype", "prompts_sha256", "outside", "outside_tokens"):
        del row[name]
    (tmp_path / "manifest.json").write_text(json.dumps(row), encoding="utf-8")
    assert DistilledSet.open(tmp_path).manifest == MANIFEST


SPOILT: dict[str, Callable[[dict[str, Tensor]], object]] = {
    "no sequence": lambda held: held.update({name: tensor[:0] for name, tensor in held.items()}),
    "starts in two rows": lambda held: held.update(starts=held["starts"][None]),
    "lengths that are no whole numbers": lambda held: held.update(answers=held["answers"].float()),
    "fewer log-probabilities": lambda held: held.update(top_logprobs=held["top_logprobs"][:, 1:].contiguous()),
    "laws in one row": lambda held: held.update(top_ids=held["top_ids"].flatten()),
    "no tokens": lambda held: held.pop("tokens"),
    "a token beyond": lambda held: held.update(tokens=torch.full_like(held["tokens"], 50)),
    "more than all probability": lambda held: held["top_logprobs"].fill_(5.0),
    "a little more than all": lambda held: held["top_logprobs"].fill_(-1.0),
    "no probability": lambda held: held["top_logprobs"].fill_(float("-inf")),
    "probabilities that are no numbers": lambda held: held["top_logprobs"][0].fill_(float("nan")),
    "a law beyond": lambda held: held.update(top_ids=torch.full_like(held["top_ids"], 50)),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_a_whole_file_that_is_no_shard_is_one_line(place: DistilledSet, fault: str) -> None:
    place.append([conversation(0), conversation(1)])
    held = load_file(place.shards[0])
    SPOILT[fault](held)
    save_file(held, place.shards[0])
    with pytest.raises(UsageError, match=r"shard-00000\.safetensors: is not a whole shard") as caught:
        list(place.read())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"layers": "abc"},
        {"layers": 3},
        {"layers": [1.5]},
        {"temperatures": ["hot"]},
        {"vocab_size": None},
        {"vocab_size": 0},
        {"hidden_size": "wide"},
        {"seed": True},
        {"tokenizer": None},
        {"top_p": float("nan")},
        {"more": 1},
    ],
)
def test_a_manifest_with_a_field_of_another_kind_is_one_line(place: DistilledSet, changed: dict[str, object]) -> None:
    path = place.folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    with pytest.raises(UsageError, match=r"manifest\.json: is not the manifest of a distilled set") as caught:
        DistilledSet.open(place.folder)
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot be written: Not a directory"):
        DistilledSet.begin(tmp_path / "file" / "set", MANIFEST)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files cannot grow beyond 3000 bytes, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_one_line_and_finished_shards_are_kept(place: DistilledSet) -> None:
    place.append([conversation(0)])
    with pytest.raises(RunError, match=r"shard-00001\.safetensors: cannot be written: the disk is full") as caught:
        place.append([conversation(1, length=900)])
    assert "\n" not in str(caught.value)
    assert place.numbers() == {0}
    assert sorted(path.name for path in place.folder.iterdir()) == [
        ".lock",
        "manifest.json",
        "shard-00000.safetensors",
    ]
