"""Any causal language model of transformers behind lope's door: the only place that knows transformers."""

from lope.core.errors import ModelError

try:
    from lope.models.huggingface.backend import HuggingFaceBackend
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise ModelError(
        "models named hf:... are run by transformers, which is not installed here: pip install 'lope[hf]'"
    ) from None

__all__ = ["HuggingFaceBackend"]
