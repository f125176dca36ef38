"""A model in one GGUF file."""

from dataclasses import dataclass
from pathlib import Path

from lope.core.errors import ModelError
from lope.models.checkpoint import Checkpoint
from lope.models.gguf_config import decoder_config, permuted_tensors
from lope.models.gguf_header import GgufHeader
from lope.models.gguf_tensors import ROPE_FREQUENCIES, GgufStored, GgufTensors
from lope.models.gguf_tokenizer import gguf_speech


@dataclass(frozen=True)
class GgufFile:
    """A GGUF file of architecture llama, qwen2 or qwen3, of any quantisation that the `gguf` package can undo.

    Mistral is stored as `llama`. Two traps are met here: `llama` interleaves the rows of q and k, and Llama 3 keeps its
    RoPE scaling as the tensor `rope_freqs.weight`.
    """

    path: Path

    def checkpoint(self) -> Checkpoint:
        """Read the header and check it; tensors are dequantised to float32 when asked for. Raises ModelError."""
        try:
            header = GgufHeader.read(self.path)
        except OSError as error:
            raise ModelError(f"{self.path}: cannot be read: {error.strerror}") from None
        tensors = GgufTensors(header, permuted_tensors(header))
        stored = header.tensors.get(ROPE_FREQUENCIES)
        config = decoder_config(header, None if stored is None else tensors.read(stored))
        speech = gguf_speech(header)
        return Checkpoint(str(self.path), config, tensors, tensors.shapes, speech, GgufStored(tensors))
