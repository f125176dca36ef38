"""A model in a Hugging Face folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.core.errors import ModelError
from lope.models.chat_template import ChatTemplate
from lope.models.checkpoint import Checkpoint, Speech
from lope.models.config_json import decoder_config, read_json
from lope.models.safetensors_shards import SafetensorsShards
from lope.models.tokenizer import Tokenizer

_HEAD = "lm_head.weight"


@dataclass(frozen=True)
class Folder:
    """`config.json`, safetensors in one or many shards, `tokenizer.json`; templates and stop tokens where they are."""

    path: Path

    def checkpoint(self) -> Checkpoint:
        """Read everything but the tensors, which are mapped when asked for. Raises ModelError."""
        if not (self.path / "config.json").is_file():
            raise ModelError(f"{self.path}: is not a model folder: it has no config.json")
        config = decoder_config(self.path / "config.json")
        tensors = SafetensorsShards(self.path)
        # a tied head that was written out all the same is the embedding again
        shapes = {name: shape for name, shape in tensors.shapes.items() if not (config.tied and name == _HEAD)}
        return Checkpoint(str(self.path), config, tensors, shapes, self.speech())

    def speech(self) -> Speech:
        """Tokenizer, chat template and stop tokens alone. Raises ModelError."""
        if not (self.path / "tokenizer.json").is_file():
            raise ModelError(f"{self.path}: has no tokenizer.json (other tokenizer files cannot be read)")
        settings = self._optional("tokenizer_config.json")
        names = _token_names(settings)
        tokenizer = Tokenizer.from_file(
            self.path / "tokenizer.json", bos=names.get("bos_token"), eos=names.get("eos_token")
        )
        source = self._template(settings)
        template = None if source is None else ChatTemplate(source, names)
        return Speech(tokenizer, template, self._stop_tokens(tokenizer), names)

    def _template(self, settings: Mapping[str, Any]) -> str | None:
        written = self.path / "chat_template.jinja"
        if written.is_file():
            return written.read_text(encoding="utf-8")
        found = settings.get("chat_template") or self._optional("chat_template.json").get("chat_template")
        if isinstance(found, list):  # several templates, each with a name
            found = {item.get("name"): item.get("template") for item in found if isinstance(item, dict)}.get("default")
        return found if isinstance(found, str) else None

    def _stop_tokens(self, tokenizer: Tokenizer) -> frozenset[int]:
        """What generation_config.json says, else config.json; and the tokenizer's own end token."""
        named = self._optional("generation_config.json").get("eos_token_id")
        if named is None:
            named = self._optional("config.json").get("eos_token_id")
        ids = named if isinstance(named, list) else [] if named is None else [named]
        if not all(isinstance(token, int) for token in ids):
            raise ModelError(f"{self.path}: eos_token_id must be an id or a list of ids, not {named!r}")
        own = [] if tokenizer.eos is None else [tokenizer.eos]
        return frozenset([*ids, *own])

    def _optional(self, name: str) -> dict[str, Any]:
        return read_json(self.path / name) if (self.path / name).is_file() else {}


def _token_names(settings: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token`, `eos_token`, ...: text, or an object that holds it."""
    names = {}
    for name, value in settings.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            names[name] = text
    return names
