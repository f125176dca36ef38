"""Several processes that train together, joined by accelerate: by NCCL on GPUs, by gloo on CPUs."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import torch
import torch.distributed.nn.functional  # imported later, its defaults would keep the group, and with it threads
from torch import Tensor, nn

from lope.core.errors import LopeError, RunError, UsageError
from lope.training.team import raised_in_all

try:
    from accelerate import Accelerator
    from accelerate.utils import broadcast_object_list, gather_object
except ModuleNotFoundError as error:
    if error.name != "accelerate":
        raise
    raise UsageError(
        "several processes train together by accelerate, which is not installed here: pip install 'lope[devices]'"
    ) from None

T = TypeVar("T")


class Accelerated:
    """One of several processes that a launcher has begun; made once in each."""

    def __init__(self) -> None:
        """Meet the others. Raises UsageError where they cannot be joined on this machine's device."""
        try:
            self._accelerator = Accelerator(cpu=not torch.accelerator.is_available())
        except ValueError as error:  # a variable that launchers set is missing
            raise UsageError(f"the processes cannot be joined: {error}") from None
        self.rank: int = self._accelerator.process_index
        self.size: int = self._accelerator.num_processes
        if self.size == 1:
            raise UsageError(
                f"accelerate does not join processes on {self._accelerator.device}: with ACCELERATE_USE_CPU=true in "
                "the environment they train on the CPU"
            )

    def device(self, asked: str) -> str:
        """The process's own. Raises UsageError where another than the default is asked for."""
        if asked != "cpu":
            raise UsageError(f"each of {self.size} processes has a device of its own: leave out --device {asked}")
        return str(self._accelerator.device)

    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """All gradients in one message: many small ones would each wait for the slowest process."""
        learned = [parameter for parameter in parameters if parameter.requires_grad]
        own = [torch.zeros_like(p) if p.grad is None else p.grad for p in learned]
        with _lost():
            mean = self._accelerator.reduce(torch.cat([gradient.flatten() for gradient in own]), "mean")
        for parameter, gradient in zip(learned, mean.split([p.numel() for p in learned]), strict=True):
            parameter.grad = gradient.view_as(parameter)

    def total(self, tensor: Tensor) -> Tensor:
        """On the tensor's own device; NCCL adds up only what is on the process's."""
        with _lost():
            found: Tensor = self._accelerator.reduce(tensor.to(self._accelerator.device), "sum")
        return found.to(tensor.device)

    def first(self, value: T) -> T:
        """Any value that can be pickled."""
        with _lost():
            found: T = broadcast_object_list([value])[0]
        return found

    def together(self) -> AbstractContextManager[None]:
        """The first process's error, where several have one."""
        return raised_in_all(self._gather)

    def _gather(self, own: LopeError | None) -> list[LopeError | None]:
        with _lost():
            found: list[LopeError | None] = gather_object([own])
        return found

    def leave(self) -> None:
        """Take leave of the others; ends gloo's threads, which abort a process where they outlive its interpreter."""
        self._accelerator.end_training()


@contextmanager
def _lost() -> Iterator[None]:
    """What torch.distributed says where another process has ended becomes a RunError."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"another process of this training has ended; the last checkpoint is whole ({reason})") from None
