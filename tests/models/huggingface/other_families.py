"""Tiny random models of families that only transformers runs here, and of families that nobody runs with trees."""

from typing import Any

import torch
import transformers
from tests.models import families

VOCABULARY = families.tokenizer().get_vocab_size()
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.15,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
}

# parallel residuals and partial RoPE; learned positions; fused projections; soft caps; experts; compressed keys
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt_neox": ("GPTNeoX", {}),
    "opt": ("OPT", {"ffn_dim": 96, "word_embed_proj_dim": 64, "init_std": 0.15}),
    "phi3": ("Phi3", {"sliding_window": None}),
    "gemma2": ("Gemma2", {"head_dim": 16, "layer_types": ["full_attention"] * 3}),
    "mixtral": ("Mixtral", {"sliding_window": None, "num_local_experts": 4}),
    "deepseek_v3": (
        "DeepseekV3",
        {
            "num_key_value_heads": 4,
            "n_routed_experts": 8,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 16,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
        },
    ),
}

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "sliding": ("Mistral", {"sliding_window": 32}, "DynamicSlidingWindowLayer"),
    "mixed": ("Gemma2", {"head_dim": 16}, "DynamicLayer, DynamicSlidingWindowLayer"),
    "hybrid": ("Jamba", {"num_experts": 2}, "LinearAttentionLayer"),
    "recurrent": ("Mamba", {}, "takes no position_ids"),
    "alibi": ("Bloom", {"n_head": 4, "n_layer": 3}, "takes no position_ids"),
    "alibi with positions": ("Falcon", {"alibi": True}, "cannot run a draft tree"),
}


def make(family: str, settings: dict[str, Any], *, seed: int = 0) -> Any:
    """A random float32 model whose every part shows in the logits."""
    torch.manual_seed(seed)
    config = getattr(transformers, f"{family}Config")(**{**_SIZES, **settings})
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                value.add_(torch.randn_like(value) * 0.3)
    return model


def other(name: str) -> Any:
    """A family that works."""
    family, settings = OTHERS[name]
    return make(family, settings)
