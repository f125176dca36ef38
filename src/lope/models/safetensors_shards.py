"""The tensors of one or many safetensors files, mapped into memory and read when asked for."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors
from torch import Tensor

from lope.core.errors import ModelError
from lope.models.config_json import read_json

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
_NO_WEIGHTS = (".self_attn.rotary_emb.inv_freq", ".self_attn.rotary_emb.cos_cached", ".self_attn.rotary_emb.sin_cached")


class SafetensorsShards(Mapping[str, Tensor]):
    """Name -> tensor, in the dtype of the file. Frequencies that old checkpoints store beside the weights are left out.

    Raises ModelError for a folder without safetensors, for missing, damaged or truncated files.
    """

    def __init__(self, folder: Path) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._where: dict[str, Path] = {}
        self._open: dict[Path, Any] = {}  # safe_open has no types
        for path in _files(folder):
            self._open[path] = _opened(path)
            for name in self._open[path].keys():  # noqa: SIM118 - not a dict
                if name.endswith(_NO_WEIGHTS):
                    continue
                if name in self._where:
                    raise ModelError(f"{path}: tensor {name} is in {self._where[name].name} too")
                self._where[name] = path
                self.shapes[name] = tuple(self._open[path].get_slice(name).get_shape())

    def __getitem__(self, name: str) -> Tensor:
        tensor: Tensor = self._open[self._where[name]].get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


def _files(folder: Path) -> list[Path]:
    if (folder / _INDEX).exists():
        places = read_json(folder / _INDEX).get("weight_map")
        if not isinstance(places, dict) or not places or not all(isinstance(name, str) for name in places.values()):
            raise ModelError(f"{folder / _INDEX}: has no weight_map")
        names = sorted(set(places.values()))
        outside = [name for name in names if Path(name).name != name]
        if outside:
            raise ModelError(f"{folder / _INDEX}: {outside[0]!r} is not a file beside it")
        return [folder / name for name in names]
    if (folder / _SINGLE).exists():
        return [folder / _SINGLE]
    others = sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".ckpt"))
    if others:
        raise ModelError(
            f"{folder}: {others[0]} is a pickle, which is never loaded (it can run code); convert it to safetensors"
        )
    raise ModelError(f"{folder}: has neither {_SINGLE} nor {_INDEX}")


def _opened(path: Path) -> Any:
    try:
        return safetensors.safe_open(path, framework="pt")
    except FileNotFoundError:
        raise ModelError(f"{path}: is missing") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path}: is not a whole safetensors file: {error}") from None
