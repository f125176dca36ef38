"""What a training needs to go on exactly where it was: weights, optimizer state and counters, whole or absent."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lope.core import json_reader
from lope.core.errors import RunError, UsageError

POINTER = "checkpoint.json"
_NAMES = ("checkpoint-a", "checkpoint-b")


class CheckpointFolder:
    """Two places written in turn, and a pointer to the whole one: a kill while one is written leaves the other.

    about: what is trained, kept beside each checkpoint, for a later run to compare with what it is asked for.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any] | None = None) -> None:
        self._folder = folder
        self._pointer = folder / POINTER
        self._about = about

    def save(self, module: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Write weights, optimizer state and `state`. Raises RunError where the disk is full; the last one stays."""
        name = _NAMES[self._current() == _NAMES[0]]
        place = self._folder / name
        try:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            save_file(_tensors(module, optimizer), place / "state.safetensors")
            _settle(place / "state.safetensors")
            partial = self._pointer.with_suffix(".partial")
            row = {"place": name, "state": dict(state), "about": self._about and dict(self._about)}
            partial.write_text(json.dumps(row), encoding="utf-8")
            _settle(partial)
            partial.replace(self._pointer)
        except (OSError, safetensors.SafetensorError) as error:
            kept = "; the checkpoint before it is whole" if self.found else ""
            raise RunError(f"{place}: cannot be written ({error}){kept}") from None

    def load(self, module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Restore both and return the state; None where there is none. Raises UsageError if it does not fit."""
        name = self._current()
        if name is None:
            return None
        path = self._folder / name / "state.safetensors"
        try:
            tensors = load_file(path)
            _restore(module, optimizer, tensors)
        except (OSError, safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise UsageError(f"{path}: is not a checkpoint of this training: {error}") from None
        return self._row()["state"]  # type: ignore[no-any-return]

    @property
    def found(self) -> bool:
        """Whether there is one."""
        return self._current() is not None

    def about(self) -> dict[str, Any] | None:
        """What the checkpoint there is of; None where there is none, or where it does not say."""
        return self._row().get("about")

    def refuse(self, reason: object) -> UsageError:
        """What there is cannot be gone on from."""
        return UsageError(f"{self._pointer}: is not a pointer to a checkpoint: {reason}")

    def _current(self) -> str | None:
        return self._row().get("place")

    def _row(self) -> dict[str, Any]:
        """The pointer; empty where there is none."""
        try:
            row = json_reader.parsed(self._pointer.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self.refuse(error) from None
        if not isinstance(row, dict) or row.get("place") not in _NAMES or not isinstance(row.get("state"), dict):
            raise self.refuse("it names no place and no state")
        if not isinstance(row.get("about"), dict | None):
            raise self.refuse("it does not say what of")
        return row


def _settle(path: Path) -> None:
    """On the disk before a pointer names it: after a power cut too."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _tensors(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {f"weight/{name}": parameter.detach() for name, parameter in module.named_parameters()}
    for name, parameter in module.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{key}/{name}"] = torch.as_tensor(value)
    return tensors


def _restore(module: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            weight = tensors[f"weight/{name}"]
            held = {key.partition("/")[0]: value for key, value in tensors.items() if key.partition("/")[2] == name}
            held.pop("weight")
            for tensor in (weight, *(value for value in held.values() if value.dim())):
                if tensor.shape != parameter.shape:
                    raise ValueError(f"{name} is {list(tensor.shape)} there and {list(parameter.shape)} here")
            parameter.copy_(weight)
            if held:
                # a count of steps stays where Adam keeps it, on the CPU
                optimizer.state[parameter] = {
                    key: value.to(parameter.device) if value.dim() else value for key, value in held.items()
                }
