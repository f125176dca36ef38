import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lope.models.drafter_folder import DrafterAbout, DrafterTarget, drafter_decoder, shapes
from lope.models.lean.config import DecoderConfig
from lope.training.batches import Batch
from lope.training.eagle_net import EagleNet, EaglePupil
from lope.training.losses.kld import Kld
from lope.training.losses.law import Loss, LossReport, TargetLaw

VOCABULARY, KEPT, WIDTH, STEPS = 40, 23, 32, 4
SIZES = {
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_layers": 1,
    "num_heads": 6,
    "num_kv_heads": 2,
    "head_dim": 8,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "context": 64,
}
CONFIG: DecoderConfig = drafter_decoder("eagle", KEPT, **SIZES)


def net_of(seed: int = 0) -> EagleNet:
    """Random in every parameter, sizes of features and norms included."""
    torch.manual_seed(seed)
    net = EagleNet(CONFIG, torch.randn(VOCABULARY, WIDTH), torch.randperm(VOCABULARY)[:KEPT].sort().values)
    for name, parameter in net.named_parameters():
        if parameter.ndim == 1:
            parameter.data.uniform_(0.5, 1.5)
        elif "proj" in name:
            parameter.data.normal_(std=1.5 * parameter.shape[1] ** -0.5)
    return net


def batch_of(documents: list[list[tuple[int, int]]], length: int, seed: int = 0, named: int = 5) -> Batch:
    """Rows of (prompt, answer) sizes, packed."""
    torch.manual_seed(seed)
    shape = (len(documents), length)
    document, position = torch.full(shape, -1), torch.zeros(shape, dtype=torch.int64)
    answer = torch.zeros(shape, dtype=torch.bool)
    for r, row in enumerate(documents):
        begin = 0
        for number, (prompt, said) in enumerate(row):
            end = begin + prompt + said
            document[r, begin:end], position[r, begin:end] = number, torch.arange(prompt + said)
            answer[r, begin + prompt - 1 : end - 1] = True
            begin = end
    laws = torch.log_softmax(2.0 * torch.randn(*shape, VOCABULARY), -1).topk(named)
    logprobs = laws.values.masked_fill(~answer[..., None], float("-inf"))
    tokens = torch.randint(VOCABULARY, shape)
    return Batch(tokens, document, position, answer, laws.indices, logprobs, torch.randn(*shape, 3 * WIDTH))


BATCH = batch_of([[(4, 6), (2, 5)], [(3, 12)]], 18)


class Naive:
    """The drafter folder's own formulas, one row at a time over lists of keys, for one sequence."""

    def __init__(self, tensors: dict[str, Tensor], embedding: Tensor) -> None:
        self.t = tensors
        self.embedding = embedding

    def norm(self, x: Tensor, name: str) -> Tensor:
        return x / (x.square().mean() + CONFIG.norm_eps).sqrt() * self.t[f"{name}.weight"]

    def turn(self, x: Tensor, position: int) -> Tensor:
        """Hugging Face's half-split rotation as complex numbers."""
        half = CONFIG.head_dim // 2
        angle = position * CONFIG.rope_theta ** (-torch.arange(half) / half)
        pairs = torch.complex(x[:, :half], x[:, half:]) * torch.polar(torch.ones(half), angle)
        return torch.cat([pairs.real, pairs.imag], dim=-1)

    def row(self, h: Tensor, token: int, position: int, cache: list[tuple[Tensor, Tensor]]) -> Tensor:
        """x of one row, whose key and value are put at the end of `cache`."""
        at = "layers.0.self_attn."
        embedded = self.norm(self.embedding[token], "layers.0.input_layernorm")
        read = torch.cat([embedded, self.norm(h, "layers.0.hidden_norm")])
        q, k, v = ((self.t[f"{at}{name}_proj.weight"] @ read).view(-1, CONFIG.head_dim) for name in ("q", "k", "v"))
        q, k = self.turn(q, position), self.turn(k, position)
        cache.append((k, v))
        group, heads = CONFIG.num_heads // CONFIG.num_kv_heads, []
        for head in range(CONFIG.num_heads):
            keys, values = (torch.stack([row[side][head // group] for row in cache]) for side in (0, 1))
            heads.append(torch.softmax(keys @ q[head] / CONFIG.head_dim**0.5, 0) @ values)
        x = h + self.t[f"{at}o_proj.weight"] @ torch.cat(heads)
        m = self.norm(x, "layers.0.post_attention_layernorm")
        gate, up, down = (self.t[f"layers.0.mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        return x + down @ (F.silu(gate @ m) * (up @ m))

    def logits(self, x: Tensor) -> Tensor:
        return self.t["lm_head.weight"] @ self.norm(x, "norm")

    def chains(self, tokens: list[int], features: Tensor, steps: int) -> dict[tuple[int, int], Tensor]:
        """(root, step) -> logits, as far as the sequence goes."""
        shared: list[tuple[Tensor, Tensor]] = []
        found = {}
        for root in range(len(tokens) - 1):
            x = self.row(self.t["fc.weight"] @ features[root], tokens[root + 1], root, shared)
            own = list(shared)
            for step in range(min(steps, len(tokens) - 1 - root)):
                if step:
                    x = self.row(x, tokens[root + 1 + step], root + step, own)
                found[root, step] = self.logits(x)
        return found


def judged(net: EagleNet, batch: Batch, steps: int = STEPS) -> list[tuple[Tensor, LossReport]]:
    """What the loss is given and what it says, step by step."""
    seen: list[tuple[Tensor, LossReport]] = []

    class Noting(Loss):
        def __call__(self, logits: Tensor, target: TargetLaw) -> LossReport:
            seen.append((logits.detach(), super().__call__(logits, target)))
            return seen[-1][1]

    EaglePupil(net, steps=steps).losses(batch, Noting(Kld()))
    return seen


def judged_logits(net: EagleNet, batch: Batch) -> list[Tensor]:
    return [logits for logits, _ in judged(net, batch)]


def test_the_unrolled_pass_is_the_folder_s_formulas_row_by_row() -> None:
    net = net_of()
    naive = Naive(net.tensors(), net.embedding)
    expected: list[list[Tensor]] = [[] for _ in range(STEPS)]
    for r in range(len(BATCH.tokens)):
        chains: dict[tuple[int, int], Tensor] = {}
        for number in range(int(BATCH.document[r].max()) + 1):
            places = (BATCH.document[r] == number).nonzero().flatten()
            own = naive.chains(BATCH.tokens[r, places].tolist(), BATCH.features[r, places], STEPS)  # type: ignore[index]
            chains |= {(int(places[0]) + root, step): logits for (root, step), logits in own.items()}
        for step in range(STEPS):
            expected[step] += [chains[k] for k in sorted(chains) if k[1] == step and BATCH.answer[r, k[0] + 1 + step]]
    found = judged_logits(net, BATCH)
    assert len(found) == STEPS
    for logits, rows in zip(found, expected, strict=True):
        assert logits.shape == (len(rows), KEPT)
        torch.testing.assert_close(logits, torch.stack(rows), rtol=1e-5, atol=1e-5)


def test_documents_do_not_see_each_other() -> None:
    net = net_of()
    packed = judged_logits(net, batch_of([[(4, 6), (2, 5)]], 18))
    other = batch_of([[(4, 6), (2, 5)]], 18)
    first = other.document == 0
    other.tokens[first] = 1 + other.tokens[first] % (VOCABULARY - 1)
    other.features[first] *= -3.0  # type: ignore[index]
    changed = judged_logits(net, other)
    for step, (one, two) in enumerate(zip(packed, changed, strict=True)):
        places = 6 - max(0, step - 2)  # judged in the first document: a prompt of 4 has roots for its first answers
        assert one.shape == two.shape
        assert len(one) > places
        assert torch.equal(one[places:], two[places:])
        assert not torch.isclose(one[:places], two[:places]).all(-1).any()


def test_only_answers_teach() -> None:
    net = net_of()
    lesson = EaglePupil(net, steps=STEPS).losses(BATCH, Loss(Kld()))
    # place p is judged at step j if root p - 1 - j is in its document; prompts of 4, 2, 3 have roots 2, 0, 1 for theirs
    assert lesson.places.tolist() == [6 + 5 + 12, 6 + 4 + 12, 6 + 3 + 11, 5 + 2 + 10]
    silent = copy.deepcopy(BATCH)
    silent.top_ids[~silent.answer] = 0
    silent.top_logprobs[~silent.answer] = 0.0
    assert torch.equal(EaglePupil(net, steps=STEPS).losses(silent, Loss(Kld())).loss, lesson.loss)


def test_what_is_learned_at_every_parameter() -> None:
    net = net_of()
    EaglePupil(net, steps=3).losses(BATCH, Loss(Kld())).loss.backward()
    for name, parameter in net.named_parameters():
        assert (parameter.grad is None) == (name == "feature_size"), name
        assert parameter.grad is None or (parameter.grad.isfinite().all() and parameter.grad.abs().max() > 0), name


def test_later_steps_teach_the_first_through_x() -> None:
    net = net_of()
    states = net(BATCH.features, BATCH.tokens, BATCH.document, BATCH.position, torch.tensor([[3], [5]]), 3)
    (down,) = torch.autograd.grad(states[2].sum(), [states[0]])
    assert down.abs().min() > 0


def test_the_loss_weighs_steps_as_eagle_does() -> None:
    net = net_of()
    means = torch.stack([report.loss for _, report in judged(net, BATCH, 3)])
    weights = torch.tensor([1.0, 0.8, 0.64])
    lesson = EaglePupil(net, steps=3).losses(BATCH, Loss(Kld()))
    torch.testing.assert_close(lesson.loss, (weights * means).sum() / weights.sum())


def test_acceptance_is_the_sum_of_minima() -> None:
    # a head of zeros drafts each of the 23 kept tokens with 1/23; two of three named tokens are kept
    net = net_of()
    torch.nn.init.zeros_(net.lm_head.weight)
    batch = batch_of([[(3, 4)]], 8, named=3)
    lost = next(token for token in range(VOCABULARY) if token not in net.kept.tolist())
    batch.top_ids[..., 0], batch.top_ids[..., 1], batch.top_ids[..., 2] = lost, int(net.kept[4]), int(net.kept[9])
    batch.top_logprobs[batch.answer] = torch.tensor([0.5, 0.3, 0.02]).log()
    lesson = EaglePupil(net, steps=3).losses(batch, Loss(Kld()))
    assert lesson.places.tolist() == [4, 4, 3]
    assert (lesson.accepted / lesson.places).tolist() == pytest.approx([1 / 23 + 0.02] * 3)


def test_tensors_are_those_of_the_drafter_folder() -> None:
    target = DrafterTarget("table", "0", VOCABULARY, WIDTH, 9)
    about = DrafterAbout(kind="eagle", target=target, decoder=CONFIG, layers=(2, 4, 6), storage="float32")
    found = {name: tuple(tensor.shape) for name, tensor in EaglePupil(net_of()).tensors().items()}
    assert found == shapes(about)


def test_restoring_gives_the_same_drafter_whatever_the_features_sizes() -> None:
    taught, other = net_of(), net_of(1)
    other.embedding.copy_(taught.embedding)
    other.kept.copy_(taught.kept)
    other.column.copy_(taught.column)
    other.begin(7.0 * torch.randn(50, 3 * WIDTH))
    other.restore(taught.tensors())
    for one, two in zip(judged_logits(taught, BATCH), judged_logits(other, BATCH), strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("known", [True, False])
def test_a_new_drafter_begins_near_the_last_feature_with_logits_of_unit_size(known: bool) -> None:
    net = net_of()
    head, norm = 3.0 * torch.randn(KEPT, WIDTH), torch.rand(WIDTH) + 0.5
    features = torch.randn(400, 3 * WIDTH) * torch.logspace(-1, 2, 3 * WIDTH)
    net.begin(features, head=head if known else None, norm=norm if known else None)
    hidden = net.fc(features / net.feature_size)
    last = features[:, -WIDTH:] / features[:, -WIDTH:].std(0)
    assert F.cosine_similarity(hidden, last, dim=-1).min() > 0.95
    assert 0.7 < float(net.logits(hidden).detach().std()) < 1.4
    assert torch.equal(net.lm_head.weight.data, head) == known


def test_a_batch_without_answers_teaches_nothing() -> None:
    batch = batch_of([[(5, 1)]], 6)
    batch.answer[:] = False
    lesson = EaglePupil(net_of()).losses(batch, Loss(Kld()))
    assert lesson.loss == 0.0
    assert lesson.places.tolist() == [0.0, 0.0, 0.0]
