"""The losses against their definitions, and what TVD++ is and is not."""

import pytest
import torch
from torch import Tensor

from lope.training.losses import LOSSES
from lope.training.losses.law import DraftLaw, Loss, TargetLaw


def _laws(seed: int, places: int = 5, size: int = 7) -> tuple[Tensor, Tensor]:
    """(draft logits, target probabilities over all tokens), float64."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(places, size, generator=generator, dtype=torch.float64)
    target = torch.softmax(2 * torch.randn(places, size, generator=generator, dtype=torch.float64), dim=-1)
    return logits, target


def _draft(logits: Tensor, target: Tensor) -> DraftLaw:
    ids = torch.arange(target.shape[1]).expand_as(target)
    return DraftLaw(torch.log_softmax(logits, dim=-1), TargetLaw(ids, target))


def _values(name: str, logits: Tensor, target: Tensor) -> Tensor:
    return LOSSES.make(name)(_draft(logits, target))


@pytest.mark.parametrize("seed", range(3))
def test_kld_reverse_and_jsd_are_what_torch_says(seed: int) -> None:
    logits, target = _laws(seed)
    draft = torch.softmax(logits, dim=-1)

    def divergence(of: Tensor, to: Tensor) -> Tensor:
        return torch.nn.functional.kl_div(to.log(), of, reduction="none").sum(-1)

    middle = (draft + target) / 2
    jsd = (divergence(draft, middle) + divergence(target, middle)) / 2
    torch.testing.assert_close(_values("kld", logits, target), divergence(target, draft))
    torch.testing.assert_close(_values("reverse_kld", logits, target), divergence(draft, target))
    torch.testing.assert_close(_values("jsd", logits, target), jsd)


def test_tvd_is_half_the_l1_distance_and_one_minus_acceptance() -> None:
    logits, target = _laws(3)
    half = (torch.softmax(logits, -1) - target).abs().sum(-1) / 2
    torch.testing.assert_close(_values("tvd", logits, target), half)
    torch.testing.assert_close(_draft(logits, target).acceptance, 1 - half)


def _gradient(values: Tensor, logits: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    return gradient


def test_the_gradient_of_tvd_is_a_policy_gradient() -> None:
    """grad TVD = -E_{x ~ draft}[1{target > draft} · grad log draft(x)], the expectation written out."""
    logits, target = _laws(4)
    logits.requires_grad_()
    logs = torch.log_softmax(logits, dim=-1)
    draft = logs.exp().detach()
    reward = (target > draft).double()
    surrogate = -(draft * reward * logs).sum(-1)
    torch.testing.assert_close(_gradient(_values("tvd", logits, target), logits), _gradient(surrogate, logits))


def test_the_gradient_of_tvd_is_that_of_finite_differences() -> None:
    logits, target = _laws(5)
    logits.requires_grad_()
    found = _gradient(_values("tvd", logits, target), logits)
    step = 1e-6
    for place in range(logits.shape[0]):
        for column in range(logits.shape[1]):
            moved = [logits.detach().clone() for _ in range(2)]
            moved[0][place, column] += step
            moved[1][place, column] -= step
            high, low = (_values("tvd", values, target).sum() for values in moved)
            assert float(found[place, column]) == pytest.approx(float((high - low) / (2 * step)), abs=1e-8)


def test_with_one_mean_and_std_for_the_batch_tvd_plus_plus_would_be_tvd_with_another_step_size() -> None:
    logits, target = _laws(6)
    logits.requires_grad_()
    logs = torch.log_softmax(logits, dim=-1)
    draft = logs.exp().detach()
    reward = (target > draft).double()
    mean = (draft * reward).sum() / len(draft)
    std = ((draft * (reward - mean) ** 2).sum() / len(draft)).sqrt()
    normalised = -(draft * (reward - mean) / std * logs).sum(-1)
    torch.testing.assert_close(
        _gradient(normalised, logits), _gradient(_values("tvd", logits, target), logits) / std.detach()
    )


def test_tvd_plus_plus_weighs_each_place_by_its_own_std() -> None:
    logits, target = _laws(7)
    logits.requires_grad_()
    draft = torch.softmax(logits, -1).detach()
    mean = (draft * (target > draft)).sum(-1)
    std = (mean * (1 - mean)).sqrt().clamp(min=0.1)
    tvd = _gradient(_values("tvd", logits, target), logits)
    torch.testing.assert_close(_gradient(_values("tvd++", logits, target), logits), tvd / std[:, None])
    assert float(std.max() - std.min()) > 0.01, "places with equal weights would show nothing"


def test_what_is_logged_of_tvd_plus_plus_is_tvd() -> None:
    logits, target = _laws(3, places=5, size=7)
    assert torch.equal(_values("tvd++", logits, target), _values("tvd", logits, target))


def test_normalising_lowers_the_variance_of_sampled_gradients() -> None:
    """What the paper claims: -A(x) grad log draft(x) for one sampled x, A centred, against r(x) uncentred."""
    logits, target = _laws(8, places=1, size=6)
    draft = torch.softmax(logits, -1)[0]
    reward = (target[0] > draft).double()
    score = torch.eye(6, dtype=torch.float64) - draft  # grad log draft(x), row x
    mean = (draft * reward).sum()

    def variance(advantage: Tensor) -> float:
        gradients = advantage[:, None] * score
        expected = (draft[:, None] * gradients).sum(0)
        return float((draft * ((gradients - expected) ** 2).sum(-1)).sum())

    assert variance(reward - mean) < variance(reward)


def test_lk_goes_from_kld_to_tvd() -> None:
    logits, target = _laws(9)
    apart, near = logits * 20, target.log()
    kld, tvd = _values("kld", apart, target), _values("tvd", apart, target)
    weight = (-3.0 * _draft(apart, target).acceptance.mean()).exp()
    torch.testing.assert_close(_values("lk", apart, target), weight * kld + (1 - weight) * tvd)
    assert float(_values("lk", near, target).abs().max()) < 1e-9


@pytest.mark.parametrize("name", list(LOSSES))
def test_a_step_down_every_loss_raises_acceptance(name: str) -> None:
    logits, target = _laws(10)
    ids = torch.arange(target.shape[1]).expand_as(target)
    law, loss = TargetLaw(ids, target.float()), Loss(LOSSES.make(name))
    values = logits.float().requires_grad_()
    before = float(loss(values, law).acceptance.mean())
    for _ in range(20):
        (gradient,) = torch.autograd.grad(loss(values, law).loss, values)
        values = (values - 0.5 * gradient).detach().requires_grad_()
    assert float(loss(values, law).acceptance.mean()) > before


def test_tokens_that_are_not_kept_count_for_nothing() -> None:
    column = torch.tensor([-1, 0, 1, -1])
    tokens, logprobs = torch.tensor([[0, 1, 2]]), torch.tensor([[0.5, 0.3, 0.2]]).log()
    law = TargetLaw.of(tokens, logprobs, column)
    assert law.ids.tolist() == [[-1, 0, 1]]
    torch.testing.assert_close(law.probabilities, torch.tensor([[0.0, 0.3, 0.2]]))
    report = Loss(LOSSES.make("tvd"))(torch.zeros(1, 2), law)
    assert float(report.acceptance) == pytest.approx(0.5), "min(.3, .5) + min(.2, .5)"
