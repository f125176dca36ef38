"""An EAGLE-3 drafter in the form of the speculators library, for vLLM; llama.cpp's converter reads it too."""

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

FORMAT_VERSION = "0.9.0"  # of the speculators library whose form this is


@dataclass(frozen=True, eq=False)
class SpeculatorsEagle:
    """config.json of an `Eagle3Speculator`, and model.safetensors."""

    drafter: DrafterFolder
    verifier: Verifier

    name = "speculators"

    def config(self) -> dict[str, Any]:
        """The document of config.json."""
        method = {
            "proposal_type": "greedy",
            "speculative_tokens": speculative_tokens(self.drafter),
            "verifier_accept_k": 1,
            "accept_tolerance": 0.0,
        }
        return {
            "architectures": ["Eagle3Speculator"],
            "speculators_model_type": "eagle3",
            "speculators_version": FORMAT_VERSION,
            "draft_vocab_size": self.drafter.about.decoder.vocab_size,
            "target_hidden_size": self.drafter.about.target.hidden_size,
            **norm_fields(),
            **layer_fields(self.drafter),
            "transformer_layer_config": llama_fields(self.drafter),
            "speculators_config": {
                "algorithm": "eagle3",
                "default_proposal_method": "greedy",
                "proposal_methods": [method],
                "verifier": {"name_or_path": self.verifier.name, "architectures": list(self.verifier.architectures)},
            },
        }

    def write(self, path: Path) -> None:
        """Make the folder."""
        path.mkdir()
        (path / "config.json").write_text(json.dumps(self.config(), indent=2) + "\n", encoding="utf-8")
        write_tensors(self.drafter, path)

    def command(self, path: Path) -> str:
        """How to serve it: by itself, except beside a target that is no hub name, which vLLM wants to be told."""
        if not self.verifier.local:
            return shlex.join(["vllm", "serve", str(path)])
        speculative = {
            "method": "eagle3",
            "model": str(path),
            "num_speculative_tokens": speculative_tokens(self.drafter),
        }
        return shlex.join(["vllm", "serve", self.verifier.name, "--speculative-config", json.dumps(speculative)])
