"""What the two forms of an EAGLE-3 drafter have in common: the Llama's fields, the layers it reads, the tensors."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from lope.models.drafter_folder import DrafterFolder
from lope.training.export.exported_folder import LAYER_IDS
from lope.training.export.layer_traps import default_layers

DTYPE = torch.float32  # exact for every storage; engines convert to the dtype in which they run
SPECULATIVE_TOKENS = 3  # drafted a round where nobody measured a better depth


def llama_fields(drafter: DrafterFolder) -> dict[str, Any]:
    """The fields of the drafter's layer, as a Llama's config.json has them."""
    about = drafter.about
    decoder = about.decoder
    return {
        "model_type": "llama",
        "vocab_size": about.target.vocab_size,
        "hidden_size": decoder.hidden_size,
        "intermediate_size": decoder.intermediate_size,
        "num_hidden_layers": decoder.num_layers,
        "num_attention_heads": decoder.num_heads,
        "num_key_value_heads": decoder.num_kv_heads,
        "head_dim": decoder.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": decoder.norm_eps,
        # the older and the newer spelling: each is all that some engine reads
        "rope_theta": decoder.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": decoder.rope_theta},
        "max_position_embeddings": decoder.context,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "dtype": str(DTYPE).removeprefix("torch."),
    }


def layer_fields(drafter: DrafterFolder) -> dict[str, Any]:
    """The target's layers, at both places where engines look; nothing for those that every engine takes unasked."""
    layers = list(drafter.about.layers)
    if layers == default_layers(drafter.about.target.num_layers):
        return {}
    # in eagle_config k means the output of layer k, which is hidden state k + 1
    return {LAYER_IDS: layers, "eagle_config": {LAYER_IDS: [layer - 1 for layer in layers]}}


def norm_fields() -> dict[str, Any]:
    """Where EAGLE-3 may normalise and lope's drafters do not: written out, since engines differ in what they assume."""
    return {"norm_before_residual": False, "norm_before_fc": False, "fc_norm": False, "norm_output": False}


def speculative_tokens(drafter: DrafterFolder) -> int:
    """How many tokens a round to draft: the measured depth where there is one."""
    depth = (drafter.about.operating_point or {}).get("depth")
    return depth if isinstance(depth, int) and depth > 0 else SPECULATIVE_TOKENS


def write_tensors(drafter: DrafterFolder, path: Path) -> None:
    """Write `model.safetensors`: the drafter's tensors; for a trimmed head d2t int64 [K] (offsets) and t2d bool [V]."""
    kept, total = drafter.tensors["kept"], drafter.about.target.vocab_size
    tensors: dict[str, Tensor] = {
        name: tensor.to(DTYPE).contiguous() for name, tensor in drafter.tensors.items() if name != "kept"
    }
    if len(kept) < total:
        marks = torch.zeros(total, dtype=torch.bool)
        marks[kept] = True
        tensors |= {"d2t": kept - torch.arange(len(kept)), "t2d": marks}
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
