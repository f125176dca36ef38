"""A weight as a checkpoint stores it in few bits: integers, and what makes numbers of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CodedWeight:
    """scale · code + minimum.

    codes:  [rows, columns]; uint8 holds 4 bits (0 to 15), int8 all of its 8.
    scales: [rows, groups], float16 or float32: one for each group of consecutive columns; or float32 [rows, 1].
    minima: as `scales`; None: zero.
    """

    codes: Tensor
    scales: Tensor
    minima: Tensor | None = None

    @property
    def by_row(self) -> bool:
        """Whether whole rows share a scale, and that is all."""
        whole = self.scales.shape[1] == 1 and self.scales.dtype == torch.float32 and self.minima is None
        return whole and self.codes.dtype == torch.int8

    @property
    def group(self) -> int:
        """How many columns share a scale."""
        return self.codes.shape[1] // self.scales.shape[1]

    @property
    def shape(self) -> torch.Size:
        """[rows, columns]."""
        return self.codes.shape

    def reordered(self, order: Callable[[Tensor], Tensor]) -> "CodedWeight":
        """With its rows in another order; `order` takes and returns [rows, any]."""
        return CodedWeight(order(self.codes), order(self.scales), None if self.minima is None else order(self.minima))

    def decoded(self) -> Tensor:
        """The float32 numbers [rows, columns]."""
        rows, columns = self.codes.shape
        groups = self.codes.float().view(rows, self.scales.shape[1], -1)
        numbers = groups * self.scales.float()[:, :, None]
        if self.minima is not None:
            numbers += self.minima.float()[:, :, None]
        return numbers.view(rows, columns)


def stacked(weights: Sequence[Tensor | CodedWeight]) -> Tensor | CodedWeight:
    """Weights of the same width under one another: coded where all are coded alike, else as numbers."""
    if len(weights) == 1:
        return weights[0]
    coded = [weight for weight in weights if isinstance(weight, CodedWeight)]
    kinds = {
        (weight.codes.dtype, weight.scales.dtype, weight.scales.shape[1], weight.minima is None) for weight in coded
    }
    if len(coded) == len(weights) and len(kinds) == 1:
        minima = [weight.minima for weight in coded if weight.minima is not None]
        return CodedWeight(
            torch.cat([weight.codes for weight in coded]),
            torch.cat([weight.scales for weight in coded]),
            torch.cat(minima) if minima else None,
        )
    return torch.cat([decoded(weight) for weight in weights])


def decoded(weight: Tensor | CodedWeight) -> Tensor:
    """The numbers of a weight, however it is stored."""
    return weight.decoded() if isinstance(weight, CodedWeight) else weight
