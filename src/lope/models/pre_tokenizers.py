"""How byte-level vocabularies cut text before merging, by the name that GGUF files give (`tokenizer.ggml.pre`).

The patterns are those of the published tokenizer.json files; llama.cpp's own are rewritten for its regex engine.
"""

import tokenizers.pre_tokenizers as pre
from tokenizers import Regex
from tokenizers.normalizers import NFC, Normalizer

from lope.core.errors import ModelError

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_TAIL}"
_QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_TAIL}"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "smaug-bpe": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "tekken": _TEKKEN,
}
_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell", "minerva-7b")  # every digit stands alone
_PLAIN = ("gpt-2", "gpt2", "olmo", "mpt")
SUPPORTED = (*_PATTERNS, *_DIGITS, *_PLAIN)
_WHOLE_WORDS = ("llama-bpe", "llama3", "llama-v3", "tekken")
_BEGINS = ("llama-bpe", "llama3", "llama-v3", "tekken")


def pre_tokenizer(name: str) -> pre.PreTokenizer:
    """The pre-tokenizer of that name. Raises ModelError that lists the known ones."""
    if name in _PATTERNS:
        split = pre.Split(Regex(_PATTERNS[name]), behavior="isolated")
        return pre.Sequence([split, pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    plain = pre.ByteLevel(add_prefix_space=False, use_regex=True)
    if name in _DIGITS:
        return pre.Sequence([pre.Digits(individual_digits=True), plain])
    if name in _PLAIN:
        return plain
    raise ModelError(f"pre-tokenizer {name!r} is not supported (there are: {', '.join(SUPPORTED)})")


def normalizer(name: str) -> Normalizer | None:
    """Qwen composes characters (NFC) before it cuts; the others take text as it is."""
    return NFC() if _PATTERNS.get(name) is _QWEN2 else None


def ignores_merges(name: str) -> bool:
    """Whether a word that is itself a token stays whole, whatever the merges say."""
    return name in _WHOLE_WORDS


def begins(name: str) -> bool:
    """Whether text begins with the begin token where the file does not say."""
    return name in _BEGINS
