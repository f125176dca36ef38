"""Where the drafter is normalised, and how many layers it has: what some engines do not know, or take otherwise."""

from collections.abc import Iterator

from lope.training.export.exported_folder import PLAIN, ExportedFolder
from lope.training.export.trap import LLAMA_CPP, SGLANG, VLLM, Trap


def norm_traps(folder: ExportedFolder) -> Iterator[Trap]:
    """Every trap about norms and the number of layers."""
    yield from _before_residual(folder)
    normed = any(name.startswith(("fc_norm.", "aux_norm_")) for name in folder.shapes)
    if normed or folder.config.get("fc_norm") or folder.config.get("use_aux_norm"):
        says = "every feature is normalised before fc (fc_norm), which llama.cpp does not do"
        yield Trap("fc_norm", (LLAMA_CPP,), says)
    if folder.config.get("norm_output"):
        says = "the normalised state is fed back (norm_output), llama.cpp feeds back the other"
        yield Trap("norm_output", (LLAMA_CPP,), says)
    layers = folder.size("num_hidden_layers")
    if layers != 1:
        says = f"the drafter has {layers} layers, llama.cpp runs one only"
        yield Trap("more than one layer", (LLAMA_CPP,), says)


def _before_residual(folder: ExportedFolder) -> Iterator[Trap]:
    value = folder.config.get("norm_before_residual")
    if value is None and folder.form == PLAIN:
        says = "every engine takes false; a drafter trained otherwise is misread: write it"
        yield Trap("norm_before_residual missing", folder.readers, says)
    elif value is None:
        says = "vLLM takes true, llama.cpp and the speculators library false: write it"
        yield Trap("norm_before_residual missing", (VLLM,), says)
    elif value:
        says = "norm_before_residual is true, SGLang always takes false"
        yield Trap("norm_before_residual true", (SGLANG,), says)
