"""Tiny random checkpoints of every family that the lean decoder runs, made by transformers and written in both formats.

`hugging_face(name)` makes the model, `save_folder` and `save_gguf` write it. The GGUF writer follows llama.cpp's
converter: `llama` (which Mistral is stored as) interleaves the rows of q and k, Llama 3 keeps its scaling as the tensor
`rope_freqs.weight`.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, trainers

CONTEXT = 256
_SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.15,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}


@dataclass(frozen=True)
class Family:
    """One kind of checkpoint. in_gguf: the architecture name there; permutes: q and k rows are interleaved there."""

    config: Any
    model: Any
    in_gguf: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def permutes(self) -> bool:
        return self.in_gguf == "llama"


def _llama(**settings: Any) -> Family:
    return Family(transformers.LlamaConfig, transformers.LlamaForCausalLM, "llama", settings)


def _qwen2(**settings: Any) -> Family:
    return Family(transformers.Qwen2Config, transformers.Qwen2ForCausalLM, "qwen2", settings)


FAMILIES = {
    "llama2": _llama(num_key_value_heads=4),
    "llama3": _llama(rope_parameters=LLAMA3),
    "llama-linear": _llama(rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}),
    "llama-yarn": _llama(rope_parameters=YARN),
    "llama-tied-biased": _llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    "mistral": Family(
        transformers.MistralConfig, transformers.MistralForCausalLM, "llama", {"sliding_window": None, "head_dim": 32}
    ),
    "qwen2": _qwen2(),
    "qwen2-tied": _qwen2(tie_word_embeddings=True),
    "qwen3": Family(
        transformers.Qwen3Config, transformers.Qwen3ForCausalLM, "qwen3", {"head_dim": 32, "tie_word_embeddings": True}
    ),
}


def tokenizer() -> tokenizers.Tokenizer:
    """A small byte-level vocabulary: 2 control tokens, 256 bytes, some merges."""
    raw = tokenizers.Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|begin|>", "<|end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(["the cat sat on the mat and the dog ran after the cat"] * 4, trainer)
    return raw


TEMPLATE = (
    "{% for message in messages %}<|begin|>{{ message['role'] }}: {{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|begin|>assistant: {% endif %}"
)


def hugging_face(name: str, seed: int = 0) -> Any:
    """A random model of this family, float32, with weights large enough that every part of it shows in the logits."""
    family = FAMILIES[name]
    torch.manual_seed(seed)
    config = family.config(**{**_SIZES, "vocab_size": tokenizer().get_vocab_size(), **family.settings})
    model = family.model(config).eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            if key.endswith("bias") or "norm" in key:
                value.add_(torch.randn_like(value) * 0.3)
    return model


def save_folder(model: Any, path: Path, *, shard: str = "50GB") -> Path:
    """Write the model as transformers does, with the small tokenizer. shard: largest size of one file."""
    model.save_pretrained(path, max_shard_size=shard)
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer(), bos_token="<|begin|>", eos_token="<|end|>", chat_template=TEMPLATE
    )
    wrapped.save_pretrained(path)
    return path


def save_gguf(
    name: str,
    model: Any,
    path: Path,
    *,
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    permute: bool = True,
    architecture: str | None = None,
) -> Path:
    """Write the model as llama.cpp's converter does. kind: how matrices are stored; vectors stay F32."""
    family, config = FAMILIES[name], model.config
    writer = gguf.GGUFWriter(path, architecture or family.in_gguf)
    _write_sizes(writer, config)
    _write_tokenizer(writer)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA if family.permutes else _ARCHES[family.in_gguf], 8)
    if config.rope_parameters["rope_type"] == "llama3":
        plain = config.rope_parameters["rope_theta"] ** -(np.arange(0, config.head_dim, 2) / config.head_dim)
        factors = plain / model.model.rotary_emb.inv_freq.numpy()
        writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    for key, value in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        array = value.numpy()
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in key and family.permutes and permute:
                halves = array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
                array = halves.swapaxes(1, 2).reshape(array.shape)
        stored = names.get_name(key, try_suffixes=(".weight", ".bias"))
        if array.ndim == 2 and kind != gguf.GGMLQuantizationType.F32:
            writer.add_tensor(stored, gguf.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(stored, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


_ARCHES = {"qwen2": gguf.MODEL_ARCH.QWEN2, "qwen3": gguf.MODEL_ARCH.QWEN3}


def _write_sizes(writer: gguf.GGUFWriter, config: Any) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    head_dim = getattr(config, "head_dim", None)
    if head_dim and head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
        if "original_max_position_embeddings" in rope:
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])


def _write_tokenizer(writer: gguf.GGUFWriter) -> None:
    raw = tokenizer()
    texts = [raw.id_to_token(token) for token in range(raw.get_vocab_size())]
    kinds = [gguf.TokenType.CONTROL if token < 2 else gguf.TokenType.NORMAL for token in range(len(texts))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges(raw))
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template(TEMPLATE)


def merges(raw: tokenizers.Tokenizer) -> list[str]:
    return [" ".join(pair) if isinstance(pair, list) else pair for pair in json.loads(raw.to_str())["model"]["merges"]]
