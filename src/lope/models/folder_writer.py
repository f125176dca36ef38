"""Writes a checkpoint as a complete Hugging Face folder, which transformers and other runtimes read too."""

import json
from pathlib import Path
from typing import Any

import torch

from lope.models.checkpoint import Checkpoint, Speech
from lope.models.lean.config import DecoderConfig
from lope.models.safetensors_writer import write_safetensors

_MODEL_TYPES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}


def write_folder(path: Path, checkpoint: Checkpoint, dtype: torch.dtype) -> None:
    """Make the folder: config, weights in `dtype`, tokenizer, chat template, generation config."""
    path.mkdir()
    speech = checkpoint.speech
    _write_json(path / "config.json", _config(checkpoint.config, speech, dtype))
    _write_json(path / "generation_config.json", _ends(speech))
    _write_json(path / "tokenizer_config.json", _tokenizer_config(checkpoint.config, speech))
    speech.tokenizer.raw.save(str(path / "tokenizer.json"), pretty=False)
    write_safetensors(path / "model.safetensors", checkpoint.tensors, checkpoint.shapes, dtype)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _config(config: DecoderConfig, speech: Speech, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "architectures": [config.architecture],
        "model_type": _MODEL_TYPES[config.architecture],
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_parameters": _rope(config),
        "max_position_embeddings": config.context,
        "sliding_window": None,
        "tie_word_embeddings": config.tied,
        "attention_bias": config.output_bias,
        "mlp_bias": config.mlp_bias,
        "dtype": str(dtype).removeprefix("torch."),
        **_ends(speech),
    }


def _rope(config: DecoderConfig) -> dict[str, Any]:
    if config.rope_factors is None:
        return {"rope_type": "default", "rope_theta": config.rope_theta}
    # any fixed divisors of the frequencies are a LongRoPE whose short and long factors are the same
    return {
        "rope_type": "longrope",
        "rope_theta": config.rope_theta,
        "short_factor": list(config.rope_factors),
        "long_factor": list(config.rope_factors),
        "attention_factor": config.rope_scale,
        "factor": 1.0,
        "original_max_position_embeddings": config.context,
    }


def _ends(speech: Speech) -> dict[str, Any]:
    names = {name: speech.tokenizer.token_id(text) for name, text in speech.names.items()}
    ids: dict[str, Any] = {"bos_token_id": speech.tokenizer.bos, "eos_token_id": sorted(speech.stop_tokens)}
    return {**ids, "pad_token_id": names.get("pad_token")}


def _tokenizer_config(config: DecoderConfig, speech: Speech) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": config.context,
        **speech.names,
    }
    return settings if speech.template is None else {**settings, "chat_template": speech.template.source}
