"""What transformers itself says, one token at a time, and how the adapter is asked the same."""

import copy
import random
from typing import Any

import torch
import transformers
from tests.models.huggingface.other_families import VOCABULARY
from torch import Tensor

from lope.core.draft import ROOT, Draft, Draw
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Job
from lope.core.scores import ALL, Needs, Scores
from lope.models.huggingface import HuggingFaceBackend

EVERYTHING = Needs(logits=ALL)
TOLERANCE = 1e-4  # float32: a packed pass sums in another order


def token_by_token(model: Any, prompt: Path, draft: Draft) -> tuple[Tensor, Tensor]:
    """(logits [prompt + n, V], hidden states [layers + 1, prompt + n, d]), one token a pass in transformers' own cache.

    Each node goes on from its parent's cache, so that every path is decoded as if it were alone.
    """
    cache, logits, hidden = transformers.DynamicCache(config=model.config), [], []

    def one(token: int) -> None:
        output = model(torch.tensor([[token]]), cache=cache, use_cache=True, output_hidden_states=True)
        logits.append(output.logits[0])
        hidden.append(torch.stack([state[0] for state in output.hidden_states]))

    with torch.inference_mode():
        for token in prompt:
            one(token)
        after = {ROOT: cache}
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            cache = copy.deepcopy(after[parent])
            one(token)
            after[node] = cache
    return torch.cat(logits), torch.cat(hidden, dim=1)


def at_once(model: Any, ids: Path) -> tuple[Tensor, Tensor]:
    """The same from one plain causal pass, without a cache."""
    with torch.inference_mode():
        output = model(torch.tensor([ids]), use_cache=False, output_hidden_states=True)
    return output.logits[0], torch.stack([state[0] for state in output.hidden_states])


def words(count: int, seed: int, vocabulary: int = VOCABULARY) -> Path:
    """Random tokens."""
    rng = random.Random(seed)
    return tuple(rng.randrange(vocabulary) for _ in range(count))


def tree(nodes: int, seed: int, vocabulary: int = VOCABULARY) -> Draft:
    """A random tree of points, bushy and deep, with a copy of its first node where it has more than three."""
    rng = random.Random(seed)
    tokens = [rng.randrange(vocabulary) for _ in range(nodes)]
    parents = [rng.randrange(max(ROOT, node - 4), node) for node in range(nodes)]
    if nodes > 3:
        parents[2], tokens[2] = parents[0], tokens[0]
        parents = [0 if parent == 2 else parent for parent in parents]
    kinds = (Draw.INDEPENDENT,) * nodes
    return Draft(tuple(tokens), tuple(parents), kinds, (0,) * nodes, None, (-1,) * (nodes + 1))


def scored(backend: HuggingFaceBackend, prompt: Path, draft: Draft, needs: Needs = EVERYTHING) -> Scores:
    """One pass over a fresh session."""
    target = backend.target(False)
    [scores] = target.score([Job(target.open(Prompt(prompt)), draft, needs)])
    return scores


def path_difference(model: Any, backend: HuggingFaceBackend, prompt: Path, draft: Draft) -> float:
    """The largest difference of any logit at the root and at any node from token-by-token decoding along its path."""
    scores = scored(backend, prompt, draft)
    expected = token_by_token(model, prompt, draft)[0][len(prompt) - 1 :]
    return float((scores.logits.values - expected).abs().max())
