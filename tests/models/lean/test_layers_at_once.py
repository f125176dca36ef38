"""Layers that run in one call give what they give one by one, and say on the way what was asked for."""

import pytest
import torch
from tests.models.lean.random_decoder import backend, words
from torch import Tensor

from lope.models.lean.backend import LeanBackend
from lope.models.lean.decoder import Decoder
from lope.models.lean.layer import Segment
from lope.models.lean.layout import Layout

LAYERS, ROWS = 5, 6


@pytest.fixture(params=["native", "torch"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Decoder:
    monkeypatch.setenv("LOPE_KERNELS", request.param)
    made: LeanBackend = backend(num_layers=LAYERS)
    return made.target(True)._decoder


def _segment(decoder: Decoder) -> Segment:
    return Segment(decoder.new_cache(), words(ROWS), Layout(0, ROWS))


@torch.inference_mode()
def _one_by_one(decoder: Decoder) -> list[Tensor]:
    """What rows look like before each layer, and after the last."""
    x, rows = decoder.enter([_segment(decoder)])
    seen = [x]
    for number, layer in enumerate(decoder._layers):
        seen.append(rows.through(number, [layer], seen[-1]))
    return seen


@torch.inference_mode()
@pytest.mark.parametrize("asked", [(), (0,), (2,), (1, 3), (0, 4, LAYERS), tuple(range(LAYERS + 1))])
def test_layers_at_once_are_layers_one_by_one(decoder: Decoder, asked: tuple[int, ...]) -> None:
    wanted = _one_by_one(decoder)
    x, features = decoder.forward([_segment(decoder)], asked)
    assert torch.equal(x, wanted[-1])
    assert set(features) == set(asked)
    for number in asked:
        assert torch.equal(features[number], wanted[number] if number < LAYERS else decoder.normed(wanted[-1]))


@torch.inference_mode()
def test_only_the_first_layer_reads_what_is_given(decoder: Decoder) -> None:
    read = torch.randn(ROWS, decoder.config.hidden_size)
    x, rows = decoder.enter([_segment(decoder)])
    wanted = rows.through(0, decoder._layers[:1], x, read)
    assert not torch.equal(wanted, rows.through(0, decoder._layers[:1], x)), "what is read shows"
    wanted = rows.through(1, decoder._layers[1:], wanted)
    assert torch.equal(rows.through(0, decoder._layers, x, read), wanted)
