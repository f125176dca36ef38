"""A drafter on disk: `drafter.json` says what it is, `drafter.safetensors` holds it, `README.md` is its model card.

Weights [out, in] lie in the storage that `drafter.json` names; `int8` is symmetric, one step for each output row
(`<name>.scale`, float32 [out, 1]). Norms are float32, `kept` is int64.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save
from torch import Tensor

from lope.core.errors import ModelError, RunError
from lope.models.coded_weight import CodedWeight, decoded
from lope.models.config_json import read_json
from lope.models.drafter_about import DrafterAbout, DrafterTarget, drafter_decoder, shapes

__all__ = ["DrafterAbout", "DrafterFolder", "DrafterTarget", "drafter_decoder", "shapes"]

ABOUT, TENSORS = "drafter.json", "drafter.safetensors"
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}
_NAMES = {"F32": torch.float32, "BF16": torch.bfloat16, "I8": torch.int8, "I64": torch.int64}
_STEPS = 127


@dataclass(frozen=True, eq=False)
class DrafterFolder:
    """A drafter that was read.

    tensors: as `shapes(about)` names them, float32 (dequantised); `kept` int64.
    coded:   those of them that lie there in eight bits, as they lie.
    """

    path: Path
    about: DrafterAbout
    tensors: Mapping[str, Tensor]
    coded: Mapping[str, CodedWeight] = field(default_factory=dict)

    @property
    def stored(self) -> Mapping[str, Tensor | CodedWeight]:
        """Every tensor, in its codes where it has such."""
        return {**self.tensors, **self.coded}

    @classmethod
    def read(cls, path: Path | str) -> "DrafterFolder":
        """Read a folder. Raises ModelError: one line that says which file, and which tensor of it, is wrong."""
        path = Path(path).expanduser()
        try:
            found = (path / ABOUT).is_file()
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
        if not found:
            raise ModelError(f"{path}: is not a drafter folder: it has no {ABOUT}")
        document = read_json(path / ABOUT)
        with _opened(path / TENSORS) as file:
            about = DrafterAbout.from_document(document, _kept(file, path / TENSORS), str(path / ABOUT))
            _check(file, about, path / TENSORS)
            stored = {name: _read(file, name, path / TENSORS) for name in shapes(about)}
        tensors = {name: decoded(values) for name, values in stored.items()}
        _check_kept(tensors["kept"], about, path / TENSORS)
        coded = {name: values for name, values in stored.items() if isinstance(values, CodedWeight)}
        return cls(path, about, tensors, coded)

    @staticmethod
    def write(path: Path | str, about: DrafterAbout, tensors: Mapping[str, Tensor]) -> None:
        """Write both files, weights in `about.storage`; whatever else the folder holds stays.

        Each file is renamed into its place when whole, `drafter.json` last. Raises ModelError for tensors that are not
        those of `shapes(about)`, RunError where the disk is full or the folder cannot be written.
        """
        path = Path(path).expanduser()
        about.check(str(path))
        for name, shape in shapes(about).items():
            if name not in tensors or tuple(tensors[name].shape) != shape:
                found = list(tensors[name].shape) if name in tensors else "missing"
                raise ModelError(f"{path}: tensor {name} is {found}, not {list(shape)}")
        _check_kept(tensors["kept"], about, path)
        stored: dict[str, Tensor] = {}
        for name in shapes(about):
            stored |= _stored(name, tensors[name].detach().cpu(), about.storage, path)
        document = json.dumps(about.document(), indent=1, ensure_ascii=False) + "\n"
        partial = path / f".partial-{os.getpid()}"
        try:
            partial.mkdir(parents=True, exist_ok=True)
            for name, content in ((TENSORS, save(stored)), (ABOUT, document.encode())):
                _write(partial / name, content)
            for name in (TENSORS, ABOUT):
                (partial / name).replace(path / name)
        except OSError as error:
            raise RunError(f"{path}: the drafter cannot be written: {error.strerror or error}") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _opened(path: Path) -> Any:
    try:
        return safetensors.safe_open(path, framework="pt")
    except FileNotFoundError:
        raise ModelError(f"{path}: is missing") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path}: is not a whole safetensors file: {error}") from None


def _kept(file: Any, path: Path) -> int:
    """K, from the shape of `kept`."""
    if "kept" not in file.keys():  # noqa: SIM118 - not a dict
        raise ModelError(f"{path}: tensor kept is missing")
    shape = file.get_slice("kept").get_shape()
    if len(shape) != 1:
        raise ModelError(f"{path}: tensor kept has shape {list(shape)}, not [K]")
    return int(shape[0])


def _check(file: Any, about: DrafterAbout, path: Path) -> None:
    """Compare names, shapes and dtypes with what must be, before anything is read."""
    expected: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
    for name, shape in shapes(about).items():
        dtype = torch.int64 if name == "kept" else _DTYPES[about.storage] if len(shape) == 2 else torch.float32
        expected[name] = shape, dtype
        if dtype == torch.int8:
            expected[f"{name}.scale"] = (shape[0], 1), torch.float32
    held = set(file.keys())
    for name, (shape, dtype) in expected.items():
        if name not in held:
            raise ModelError(f"{path}: tensor {name} is missing")
        part = file.get_slice(name)
        if tuple(part.get_shape()) != shape:
            raise ModelError(f"{path}: tensor {name} has shape {list(part.get_shape())}, not {list(shape)}")
        if _NAMES.get(part.get_dtype()) != dtype:
            raise ModelError(f"{path}: tensor {name} is stored as {part.get_dtype()}, not as {dtype}")
    for name in sorted(held - expected.keys()):
        raise ModelError(f"{path}: tensor {name} does not belong to this {about.kind} drafter")


def _read(file: Any, name: str, path: Path) -> Tensor | CodedWeight:
    tensor: Tensor = file.get_tensor(name)
    if name == "kept":
        return tensor
    coded = CodedWeight(tensor, file.get_tensor(f"{name}.scale")) if tensor.dtype == torch.int8 else None
    if not bool((tensor if coded is None else coded.scales).isfinite().all()):
        raise ModelError(f"{path}: tensor {name} holds numbers that are not finite")
    return tensor.float() if coded is None else coded


def _check_kept(kept: Tensor, about: DrafterAbout, where: Path) -> None:
    if kept.dtype != torch.int64:
        raise ModelError(f"{where}: tensor kept holds {kept.dtype}, not token ids (int64)")
    if not bool((kept[1:] > kept[:-1]).all()):
        raise ModelError(f"{where}: tensor kept must rise: every token id once, in order")
    if int(kept[0]) < 0 or int(kept[-1]) >= about.target.vocab_size:
        raise ModelError(
            f"{where}: tensor kept names token {int(kept[0]) if int(kept[0]) < 0 else int(kept[-1])}, "
            f"but the target has {about.target.vocab_size}"
        )


def _stored(name: str, tensor: Tensor, storage: str, where: Path) -> dict[str, Tensor]:
    """What lies on disk for one tensor."""
    if name == "kept":
        return {name: tensor.contiguous()}
    values = tensor.float()
    if not bool(values.isfinite().all()):
        raise ModelError(f"{where}: tensor {name} holds numbers that are not finite")
    if values.dim() == 1 or storage != "int8":
        dtype = _DTYPES[storage] if values.dim() == 2 else torch.float32
        return {name: values.to(dtype, copy=True).contiguous()}
    scale = values.abs().amax(dim=1, keepdim=True) / _STEPS
    steps = (values / torch.where(scale > 0, scale, 1.0)).round().clamp(-_STEPS, _STEPS)
    return {name: steps.to(torch.int8), f"{name}.scale": scale}


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
