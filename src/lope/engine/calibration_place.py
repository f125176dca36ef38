"""What a calibration holds for: model, numbers, processor, threads. Anything else is measured anew."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

import torch

from lope.models.loaded import LoadedModel
from lope.models.processor import processor


@dataclass(frozen=True)
class CalibrationPlace:
    """Two runs with equal places have equal costs. `model` tells architectures apart, not weights: these cost alike."""

    model: str
    dtype: str
    device: str
    threads: int
    exact: bool
    processor: str
    torch: str
    kernels: str

    @classmethod
    def of(cls, model: LoadedModel, exact: bool) -> "CalibrationPlace":
        """The place of this process."""
        backend = model.backend
        kind = type(backend).__name__.removesuffix("Backend")
        sizes = f"{backend.num_parameters} parameters, {backend.vocab_size} tokens, context {backend.context}"
        name = torch.cuda.get_device_name(backend.device) if backend.device.startswith("cuda") else processor()
        threads = torch.get_num_threads()
        about = f"{kind}, {sizes}", backend.dtype, backend.device
        kernels = f"{backend.kernels} {backend.kernels_version}".strip()
        return cls(*about, threads, exact, name, str(torch.__version__), kernels)

    @property
    def fingerprint(self) -> str:
        """A name for its file."""
        content = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "CalibrationPlace":
        """The place written in a file. Raises KeyError or TypeError where it is none."""
        return cls(**{field.name: document[field.name] for field in dataclasses.fields(cls)})

    def differences(self, other: "CalibrationPlace") -> list[str]:
        """In words, what `other` has that this place has not."""
        return [
            f"{field.name} {getattr(other, field.name)} (here {getattr(self, field.name)})"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]
