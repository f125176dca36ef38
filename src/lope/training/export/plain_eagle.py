"""An EAGLE-3 drafter in the plain Hugging Face form, for SGLang; vLLM and llama.cpp's converter read it too."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.models.drafter_folder import DrafterFolder
from lope.training.export.eagle_parts import (
    layer_fields,
    llama_fields,
    norm_fields,
    speculative_tokens,
    write_tensors,
)
from lope.training.export.verifier import Verifier


@dataclass(frozen=True, eq=False)
class PlainEagle:
    """config.json of a `LlamaForCausalLMEagle3`, and model.safetensors."""

    drafter: DrafterFolder
    verifier: Verifier

    name = "plain"

    def config(self) -> dict[str, Any]:
        """The document of config.json."""
        return {
            "architectures": ["LlamaForCausalLMEagle3"],
            **llama_fields(self.drafter),
            "draft_vocab_size": self.drafter.about.decoder.vocab_size,
            "target_hidden_size": self.drafter.about.target.hidden_size,
            **norm_fields(),
            **layer_fields(self.drafter),
        }

    def write(self, path: Path) -> None:
        """Make the folder."""
        path.mkdir()
        (path / "config.json").write_text(json.dumps(self.config(), indent=2) + "\n", encoding="utf-8")
        write_tensors(self.drafter, path)

    def command(self, path: Path) -> str:
        """How to serve it."""
        tokens = speculative_tokens(self.drafter)
        return shlex.join(
            [
                *("python", "-m", "sglang.launch_server", "--model-path", self.verifier.name),
                *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(path)),
                *("--speculative-num-steps", str(tokens), "--speculative-eagle-topk", "1"),
                *("--speculative-num-draft-tokens", str(tokens + 1)),
            ]
        )
