"""The weights: names, shapes, and the embedding that should not be there."""

import re
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from lope.training.export.exported_folder import FIRST_LAYER, OLD_FIRST_LAYER, ExportedFolder
from lope.training.export.layer_traps import FEATURES
from lope.training.export.trap import LLAMA_CPP, VLLM, Trap

EMBEDDING = "embed_tokens.weight"
_ELSEWHERE = ("fc.weight", "d2t", "t2d", "lm_head.weight", EMBEDDING, "mask_hidden", "input_norm.weight")
_ALSO = re.compile(
    r"fc_norm\.\d+\.weight|aux_norm_(low|mid|high)\.weight|layers\.[1-9]\d*\..*"
    r"|layers\.0\.self_attn\.[qk]_norm\.weight|.*\.bias"
)


def tensor_traps(folder: ExportedFolder, embedding: Tensor | None) -> Iterator[Trap]:
    """Every trap about weights. embedding [V, dt]: the target's, where it is at hand."""
    yield from _first_layer(folder)
    yield from _shapes(folder)
    yield from _embedding(folder, embedding)


def expected_shapes(folder: ExportedFolder) -> dict[str, tuple[int, ...]]:
    """The tensors that every EAGLE-3 drafter has, with their shapes for this configuration; `fc.weight` by itself."""
    d, wide = folder.size("hidden_size"), folder.size("intermediate_size")
    heads = folder.size("num_attention_heads")
    head_dim = folder.size("head_dim", max(d // heads, 1))
    queries, keys = heads * head_dim, folder.size("num_key_value_heads", heads) * head_dim
    layer = {
        "input_layernorm.weight": (d,),
        "hidden_norm.weight": (d,),
        "self_attn.q_proj.weight": (queries, 2 * d),
        "self_attn.k_proj.weight": (keys, 2 * d),
        "self_attn.v_proj.weight": (keys, 2 * d),
        "self_attn.o_proj.weight": (d, queries),
        "post_attention_layernorm.weight": (d,),
        "mlp.gate_proj.weight": (wide, d),
        "mlp.up_proj.weight": (wide, d),
        "mlp.down_proj.weight": (d, wide),
    }
    return {"norm.weight": (d,), **{FIRST_LAYER + name: shape for name, shape in layer.items()}}


def _first_layer(folder: ExportedFolder) -> Iterator[Trap]:
    starts = [any(name.startswith(start) for name in folder.shapes) for start in (FIRST_LAYER, OLD_FIRST_LAYER)]
    if all(starts):
        says = "midlayer.* and layers.0.* are both there, but are names of one layer: either may win"
        yield Trap("two first layers", folder.readers, says)


def _shapes(folder: ExportedFolder) -> Iterator[Trap]:
    held = {name.replace(OLD_FIRST_LAYER, FIRST_LAYER): shape for name, shape in folder.shapes.items()}
    expected = expected_shapes(folder)
    for name in ("fc.weight", *expected):
        if name not in held:
            yield Trap("tensor missing", folder.readers, f"there is no {name}")
    for name, shape in {**expected, **_wide_shapes(folder, held)}.items():
        if held.get(name, shape) != shape:
            says = f"{name} has shape {list(held[name])}, not {list(shape)}"
            yield Trap("tensor shape", folder.readers, says)
    for name in held:
        if name not in expected and name not in _ELSEWHERE and not _ALSO.fullmatch(name):
            yield Trap("unknown tensor", (VLLM,), f"{name} belongs to no EAGLE-3 drafter: vLLM stops at it")


def _wide_shapes(folder: ExportedFolder, held: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The shapes of head and fc, whose number of rows and of features other checks look at."""
    d, width = folder.size("hidden_size"), folder.target_width
    shape = held.get("fc.weight", ())
    read = shape[1] if len(shape) == 2 else 0
    features = read // width if read and not read % width else FEATURES
    return {"lm_head.weight": (folder.kept, d), "fc.weight": (d, features * width)}


def _embedding(folder: ExportedFolder, embedding: Tensor | None) -> Iterator[Trap]:
    if EMBEDDING not in folder.shapes:
        return
    if embedding is None:
        says = "embed_tokens is there; where it is not the target's own, number for number, vLLM and llama.cpp read it"
    else:
        own = folder.tensors[EMBEDDING]
        if own.shape == embedding.shape and torch.equal(own.float(), embedding.float()):
            return
        says = "embed_tokens differs from the target's embedding, and vLLM and llama.cpp read it instead"
    yield Trap("embed_tokens present", (VLLM, LLAMA_CPP), f"{says}: leave it out (SGLang replaces it)")
