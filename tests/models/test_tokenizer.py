"""Tokenizers: against transformers and tokenizers, from files and from GGUF metadata."""

import gzip
import json
from pathlib import Path
from typing import Any

import gguf
import pytest
import tokenizers
import transformers
from tests.models import families
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from lope.core.errors import ModelError
from lope.models.detokenizer import Detokenizer
from lope.models.gguf_header import GgufHeader
from lope.models.gguf_tokenizer import gguf_speech
from lope.models.loading import load
from lope.models.tokenizer import Tokenizer

TEXTS = [
    "the cat sat on the mat, and the dog's 12345 fleas ran after IT'LL.",
    "  two  spaces\n\n\n\ttabs \r\n and   trailing   ",
    "naïve façade Ünïcode — “quotes” … ½ ² ①",
    "日本語のテキスト 中文 한국어 العربية हिन्दी ไทย",
    "👍🏽👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 \u200d \ufeff",
    "def f(x):\n    return x**2  # MiXeD CaSe camelCase HTTPServer 3.14159",
    "",
]


def write_gguf(path: Path, raw: tokenizers.Tokenizer, **metadata: Any) -> Path:
    """A GGUF file that holds a byte-level tokenizer and nothing else."""
    writer = gguf.GGUFWriter(path, "llama")
    texts = [raw.id_to_token(token) for token in range(raw.get_vocab_size())]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(metadata.get("pre", "gpt-2"))
    writer.add_token_list([*texts, *metadata.get("more", [])])
    kinds = [gguf.TokenType.CONTROL if token < 2 else gguf.TokenType.NORMAL for token in range(len(texts))]
    writer.add_token_types([*kinds, *metadata.get("more_kinds", [])])
    writer.add_token_merges(families.merges(raw))
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    if "add_bos" in metadata:
        writer.add_add_bos_token(metadata["add_bos"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def trained(split: Any = None) -> tokenizers.Tokenizer:
    """A byte-level vocabulary with merges from all the texts, under a pre-tokenizer."""
    raw = tokenizers.Tokenizer(models.BPE())
    raw.pre_tokenizer = split or pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|begin|>", "<|end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(TEXTS * 3, trainer)
    return raw


def from_gguf(path: Path) -> Tokenizer:
    return gguf_speech(GgufHeader.read(path)).tokenizer


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2", "tekken", "smaug-bpe"])
def test_gguf_metadata_cut_text_as_transformers_does(pre: str, tmp_path: Path) -> None:
    raw = trained()
    path = write_gguf(tmp_path / "t.gguf", raw, pre=pre, add_bos=False)
    mine = from_gguf(path)
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file="t.gguf")
    for text in TEXTS:
        if (
            pre == "qwen2"
        ):  # the published tokenizer composes characters; transformers' reading of GGUF files forgets it
            text = normalizers.NFC().normalize_str(text)
        if pre in ("llama-bpe", "tekken"):  # a word that is a token stays whole; that reading forgets this too
            assert mine.decode(mine.encode(text)) == text
            continue
        assert list(mine.encode(text)) == reference(text, add_special_tokens=False)["input_ids"], text


def test_qwen2_is_the_published_tokenizer(tmp_path: Path) -> None:
    raw = trained()
    merges = [tuple(merge.split(" ")) for merge in families.merges(raw)]
    published = transformers.Qwen2Tokenizer(vocab=raw.get_vocab(), merges=merges)
    mine = from_gguf(write_gguf(tmp_path / "t.gguf", raw, pre="qwen2"))
    for text in TEXTS:
        assert list(mine.encode(text)) == published(text)["input_ids"], text


def test_smollm_cuts_every_digit_apart(tmp_path: Path) -> None:
    # SmolLM2's tokenizer.json: a sequence of Digits(individual_digits) and ByteLevel
    published = trained()
    split = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    published.pre_tokenizer = split
    mine = from_gguf(write_gguf(tmp_path / "t.gguf", published, pre="smollm"))
    for text in TEXTS:
        assert list(mine.encode(text)) == published.encode(text).ids
        assert mine.decode(mine.encode(text)) == text
    assert mine.encode("12") == (*mine.encode("1"), *mine.encode("2"))


def sentence_piece() -> tokenizers.Tokenizer:
    """A vocabulary as Llama 2's: spaces as ▁, bytes as <0x..>, merges by rank."""
    raw = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    raw.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=450, special_tokens=["<unk>", "<s>", "</s>", *byte_tokens], show_progress=False
    )
    raw.train_from_iterator([TEXTS[0], TEXTS[5]] * 3, trainer)
    plain = json.loads(raw.to_str())
    plain["added_tokens"] = plain["added_tokens"][:3]  # bytes are ordinary tokens
    return tokenizers.Tokenizer.from_str(json.dumps(plain))


def write_sentence_piece(path: Path, raw: tokenizers.Tokenizer) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    texts = [raw.id_to_token(token) for token in range(raw.get_vocab_size())]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * (len(texts) - 259)
    rank = {"".join(merge.split(" ")): -float(place) for place, merge in enumerate(families.merges(raw))}
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_scores(
        [rank.get(text, -1e6 if kind == 1 else 0.0) for text, kind in zip(texts, kinds, strict=True)]
    )
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_sentence_piece_scores_become_the_same_merges(tmp_path: Path) -> None:
    published = sentence_piece()
    mine = from_gguf(write_sentence_piece(tmp_path / "s.gguf", published))
    for text in TEXTS:
        assert list(mine.encode(text)) == published.encode(text, add_special_tokens=False).ids, text
        assert mine.decode(mine.encode(text)) == text
    assert mine.encode("the", add_special=True) == (1, *mine.encode("the"))
    assert mine.encode("</s>the") == (2, *mine.encode("the"))


def test_bytes_of_tokens_join_to_what_the_library_decodes(tmp_path: Path) -> None:
    for raw in (trained(), sentence_piece()):
        mine = Tokenizer(raw)
        for text in TEXTS:
            ids = mine.encode(text)
            assert mine.decode(ids) == raw.decode(list(ids))


def test_a_begin_token_is_added_only_when_asked_for(tmp_path: Path) -> None:
    raw = trained()
    mine = from_gguf(write_gguf(tmp_path / "a.gguf", raw, add_bos=True))
    assert mine.encode("cat", add_special=True) == (0, *mine.encode("cat"))
    assert 0 not in mine.encode("cat")
    silent = from_gguf(write_gguf(tmp_path / "b.gguf", raw))
    assert silent.encode("cat", add_special=True) == silent.encode("cat")


def test_added_tokens_stay_whole_and_padding_has_no_text(tmp_path: Path) -> None:
    more = ["<tool call>", "[PAD1]", "[PAD2]"]
    kinds = [gguf.TokenType.USER_DEFINED, gguf.TokenType.UNUSED, gguf.TokenType.UNUSED]
    raw = trained()
    size = raw.get_vocab_size()
    mine = from_gguf(write_gguf(tmp_path / "t.gguf", raw, more=more, more_kinds=kinds))
    assert mine.encode("a<tool call>b") == (*mine.encode("a"), size, *mine.encode("b"))
    assert mine.decode([size]) == "<tool call>"
    assert mine.vocab_size == size + 1
    assert mine.decode([size + 1]) == ""
    assert mine.token_text(size + 1) == ""
    assert mine.special_ids == {0, 1}
    assert mine.decode([0, *mine.encode("a"), 1]) == "a"
    assert mine.decode([0, 1], skip_special=False) == "<|begin|><|end|>"


def test_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    raw = trained()
    raw.save(str(tmp_path / "tokenizer.json"))
    from_file = Tokenizer.from_file(tmp_path / "tokenizer.json", bos="<|begin|>")
    padded = write_gguf(tmp_path / "a.gguf", raw, more=["[PAD]"], more_kinds=[gguf.TokenType.UNUSED])
    assert from_file.fingerprint == from_gguf(padded).fingerprint
    assert from_file.bos == 0
    assert from_file.eos is None
    other = json.loads(raw.to_str())
    vocabulary = other["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    swapped = Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(other)))
    assert swapped.vocab_size == from_file.vocab_size
    assert swapped.fingerprint != from_file.fingerprint
    other = json.loads(raw.to_str())
    other["model"]["merges"] = other["model"]["merges"][:-1]
    assert Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(other))).fingerprint != from_file.fingerprint


def test_truncation_and_padding_of_a_file_do_not_act(tmp_path: Path) -> None:
    raw = trained()
    raw.enable_truncation(3)
    raw.enable_padding(length=50)
    assert len(Tokenizer(raw).encode("the cat sat on the mat")) > 3


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"pre": "unheard-of"}, r"pre-tokenizer 'unheard-of' is not supported \(there are: llama-bpe"),
        ({"more": ["x"]}, "tokens of"),
    ],
)
def test_an_unusable_gguf_tokenizer_is_one_clear_error(metadata: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        from_gguf(write_gguf(tmp_path / "t.gguf", trained(), **metadata))


def test_a_damaged_tokenizer_json_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"tokenizer\.json: is not a tokenizer\.json"):
        Tokenizer.from_file(tmp_path / "tokenizer.json")


def test_prompts_survive_the_built_in_kind_of_tokenizer(tmp_path: Path, data: Path) -> None:
    with gzip.open(data / "spec_bench.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [turn for line in list(lines)[::6] for turn in json.loads(line)["turns"]]
    mine = from_gguf(write_gguf(tmp_path / "t.gguf", trained(), pre="smollm"))
    assert [text for text in texts if mine.decode(mine.encode(text)) != text] == []


@pytest.mark.model
def test_the_built_in_tokenizer_is_lossless_and_consistent(cache_home: Path, data: Path) -> None:
    with gzip.open(data / "spec_bench.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [turn for line in list(lines)[::6] for turn in json.loads(line)["turns"]]
    kept = load("smollm2", dtype="float32", progress=False).tokenizer
    built = from_gguf(cache_home / "models" / "smollm2.gguf")
    theirs = transformers.AutoTokenizer.from_pretrained(cache_home / "models" / "smollm2-float32")
    assert kept.fingerprint == built.fingerprint
    for text in texts:
        ids = built.encode(text)
        assert built.decode(ids) == text
        assert kept.encode(text) == ids
        assert theirs(text)["input_ids"] == list(ids)
        stream = Detokenizer(kept)
        assert "".join(stream.feed([token]) for token in ids) + stream.finish() == text


def test_template_processor_is_not_disturbed(tmp_path: Path) -> None:
    raw = trained()
    raw.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A <|end|>", special_tokens=[("<|begin|>", 0), ("<|end|>", 1)]
    )
    raw.save(str(tmp_path / "tokenizer.json"))
    mine = Tokenizer.from_file(tmp_path / "tokenizer.json")
    assert mine.encode("cat", add_special=True) == (0, *mine.encode("cat"), 1)
