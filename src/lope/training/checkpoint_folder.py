"""What a training needs to go on exactly where it was: weights, optimizer state and counters, whole or absent."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lope.core.errors import RunError, UsageError

_NAMES = ("checkpoint-a", "checkpoint-b")


class CheckpointFolder:
    """Two places written in turn, and a pointer to the whole one: a kill while one is written leaves the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pointer = folder / "checkpoint.json"

    def save(self, module: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Write weights, optimizer state and `state`. Raises RunError where the disk is full; the last one stays."""
        name = _NAMES[self._current() == _NAMES[0]]
        place = self._folder / name
        try:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            save_file(_tensors(module, optimizer), place / "state.safetensors")
            partial = self._pointer.with_suffix(".partial")
            partial.write_text(json.dumps({"place": name, "state": dict(state)}), encoding="utf-8")
            partial.replace(self._pointer)
        except (OSError, safetensors.SafetensorError) as error:
            raise RunError(f"{place}: cannot be written ({error}); the checkpoint before it is whole") from None

    def load(self, module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Restore both and return the state; None where there is none. Raises UsageError if it does not fit."""
        name = self._current()
        if name is None:
            return None
        path = self._folder / name / "state.safetensors"
        try:
            tensors = load_file(path)
            _restore(module, optimizer, tensors)
        except (OSError, safetensors.SafetensorError, KeyError, RuntimeError) as error:
            raise UsageError(f"{path}: is not a checkpoint of this training: {error}") from None
        state: dict[str, Any] = json.loads(self._pointer.read_text(encoding="utf-8"))["state"]
        return state

    def _current(self) -> str | None:
        try:
            name: str = json.loads(self._pointer.read_text(encoding="utf-8"))["place"]
        except FileNotFoundError:
            return None
        except (OSError, json.JSONDecodeError, KeyError) as error:
            raise UsageError(f"{self._pointer}: is not a pointer to a checkpoint: {error}") from None
        return name


def _tensors(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {f"weight/{name}": parameter.detach() for name, parameter in module.named_parameters()}
    for name, parameter in module.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{key}/{name}"] = torch.as_tensor(value)
    return tensors


def _restore(module: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(tensors[f"weight/{name}"])
            held = {key.partition("/")[0]: value for key, value in tensors.items() if key.partition("/")[2] == name}
            held.pop("weight")
            if held:
                optimizer.state[parameter] = dict(held)
