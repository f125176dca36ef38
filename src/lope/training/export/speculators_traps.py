"""The fields that vLLM needs of a `config.json` in the form of the speculators library."""

from collections.abc import Iterator

from lope.training.export.exported_folder import PLAIN, ExportedFolder
from lope.training.export.trap import SPECULATORS, VLLM, Trap

_LAYERS = ("llama", "qwen3")
_BOTH = (VLLM, SPECULATORS)


def speculators_traps(folder: ExportedFolder) -> Iterator[Trap]:
    """Every trap about the fields around the layer; none for a folder in the plain form."""
    if folder.form == PLAIN:
        return
    config = folder.config
    if config.get("speculators_model_type") != "eagle3":
        says = f"speculators_model_type is {config.get('speculators_model_type')!r}, not 'eagle3'"
        yield Trap("speculators_model_type", _BOTH, says)
    if not folder.llama:
        yield Trap("transformer_layer_config missing", _BOTH, "there is no transformer_layer_config: nothing is loaded")
    kind = folder.llama.get("model_type", "llama")
    if kind not in _LAYERS:
        says = f"transformer_layer_config.model_type is {kind!r}; {' and '.join(_LAYERS)} are run"
        yield Trap("layer's model_type", _BOTH, says)
    about = config.get("speculators_config")
    if not isinstance(about, dict):
        yield Trap("speculators_config missing", _BOTH, "there is no speculators_config: vLLM and speculators stop")
        return
    methods = about.get("proposal_methods")
    first = methods[0] if isinstance(methods, list) and methods else None
    if not isinstance(first, dict) or not isinstance(first.get("speculative_tokens"), int):
        says = "speculators_config.proposal_methods[0].speculative_tokens is no number"
        yield Trap("speculative_tokens missing", _BOTH, says)
    verifier = about.get("verifier")
    if not isinstance(verifier, dict) or not isinstance(verifier.get("name_or_path"), str):
        says = "speculators_config.verifier.name_or_path names no model"
        yield Trap("verifier missing", _BOTH, says)
