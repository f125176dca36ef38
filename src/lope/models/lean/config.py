"""What a decoder of the Llama family is made of, as numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and switches of one decoder; everything that differs between the families is here and nowhere else.

    rope_factors: head_dim / 2 divisors of the rotary frequencies (Llama-3, linear, YaRN scaling), or None for none.
    rope_scale:   factor on cos and sin (YaRN), 1.0 for all others.
    qkv_bias:     biases on q, k, v (Qwen2). output_bias, mlp_bias: on the output projection, on the MLP.
    qk_norm:      RMS norm of each head's q and k before RoPE (Qwen3).
    context:      how many items the model may attend to (never beyond a sliding window, which is not built).
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm_eps: float
    rope_theta: float
    context: int
    tied: bool
    rope_factors: tuple[float, ...] | None = None
    rope_scale: float = 1.0
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that a checkpoint must hold, by Hugging Face name, with their shapes."""
        hidden, queries = self.hidden_size, self.num_heads * self.head_dim
        keys, wide = self.num_kv_heads * self.head_dim, self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (self.vocab_size, hidden),
            "model.norm.weight": (hidden,),
        }
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocab_size, hidden)
        linears = {
            "self_attn.q_proj": ((queries, hidden), self.qkv_bias),
            "self_attn.k_proj": ((keys, hidden), self.qkv_bias),
            "self_attn.v_proj": ((keys, hidden), self.qkv_bias),
            "self_attn.o_proj": ((hidden, queries), self.output_bias),
            "mlp.gate_proj": ((wide, hidden), self.mlp_bias),
            "mlp.up_proj": ((wide, hidden), self.mlp_bias),
            "mlp.down_proj": ((hidden, wide), self.mlp_bias),
        }
        for layer in range(self.num_layers):
            prefix = f"model.layers.{layer}."
            shapes[prefix + "input_layernorm.weight"] = (hidden,)
            shapes[prefix + "post_attention_layernorm.weight"] = (hidden,)
            if self.qk_norm:
                shapes[prefix + "self_attn.q_norm.weight"] = (self.head_dim,)
                shapes[prefix + "self_attn.k_norm.weight"] = (self.head_dim,)
            for name, (shape, biased) in linears.items():
                shapes[f"{prefix}{name}.weight"] = shape
                if biased:
                    shapes[f"{prefix}{name}.bias"] = shape[:1]
        return shapes

    @property
    def num_parameters(self) -> int:
        """How many numbers a pass reads: the embedding counts only where it is the head too."""
        skipped = () if self.tied else ("model.embed_tokens.weight",)
        total = 0
        for name, shape in self.shapes().items():
            if name not in skipped:
                size = 1
                for side in shape:
                    size *= side
                total += size
        return total
