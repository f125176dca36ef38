"""A stand-alone drafter as an ordinary Llama, which every engine takes as a draft model.

Lope's drafter stores no embedding: it reads the target's through a projection. Here the product is written out, so
that the drafter stands by itself: embed_tokens = E_target · projectionᵀ [V, d].
"""

import dataclasses
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lope.core.errors import UsageError
from lope.models.checkpoint import Checkpoint
from lope.models.drafter_folder import DrafterFolder
from lope.models.folder_writer import write_folder
from lope.models.loading import open_checkpoint
from lope.training.export.eagle_parts import SPECULATIVE_TOKENS
from lope.training.export.verifier import Verifier

_EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True, eq=False)
class LlamaModel:
    """A complete folder of a `LlamaForCausalLM`: config, weights, and the target's tokenizer and chat template.

    engine: whose command to print.
    """

    drafter: DrafterFolder
    verifier: Verifier
    target: Checkpoint
    engine: str

    name = "llama"

    @classmethod
    def of(cls, drafter: DrafterFolder, verifier: Verifier, target: str, engine: str) -> "LlamaModel":
        """Open the target by name. Raises UsageError for a trimmed head, or a target that is another model."""
        kept, total = drafter.about.decoder.vocab_size, drafter.about.target.vocab_size
        if kept < total:
            raise UsageError(
                f"{drafter.path}: its head keeps {kept} of the target's {total} tokens, and an ordinary Llama cannot "
                "say so: a row of zeros gives a removed token logit 0, not minus infinity, and the head has no bias; "
                f"train one with --vocab {total} to export it"
            )
        checkpoint = open_checkpoint(target)
        _compare(checkpoint, drafter)
        return cls(drafter, verifier, checkpoint, engine)

    def checkpoint(self) -> Checkpoint:
        """The drafter as a model."""
        decoder = dataclasses.replace(self.drafter.about.decoder, architecture="LlamaForCausalLM")
        tensors: dict[str, Tensor] = {
            name if name == "lm_head.weight" else f"model.{name}": tensor
            for name, tensor in self.drafter.tensors.items()
            if name not in ("kept", "embed_projection.weight")
        }
        projection = self.drafter.tensors["embed_projection.weight"]
        tensors[_EMBEDDING] = self.target.tensors[_EMBEDDING].float() @ projection.T
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        return Checkpoint(str(self.drafter.path), decoder, tensors, shapes, self.target.speech)

    def write(self, path: Path) -> None:
        """Make the folder."""
        write_folder(path, self.checkpoint(), torch.float32)

    def command(self, path: Path) -> str:
        """How to use it."""
        if self.engine == "transformers":
            return f"model.generate(..., assistant_model=AutoModelForCausalLM.from_pretrained({str(path)!r}))"
        if self.engine == "sglang":
            return shlex.join(
                [
                    *("python", "-m", "sglang.launch_server", "--model-path", self.verifier.name),
                    *("--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", str(path)),
                    *("--speculative-num-steps", str(SPECULATIVE_TOKENS), "--speculative-eagle-topk", "1"),
                    *("--speculative-num-draft-tokens", str(SPECULATIVE_TOKENS + 1)),
                ]
            )
        speculative = {"method": "draft_model", "model": str(path), "num_speculative_tokens": SPECULATIVE_TOKENS}
        return shlex.join(["vllm", "serve", self.verifier.name, "--speculative-config", json.dumps(speculative)])


def _compare(target: Checkpoint, drafter: DrafterFolder) -> None:
    about = drafter.about
    if target.speech.tokenizer.fingerprint != about.target.tokenizer:
        raise UsageError(
            f"{target.where}: has another tokenizer than {about.target.name}, which the drafter was made for"
        )
    shape, wanted = list(target.shapes[_EMBEDDING]), [about.target.vocab_size, about.target.hidden_size]
    if shape != wanted:
        raise UsageError(f"{target.where}: its embedding is {shape}, the drafter reads one of {wanted}")
