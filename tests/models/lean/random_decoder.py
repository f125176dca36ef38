"""Random lean decoders of any sizes, made without a checkpoint; random trees; one path run token by token."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from lope.core.draft import EMPTY, ROOT, Draft, Draw
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs
from lope.core.verdict import Verdict
from lope.models.lean.backend import LeanBackend
from lope.models.lean.config import DecoderConfig
from lope.models.lean.target import LeanTarget, LeanTargetSession

VOCABULARY = 97
_SIZES = {
    "architecture": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 16,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "context": 1024,
    "tied": False,
}


def backend(seed: int = 0, dtype: torch.dtype = torch.float32, **sizes: object) -> LeanBackend:
    """Weights large enough that every key of a context shows in the logits."""
    config = DecoderConfig(**{**_SIZES, **sizes})  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(seed)
    tensors: dict[str, Tensor] = {}
    for name, shape in config.shapes().items():
        values = torch.randn(shape, generator=generator)
        scale = 1.2 / shape[-1] ** 0.5 if len(shape) == 2 else 0.3
        tensors[name] = values * scale + (1.0 if "norm" in name else 0.0)
    tensors["model.embed_tokens.weight"] *= config.hidden_size**0.5
    return LeanBackend.load(config, tensors, dtype, torch.device("cpu"))


def words(count: int, seed: int = 0) -> Path:
    chance = random.Random(seed)
    return tuple(chance.randrange(VOCABULARY) for _ in range(count))


def random_tree(count: int, seed: int, *, copies: float = 0.0, deep: float = 0.5) -> Draft:
    """deep: how often a node hangs under the last one; copies: how often it repeats a sibling's token."""
    chance = random.Random(seed)
    tokens: list[int] = []
    parents: list[int] = []
    eldest: dict[tuple[int, int], int] = {}
    firsts: list[int] = []
    for node in range(count):
        parent = firsts[-1] if firsts and chance.random() < deep else chance.choice([ROOT, *firsts])
        siblings = [tokens[other] for other in range(node) if parents[other] == parent]
        token = chance.choice(siblings) if siblings and chance.random() < copies else chance.randrange(VOCABULARY)
        tokens.append(token)
        parents.append(parent)
        firsts.append(eldest.setdefault((parent, token), node))
    return _draft(tokens, parents)


def tree_with_path(path: Sequence[int], count: int, seed: int) -> tuple[Draft, Path]:
    """A random tree of `count` nodes with this path strewn into it, and the path's nodes."""
    assert count >= len(path)
    chance = random.Random(seed)
    places = sorted(chance.sample(range(count), len(path)))
    tokens: list[int] = []
    parents: list[int] = []
    for node in range(count):
        done = [place for place in places if place < node]
        parents.append((done[-1] if done else ROOT) if node in places else chance.randrange(ROOT, node))
        taken = {tokens[other] for other in range(node) if parents[other] == parents[-1]} | set(path)
        free = [token for token in range(VOCABULARY) if token not in taken]
        tokens.append(path[places.index(node)] if node in places else chance.choice(free))
    return _draft(tokens, parents), tuple(places)


def _draft(tokens: Sequence[int], parents: Sequence[int]) -> Draft:
    count = len(tokens)
    return Draft(tuple(tokens), tuple(parents), (Draw.INDEPENDENT,) * count, (0,) * count, None, (-1,) * (count + 1))


def scored(target: LeanTarget, session: LeanTargetSession, draft: Draft = EMPTY) -> Tensor:
    """[1 + n, V] logits of the root and of all nodes; nothing is committed."""
    [scores] = target.score([Job(session, draft, Needs(logits=ALL))])
    return scores.logits.values


def one_by_one(target: LeanTarget, prompt: Path, draft: Draft) -> Tensor:
    """[1 + n, V]: the same by one forward pass a token, along each path."""
    root = target.open(Prompt(prompt))
    rows = [scored(target, root)[0]]
    sessions = {ROOT: root}
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
        sessions[node] = sessions[parent].fork()
        scored(target, sessions[node])  # a fork has what is committed; a commit keeps what a pass has run
        sessions[node].commit(EMPTY, Verdict((), (token,)))
        rows.append(scored(target, sessions[node])[0])
    return torch.stack(rows)
