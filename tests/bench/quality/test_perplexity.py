"""Perplexity against transformers' own forward, window by window, and against the table's law."""

import math
from typing import Any

import pytest
import torch
from tests.homes import fresh_home
from tests.models import families

from lope.bench.quality.perplexity import Perplexity, read_texts
from lope.core.errors import SettingError, UsageError
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loading import load

TEXTS = ["the cat sat on the mat and the dog ran after the cat, " * 3, "Zürich: 12 °C 🙂 and rain.", "a"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))


@pytest.fixture(scope="module")
def reference() -> Any:
    return families.hugging_face("llama3")


@pytest.fixture(params=["lean", "hf"])
def engine(request, tiny_folder) -> Engine:
    name = str(tiny_folder()) if request.param == "lean" else f"hf:{tiny_folder()}"
    return Engine(load(name, dtype="float32"), Parts("none"), exact=False)


def by_transformers(model: Any, ids: tuple[int, ...], window: int, stride: int) -> tuple[float, int]:
    """The guide `Perplexity of fixed-length models`: a forward over each window, the loss of its last tokens."""
    nats, count, before = 0.0, 0, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + window, len(ids))
        fresh = end - before
        rows = torch.tensor([ids[begin:end]])
        with torch.no_grad():
            logits = model(rows).logits[0].double()
        losses = torch.nn.functional.cross_entropy(logits[:-1], rows[0, 1:], reduction="none")
        nats += float(losses[-fresh:].sum()) if fresh < end - begin else float(losses.sum())
        count += min(fresh, end - begin - 1)
        before = end
        if end == len(ids):
            break
    return nats, count


@pytest.mark.parametrize(("window", "stride"), [(64, 16), (64, 63), (33, 1), (256, 100), (10, 4)])
def test_as_transformers(engine, reference, window, stride):
    found = Perplexity(window, stride, rows=7).measure(engine, TEXTS)
    nats, tokens = 0.0, 0
    for text in TEXTS[:2]:
        more, count = by_transformers(reference, engine.model.tokenizer.encode(text, add_special=True), window, stride)
        nats, tokens = nats + more, tokens + count
    assert (found.tokens, found.texts) == (tokens, 2), "a text of one token predicts nothing"
    assert found.nats == pytest.approx(nats, rel=1e-4)
    assert found.perplexity == pytest.approx(math.exp(nats / tokens), rel=1e-4)


@pytest.mark.parametrize(("window", "stride"), [(16, 3), (50, 200), (2, 1), (256, 256)])
def test_every_token_but_the_first_counts_once(engine, window, stride):
    ids = engine.model.tokenizer.encode(TEXTS[0], add_special=True)
    assert Perplexity(window, stride).measure(engine, TEXTS[:1]).tokens == len(ids) - 1
    assert Perplexity(window, stride, max_tokens=9).measure(engine, TEXTS[:1]).tokens == 8


def test_the_rows_of_a_pass_change_nothing(engine):
    one, many = (Perplexity(40, 10, rows=rows).measure(engine, TEXTS) for rows in (1, 32))
    assert one.nats == pytest.approx(many.nats, rel=1e-5)


def test_bits_per_byte(engine):
    found = Perplexity(40, 10).measure(engine, TEXTS[1:2])
    ids = engine.model.tokenizer.encode(TEXTS[1], add_special=True)
    assert found.num_bytes == len(engine.model.tokenizer.decode(ids[1:]).encode())
    assert found.bits_per_byte == pytest.approx(found.nats / math.log(2) / found.num_bytes)


def test_what_cannot_be_measured(engine):
    with pytest.raises(UsageError, match="two tokens"):
        Perplexity().measure(engine, ["", "a"])
    with pytest.raises(SettingError, match="window of 1000 tokens is longer than the model's context of 256"):
        Perplexity(1000).measure(engine, TEXTS)
    with pytest.raises(SettingError, match="stride must be at least 1"):
        Perplexity(stride=0)


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("one\n{}")
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n\n{"text": "two", "id": 2}\n')
    assert read_texts(tmp_path / "a.txt") == ["one\n{}"]
    assert read_texts(tmp_path / "a.jsonl") == ["one", "two"]
    for content, words in (('{"txt": 1}', "line 1: has no text"), ("[", "line 1: is not JSON"), ("3", "not an object")):
        (tmp_path / "bad.jsonl").write_text(content)
        with pytest.raises(UsageError, match=words):
            read_texts(tmp_path / "bad.jsonl")
    (tmp_path / "bytes.txt").write_bytes(b"\xff")
    (tmp_path / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00")
    for name, words in (
        ("bytes.txt", "not valid UTF-8"),
        ("cut.jsonl.gz", "cannot be read"),
        ("nowhere.txt", "No such file"),
    ):
        with pytest.raises(UsageError, match=words):
            read_texts(tmp_path / name)
