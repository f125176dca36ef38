"""Which transformers models can run draft trees: asked of their signature and cache first, then tried."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.huggingface.packed_model import PackedModel, Segment
from lope.models.huggingface.sequence_cache import SequenceCache
from lope.models.lean.layout import Layout

_WORKS = (
    "the Hugging Face adapter runs causal models that take explicit positions and 4-D masks, and whose every layer "
    "keeps all keys and values (full attention)"
)
# frequencies that change with the longest position of a pass would make rows depend on their neighbours
_CHANGING_ROPE = ("dynamic", "longrope")
# what a tree is tried on: so many items of context, so many siblings before the node that is looked at
_CONTEXT = 4
_SIBLINGS = 15


def admit(model: Any) -> PackedModel:
    """Prepare a loaded `AutoModelForCausalLM` for packed passes. Raises ModelError that says why it cannot be run so.

    Switches it to evaluation, and to an attention implementation that honours masks.
    """
    name = type(model).__name__
    _check_signature(name, model)
    _check_cache(name, model.config)
    model.eval()
    soft_capped = getattr(model.config.get_text_config(decoder=True), "attn_logit_softcapping", None) is not None
    if model.config._attn_implementation not in (("eager",) if soft_capped else ("eager", "sdpa")):
        model.set_attn_implementation("eager" if soft_capped else "sdpa")
    packed = PackedModel(model, _context(name, model.config))
    _try_tree(name, packed)
    return packed


def _check_signature(name: str, model: Any) -> None:
    takes = inspect.signature(model.forward).parameters
    missing = [argument for argument in ("attention_mask", "position_ids", "logits_to_keep") if argument not in takes]
    if not {"cache", "past_key_values"} & set(takes):
        missing.append("cache")
    if missing:
        raise ModelError(f"{name} takes no {', '.join(missing)}: {_WORKS}")


def _check_cache(name: str, config: Any) -> None:
    """Refuse layers that forget: sliding windows, chunks, recurrent states, layers that share what others keep."""
    kinds = sorted({type(layer).__name__ for layer in transformers.DynamicCache(config=config).layers})
    if kinds != ["DynamicLayer"]:
        raise ModelError(f"{name} keeps its past in {', '.join(kinds)}: {_WORKS}")


def _context(name: str, config: Any) -> int:
    """How many items a sequence may hold. Raises ModelError where the configuration does not say."""
    text = config.get_text_config(decoder=True)
    context = getattr(text, "max_position_embeddings", None)
    if not isinstance(context, int) or context < 1:
        raise ModelError(f"{name} does not say how long its context is (max_position_embeddings is {context!r})")
    rope = getattr(text, "rope_parameters", None) or {}
    if rope.get("rope_type") in _CHANGING_ROPE:
        context = min(context, rope.get("original_max_position_embeddings", context))
    return context


def _try_tree(name: str, model: PackedModel) -> None:
    """Run one node far from its parent in the cache, siblings between: it must say what it says as a plain successor.

    Catches whatever takes no notice of masks or positions. The difference is measured against what the siblings would
    change if they were seen; on SmolLM2 it is 1e-6 of that in float32, up to 0.07 in bfloat16, above 0.5 where
    positions are ignored. (The hidden states asked for also let transformers hook its layers, once for all copies.)
    """
    count = _CONTEXT + _SIBLINGS + 1
    tokens = [(step + 1) * model.vocab_size // (count + 1) for step in range(count)]
    context, siblings, node = tokens[:_CONTEXT], tokens[_CONTEXT:-1], tokens[-1]
    slots = tuple((slot,) for slot in range(_CONTEXT, count))
    try:
        alone = _logits(model, [*context, node], Layout(0, _CONTEXT + 1))
        crowded = _logits(model, [*context, *siblings, node], Layout(0, count))
        tree = _logits(model, [*context, *siblings, node], Layout(0, _CONTEXT, slots))
    except Exception as error:  # the model's own code may fail in any way
        raise ModelError(f"{name} cannot run a draft tree ({type(error).__name__}: {error}): {_WORKS}") from error
    tolerance = 1e-3 if model.dtype == torch.float32 else 0.2
    noise = torch.finfo(model.dtype).eps * alone.norm()
    if not (tree - alone).norm() <= tolerance * (crowded - alone).norm() + noise:
        raise ModelError(f"{name} does not honour 4-D masks with explicit positions: {_WORKS}")


def _logits(model: PackedModel, tokens: Sequence[int], layout: Layout) -> Tensor:
    """float32 [V] of the last row, centred."""
    segment = Segment(SequenceCache(), tokens, layout, (len(tokens) - 1,))
    logits = model.run([segment], hidden=True)[0].logits[0].float()
    return logits - logits.mean()
