"""Which hidden states of the target the drafter reads, and how engines count them.

At the top of `config.json` k means the residual stream after k layers (vLLM, llama.cpp, speculators); inside
`eagle_config` k means the output of layer k, which is the same stream one number lower (SGLang). With neither, all
take 2, N // 2 and N - 3 of the target's N layers, counted as at the top.
"""

import itertools
from collections.abc import Iterator

from lope.training.export.exported_folder import PLAIN, ExportedFolder
from lope.training.export.trap import LLAMA_CPP, SGLANG, VLLM, Trap

FEATURES = 3


def default_layers(num_layers: int) -> list[int]:
    """The layers that every engine takes when none are named, for a target of so many layers."""
    return [2, num_layers // 2, num_layers - 3]


def layer_traps(folder: ExportedFolder, num_layers: int | None) -> Iterator[Trap]:
    """Every trap about the layers that are read. num_layers: the target's, where it is known."""
    yield from _places(folder, num_layers)
    yield from _values(folder, num_layers)
    yield from _count(folder)


def _places(folder: ExportedFolder, num_layers: int | None) -> Iterator[Trap]:
    top, nested = folder.top_layers, folder.nested_layers
    default = None if num_layers is None else default_layers(num_layers)
    if top and not nested and folder.form == PLAIN and top != default:
        shifted = [layer - 1 for layer in top]
        says = f"layers {top} stand at the top only: SGLang takes its default; write {shifted} into eagle_config"
        yield Trap("layer ids only at the top", (SGLANG,), says)
    if nested and not top:
        shifted = [layer + 1 for layer in nested]
        says = (
            f"layers {nested} stand in eagle_config only: llama.cpp takes its default, vLLM that or the layers before; "
            f"write {shifted} at the top"
        )
        yield Trap("layer ids only in eagle_config", (VLLM, LLAMA_CPP), says)
    if top and nested and nested != [layer - 1 for layer in top]:
        says = f"layers are {top} at the top and {nested} in eagle_config, where they must be one less each"
        yield Trap("layer ids not shifted", (SGLANG,), says)


def _values(folder: ExportedFolder, num_layers: int | None) -> Iterator[Trap]:
    top = folder.top_layers or [layer + 1 for layer in folder.nested_layers or ()]
    if any(low >= high for low, high in itertools.pairwise(top)):
        says = f"layers {top} do not rise, but features arrive in the order of the target's layers"
        yield Trap("layer ids unsorted", tuple(one for one in folder.readers if one in (VLLM, SGLANG)), says)
    beyond = [layer for layer in top if layer < 0 or (num_layers is not None and layer >= num_layers)]
    if beyond:
        last = "the target's last" if num_layers is None else f"{num_layers - 1}"
        says = f"layer {beyond[0]} is not between 0 and {last}: what follows the last layer is not handed out alike"
        yield Trap("layer ids out of range", folder.readers, says)


def _count(folder: ExportedFolder) -> Iterator[Trap]:
    shape = folder.shapes.get("fc.weight", ())
    width = folder.target_width
    if len(shape) != 2 or shape[1] % width:
        return
    count = shape[1] // width
    if count != FEATURES:
        says = f"fc.weight reads {count} hidden states of the target; llama.cpp knows three only"
        yield Trap("not three features", (LLAMA_CPP,), says)
    named = folder.llama.get("num_aux_hidden_states")
    if named is None:
        named = len(folder.nested_layers or ()) if folder.form == PLAIN else 0
    told = named or FEATURES
    if told != count:
        says = f"fc.weight reads {count} hidden states, the configuration tells of {told}: set num_aux_hidden_states"
        yield Trap("feature count", tuple(one for one in folder.readers if one in (VLLM, SGLANG)), says)
