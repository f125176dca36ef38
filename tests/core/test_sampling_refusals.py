"""What the pipeline refuses: settings that mean nothing, and processors that break their promise."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from lope.core.errors import SettingError
from lope.core.prompt import Prompt
from lope.core.rows import Rows
from lope.core.sampling import Sampling

LOGITS = Rows(torch.tensor([[0.1, 2.0, -1.0, 0.5]]), None, 4, float("-inf"))


@dataclass(frozen=True)
class Breaking:
    kind: str

    def begin(self, prompt: Prompt) -> "Breaking":
        return self

    def advance(self, token: int) -> "Breaking":
        return self

    def apply(self, values: Tensor, ids: Tensor | None) -> Tensor:
        broken = {
            "short": values[:-1],
            "wide": values[None],
            "nan": values * float("nan"),
            "infinite": values + float("inf"),
            "none left": torch.full_like(values, float("-inf")),
        }
        return broken[self.kind]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["short", "wide", "nan", "infinite", "none left"])
def test_a_processor_that_breaks_its_promise_is_named(kind: str, temperature: float) -> None:
    sampler = Sampling(temperature=temperature, processors=(Breaking(kind),)).begin(Prompt((1,)))
    with pytest.raises(SettingError):
        sampler.filtered(LOGITS, [()])


@pytest.mark.parametrize(
    "settings", [{"temperature": 1e-40}, {"temperature": 5e-324}, {"allowed_tokens": (-1,)}, {"allowed_tokens": ()}]
)
def test_settings_that_mean_nothing(settings: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        Sampling(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [1e-6, 100.0])
def test_the_coldest_and_the_hottest_are_laws(temperature: float) -> None:
    law = Sampling(temperature=temperature).begin(Prompt((1,))).filtered(LOGITS, [()])
    assert float(law.values.sum()) == pytest.approx(1.0)
    assert int(law.values.argmax()) == 1
