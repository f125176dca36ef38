"""Builds the tokenizer of a GGUF file from its metadata."""

from collections.abc import Sequence
from dataclasses import dataclass

import tokenizers
from tokenizers import decoders, models, normalizers, processors

from lope.core.errors import ModelError
from lope.models import pre_tokenizers
from lope.models.chat_template import ChatTemplate
from lope.models.checkpoint import Speech
from lope.models.gguf_header import GgufHeader
from lope.models.tokenizer import Tokenizer

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
# Control tokens that end an answer in some family, whatever the file names as end of sequence (llama.cpp's list)
_ENDS = frozenset({"<|eot_id|>", "<|im_end|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>", "<EOT>"})


def gguf_speech(header: GgufHeader) -> Speech:
    """Tokenizer, chat template and stop tokens of a GGUF file. Raises ModelError."""
    vocabulary = _Vocabulary.of(header)
    kind: str = header.get("tokenizer.ggml.model", str)
    try:
        if kind == "gpt2":
            raw = _byte_level(header, vocabulary)
        elif kind == "llama":
            raw = _sentence_piece(header, vocabulary)
        else:
            raise ModelError(f"tokenizer {kind!r} is not supported (there are: gpt2, llama)")
    except ModelError as error:
        raise ModelError(f"{header.path}: {error}") from None
    except Exception as error:  # noqa: BLE001 - the tokenizers library raises bare Exception for inconsistent merges
        raise ModelError(f"{header.path}: the tokenizer's vocabulary and merges disagree: {error}") from None
    ids = {name: _special_id(header, vocabulary, name) for name in ("bos", "eos", "unknown", "padding", "eot", "eom")}
    names = {
        f"{short}_token": vocabulary.texts[token]
        for short, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if (token := ids[name]) is not None
    }
    stops = {token for name in ("eos", "eot", "eom") if (token := ids[name]) is not None}
    stops |= {token for token in vocabulary.of_kind(_CONTROL) if vocabulary.texts[token] in _ENDS}
    template = header.get("tokenizer.chat_template", str, None)
    return Speech(
        tokenizer=Tokenizer(raw, bos=ids["bos"], eos=ids["eos"]),
        template=None if template is None else ChatTemplate(template, names),
        stop_tokens=frozenset(stops),
        names=names,
    )


@dataclass(frozen=True)
class _Vocabulary:
    """Text and kind of every id; padding rows (kind unused) are no part of it."""

    texts: Sequence[str]
    kinds: Sequence[int]

    @classmethod
    def of(cls, header: GgufHeader) -> "_Vocabulary":
        texts = header.get("tokenizer.ggml.tokens", list)
        kinds = header.get("tokenizer.ggml.token_type", list, None) or [_NORMAL] * len(texts)
        if not texts or len(kinds) != len(texts) or not all(isinstance(text, str) for text in texts):
            raise ModelError(f"{header.path}: the tokenizer has {len(texts)} tokens of {len(kinds)} types")
        return cls(texts, kinds)

    def of_kind(self, *kinds: int) -> list[int]:
        return [token for token, kind in enumerate(self.kinds) if kind in kinds]

    def ids(self) -> dict[str, int]:
        """Text -> id; the first of equal texts keeps it."""
        ids: dict[str, int] = {}
        for token, (text, kind) in enumerate(zip(self.texts, self.kinds, strict=True)):
            if kind != _UNUSED:
                ids.setdefault(text, token)
        return ids

    def add_specials(self, raw: tokenizers.Tokenizer) -> None:
        for token, kind in enumerate(self.kinds):
            if kind in (_UNKNOWN, _CONTROL):
                raw.add_special_tokens([tokenizers.AddedToken(self.texts[token], special=True, normalized=False)])
            elif kind == _USER_DEFINED:
                raw.add_tokens([tokenizers.AddedToken(self.texts[token], special=False, normalized=False)])


def _byte_level(header: GgufHeader, vocabulary: _Vocabulary) -> tokenizers.Tokenizer:
    name = header.get("tokenizer.ggml.pre", str, "gpt-2")
    lines = header.get("tokenizer.ggml.merges", list)
    merges = [tuple(line.split(" ", 1)) for line in lines]
    if any(len(merge) != 2 for merge in merges):
        raise ModelError("a merge of the tokenizer does not name two tokens")
    model = models.BPE(vocabulary.ids(), merges, ignore_merges=pre_tokenizers.ignores_merges(name))
    raw = tokenizers.Tokenizer(model)
    raw.pre_tokenizer = pre_tokenizers.pre_tokenizer(name)
    if (normalizer := pre_tokenizers.normalizer(name)) is not None:
        raw.normalizer = normalizer
    raw.decoder = decoders.ByteLevel()
    vocabulary.add_specials(raw)
    _add_ends(raw, header, vocabulary, begins=pre_tokenizers.begins(name))
    return raw


def _sentence_piece(header: GgufHeader, vocabulary: _Vocabulary) -> tokenizers.Tokenizer:
    scores = header.get("tokenizer.ggml.scores", list)
    if len(scores) != len(vocabulary.texts):
        raise ModelError(f"the tokenizer has {len(vocabulary.texts)} tokens of {len(scores)} scores")
    unknown = next(iter(vocabulary.of_kind(_UNKNOWN)), None)
    model = models.BPE(
        vocabulary.ids(),
        _merges(vocabulary, scores),
        unk_token=None if unknown is None else vocabulary.texts[unknown],
        fuse_unk=True,
        byte_fallback=True,
    )
    raw = tokenizers.Tokenizer(model)
    prefixed = header.get("tokenizer.ggml.add_space_prefix", bool, True)
    spaces = normalizers.Replace(" ", "▁")
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), spaces]) if prefixed else spaces
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    raw.decoder = decoders.Sequence([*steps, decoders.Strip(" ", left=1, right=0)] if prefixed else steps)
    vocabulary.add_specials(raw)
    _add_ends(raw, header, vocabulary, begins=True)
    return raw


def _merges(vocabulary: _Vocabulary, scores: Sequence[float]) -> list[tuple[str, str]]:
    """Every way to join two pieces into a third, best score first: SentencePiece keeps scores, not merges."""
    pieces = {vocabulary.texts[token]: token for token in vocabulary.of_kind(_NORMAL)}
    found = []
    for text, token in pieces.items():
        ways = [(text[:cut], text[cut:]) for cut in range(1, len(text))]
        known = [(left, right) for left, right in ways if left in pieces and right in pieces]
        known.sort(key=lambda way: (pieces[way[0]], pieces[way[1]]))
        found += [(-scores[token], -len(left), -len(right), left, right) for left, right in known]
    found.sort(key=lambda merge: merge[:3])
    return [(left, right) for *_, left, right in found]


def _add_ends(raw: tokenizers.Tokenizer, header: GgufHeader, vocabulary: _Vocabulary, *, begins: bool) -> None:
    """Begin and end tokens around a text, where the file asks for them (or, silent, its kind of vocabulary does)."""
    bos, eos = _special_id(header, vocabulary, "bos"), _special_id(header, vocabulary, "eos")
    before = [bos] if bos is not None and header.get("tokenizer.ggml.add_bos_token", bool, begins) else []
    after = [eos] if eos is not None and header.get("tokenizer.ggml.add_eos_token", bool, False) else []
    if before or after:
        texts = [vocabulary.texts[token] for token in (*before, *after)]
        pattern = " ".join([*texts[: len(before)], "$A", *texts[len(before) :]])
        raw.post_processor = processors.TemplateProcessing(
            single=pattern, special_tokens=list({text: (text, raw.token_to_id(text)) for text in texts}.values())
        )


def _special_id(header: GgufHeader, vocabulary: _Vocabulary, name: str) -> int | None:
    token: int | None = header.get(f"tokenizer.ggml.{name}_token_id", int, None)
    if token is None or token == 0xFFFFFFFF:  # some writers say "none" so
        return None
    if not 0 <= token < len(vocabulary.texts):
        raise ModelError(f"{header.path}: {name} token {token} is not among the {len(vocabulary.texts)} tokens")
    return token
