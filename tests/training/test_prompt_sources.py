"""Prompts of files and of the target itself: read in any of their forms, numbered, refused in one line."""

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.training.distilling import PROMPTS, file_prompts

from lope.core.errors import LopeError, ModelError, UsageError
from lope.models.chat_template import ChatTemplate
from lope.models.loaded import LoadedModel
from lope.training.prompt_sources import FilePrompts, OwnPrompts, read_lines


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["p.txt", "p.txt.gz", "p.jsonl", "p.jsonl.gz"])
@pytest.mark.parametrize("key", ["prompt", "text"])
def test_every_form_of_file_is_read(tmp_path: Path, name: str, key: str) -> None:
    rows = [json.dumps({"source": "x", key: prompt}) if ".jsonl" in name else prompt for prompt in PROMPTS]
    path = _written(tmp_path / name, ("\n\n".join([*rows, *rows]) + "\n").encode())
    found = FilePrompts.read(path, 3)
    assert list(read_lines(path)) == [*PROMPTS, *PROMPTS]
    assert found.prompts == tuple(PROMPTS), "each prompt once"
    assert sorted(found.order) == list(range(len(PROMPTS)))
    assert (found.name, found.count) == (name, len(PROMPTS))


def test_the_seed_shuffles_and_numbers_come_round(tmp_path: Path, tiny_model: Callable[..., LoadedModel]) -> None:
    path = _written(tmp_path / "p.txt", "\n".join(f"prompt {i}" for i in range(50)).encode())
    first, again, other = FilePrompts.read(path, 1), FilePrompts.read(path, 1), FilePrompts.read(path, 2)
    assert first == again
    assert first.order != other.order
    assert first.sha256 == other.sha256 != FilePrompts.read(_written(tmp_path / "q.txt", b"prompt 0"), 1).sha256
    model = tiny_model()
    assert first.opening(7, model) == first.opening(57, model) != first.opening(8, model)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("p.txt", b" \n\n", "holds no prompt"),
        ("p.txt", b"\xff\xfe\n", "is not valid UTF-8 (byte 0)"),
        ("p.jsonl", b'{"prompt": "a"}\n{"prompt": \n', "line 2 is not JSON"),
        ("p.jsonl", b'{"prompt": "a"}\n{"answer": "b"}\n', "line 2 has no prompt"),
        ("p.jsonl", b'{"prompt": "  "}\n', "line 1 has no prompt"),
        ("p.jsonl", b'{"prompt": 3}\n', "line 1 has no prompt"),
        ("p.jsonl", b'["a"]\n', "line 1 has no prompt"),
        ("p.jsonl", b'{"prompt": "a\\ud800"}\n', "line 1 holds half a surrogate pair"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = _written(tmp_path / name, content)
    with pytest.raises(UsageError, match=re.escape(f"{path}: {words}")) as caught:
        FilePrompts.read(path, 0)
    assert "\n" not in str(caught.value)


def test_a_gzip_cut_short_and_a_file_that_is_not_there_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "p.txt.gz"
    path.write_bytes(gzip.compress(b"a prompt\n" * 1000)[:-20])
    for bad in (path, tmp_path / "none.txt"):
        with pytest.raises(UsageError, match=f"{bad}: cannot be read: "):
            FilePrompts.read(bad, 0)


def test_a_files_prompt_stands_in_the_template(tiny_model: Callable[..., LoadedModel]) -> None:
    model = tiny_model()
    source = replace(file_prompts(), order=tuple(range(len(PROMPTS))))
    ids, asking = source.opening(1, model)
    assert not asking
    text = model.tokenizer.decode(ids, skip_special=False)
    assert text == f"<|begin|>user: {PROMPTS[1]}<|end|>\n<|begin|>assistant: "


def test_without_a_template_a_files_prompt_is_bare_text(tiny_model: Callable[..., LoadedModel]) -> None:
    base = replace(tiny_model(), template=None)
    source = replace(file_prompts(), order=tuple(range(len(PROMPTS))))
    ids, asking = source.opening(1, base)
    assert not asking
    assert ids == base.tokenizer.encode(PROMPTS[1], add_special=True)


def test_the_target_writes_after_the_header_of_a_users_turn(tiny_model: Callable[..., LoadedModel]) -> None:
    model = tiny_model()
    ids, asking = OwnPrompts().opening(5, model)
    assert asking
    assert model.tokenizer.decode(ids, skip_special=False) == "<|begin|>user: "


@pytest.mark.parametrize(
    ("template", "error", "words"),
    [
        (None, UsageError, "has no chat template, so it cannot write prompts of its own: give some with --prompts"),
        ("{{ messages[0]['content'] | upper }}", ModelError, "does not show the user's words as they are"),
        ("{{ messages[0]['content'] }}", ModelError, "has nothing before the user's words to go on from"),
    ],
)
def test_templates_that_cannot_be_gone_on_from_are_one_line(
    template: str | None, error: type[LopeError], words: str, tiny_model: Callable[..., LoadedModel]
) -> None:
    model = replace(tiny_model(), template=None if template is None else ChatTemplate(template))
    with pytest.raises(error, match=words):
        OwnPrompts().opening(0, model)
