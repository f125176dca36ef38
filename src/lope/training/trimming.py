"""VocabTrim (Goel et al. 2025, arXiv:2506.22694): a drafter folder whose head keeps only the tokens that are said.

Rows of the head are taken out of the file as they are stored, with their scales: what is kept is kept bit for bit, so
the trimmed law is the drafter's own, given that the token is one of those kept.
"""

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from lope.core.errors import RunError, SettingError, UsageError
from lope.models.drafter_folder import ABOUT, TENSORS, DrafterAbout, DrafterFolder
from lope.training.drafter_size import num_parameters
from lope.training.model_card import CARD, ModelCard
from lope.training.token_counts import TokenCounts
from lope.training.vocabulary import coverage, kept_tokens

_CUT = ("kept", "lm_head.weight", "lm_head.weight.scale")


@dataclasses.dataclass(frozen=True, eq=False)
class Trimming:
    """A drafter on its way to fewer tokens. always: tokens that stay whatever their count, where it has them.

    source: what was counted, for the folder to tell; `counts` "target", "draft" or "text", and what it was counted in.
    """

    folder: DrafterFolder
    vocab: int
    counts: TokenCounts
    always: frozenset[int]
    source: Mapping[str, Any]

    def kept(self) -> Tensor:
        """int64 [vocab] ascending: the most said ones of the drafter's own tokens. Raises UsageError."""
        before = self.folder.tensors["kept"]
        if not 1 <= self.vocab <= len(before):
            raise SettingError(f"{self.folder.path}: keeps {len(before)} tokens: it cannot be trimmed to {self.vocab}")
        place = {token: number for number, token in enumerate(before.tolist())}
        always = frozenset(place[token] for token in self.always if token in place)
        return before[kept_tokens(self.counts.counts[before], self.vocab, always)]

    def write(self, out: Path) -> dict[str, Any]:
        """Write the trimmed folder, whole or not at all; what the folder says of its trimming.

        Raises UsageError where `out` holds anything, RunError where it cannot be written.
        """
        kept = self.kept()
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out}: is not an empty folder: trim into a new one")
        trimmed = self._figures(kept)
        about = self._about(trimmed)
        partial = out.with_name(f".{out.name}.partial")
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            (partial / TENSORS).write_bytes(save(self._stored(kept)))
            (partial / ABOUT).write_text(json.dumps(about.document(), indent=1, ensure_ascii=False) + "\n", "utf-8")
            (partial / CARD).write_text(ModelCard(out.name, about.document()).text(), "utf-8")
            if out.exists():
                out.rmdir()
            partial.rename(out)
        except OSError as error:
            raise RunError(f"{out}: the drafter cannot be written: {error.strerror or error}") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return trimmed

    def _stored(self, kept: Tensor) -> dict[str, Tensor]:
        """The tensors of the file, quantised as they are, without the rows that go."""
        rows = torch.isin(self.folder.tensors["kept"], kept)
        with safe_open(self.folder.path / TENSORS, framework="pt") as file:
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        return {name: tensor[rows] if name in _CUT else tensor for name, tensor in stored.items()}

    def _figures(self, kept: Tensor) -> dict[str, Any]:
        before = self.folder.tensors["kept"]
        figures = {
            **self.source,
            "vocab": len(kept),
            "vocab_before": len(before),
            "coverage": coverage(self.counts.counts, kept),
            "coverage_before": coverage(self.counts.counts, before),
            "held_out_coverage": None,
            "held_out_coverage_before": None,
        }
        if bool(self.counts.held_out.sum() > 0):
            figures["held_out_coverage"] = coverage(self.counts.held_out, kept)
            figures["held_out_coverage_before"] = coverage(self.counts.held_out, before)
        return figures

    def _about(self, trimmed: Mapping[str, Any]) -> DrafterAbout:
        """What was measured before is told as such; the operating point is to be found anew."""
        about = self.folder.about
        decoder = dataclasses.replace(about.decoder, vocab_size=self.vocab)
        cut = dataclasses.replace(about, decoder=decoder)
        untrimmed = about.figures.get("untrimmed", about.figures)
        return dataclasses.replace(
            cut,
            recipe={**about.recipe, "trim": dict(trimmed)},
            figures={"parameters": num_parameters(cut), "untrimmed": dict(untrimmed)},
            operating_point=None,
        )
