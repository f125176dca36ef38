"""How a drafter draws where it does not draw as the request does."""

import dataclasses
from dataclasses import dataclass

from lope.core import checks
from lope.core.sampling import Sampling


@dataclass(frozen=True)
class OwnSampling:
    """Settings that replace the request's; None keeps it. Penalties, masks and processors are always the request's."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None:
            checks.between("temperature", self.temperature, 0.0, 100.0)
        if self.top_k is not None:
            checks.at_least("top_k", self.top_k, 1)
        if self.top_p is not None:
            checks.between("top_p", self.top_p, 0.0, 1.0)

    def apply(self, request: Sampling) -> Sampling:
        """The drafter's sampling; a greedy request is drafted greedily."""
        if request.temperature == 0.0:
            return request
        return dataclasses.replace(
            request,
            temperature=request.temperature if self.temperature is None else self.temperature,
            top_k=request.top_k if self.top_k is None else self.top_k,
            top_p=request.top_p if self.top_p is None else self.top_p,
        )

    def greedy(self, request_greedy: bool) -> bool:
        """Whether the drafter names its best tokens, for a request at temperature 0 or not."""
        return request_greedy or self.temperature == 0.0


AS_THE_REQUEST = OwnSampling()
