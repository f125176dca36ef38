"""Drafters with random layers whose head was fitted to what a tiny target says: laws need drafts that are accepted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tests.models import random_drafter
from torch import Tensor

from lope.core.draft import EMPTY, ROOT, chain
from lope.core.prompt import Path as Tokens
from lope.core.prompt import Prompt
from lope.core.protocols import Job, Step
from lope.core.scores import Needs
from lope.core.verdict import Verdict
from lope.models.drafter_folder import DrafterFolder, DrafterTarget
from lope.models.lean.decoder import Decoder
from lope.models.lean.draft_model import LeanDraftModel
from lope.models.lean.drafter_weights import feature_weights, standalone_weights
from lope.models.lean.feature_draft_model import FeatureDraftModel
from lope.models.loaded import LoadedModel

WIDTH, DEPTH, RIDGE = 96, 3, 1e-3


def write(place: Path, kind: str, model: LoadedModel, prompts: Sequence[Tokens], count: int) -> Path:
    """A drafter that was shown `count` tokens of the target's plain answer to each prompt. A seventh of all tokens is
    missing from its head."""
    backend: Any = model.backend
    sizes = backend.vocab_size, backend.hidden_size, backend.num_layers
    target = DrafterTarget(model.name, model.tokenizer.fingerprint, *sizes)
    kept = torch.tensor([token for token in range(backend.vocab_size) if token % 7 != 3])
    own = {"hidden_size": WIDTH} if kind == "standalone" else {}
    about = random_drafter.about(kind, target, kept=len(kept), context=backend.context, **own)
    tensors = {**random_drafter.tensors(about), "kept": kept}
    table, folder = backend.embedding, DrafterFolder(place, about, tensors)
    if kind == "eagle":
        drafter: Any = FeatureDraftModel(feature_weights(folder, table, backend.context))
    else:
        drafter = LeanDraftModel(Decoder(standalone_weights(folder, table), invariant=False))
    states, labels = _shown(drafter, backend.target(exact=False), prompts, count)
    wanted = 10.0 * torch.nn.functional.one_hot(labels, backend.vocab_size)[:, kept].double()
    gram = states.T @ states + RIDGE * len(states) * torch.eye(states.shape[1])
    head = torch.linalg.solve(gram, states.T @ wanted).T.float()
    DrafterFolder.write(place, about, {**tensors, "lm_head.weight": head})
    return place


def _shown(drafter: Any, target: Any, prompts: Sequence[Tokens], count: int) -> tuple[Tensor, Tensor]:
    """(states [rows, d] float64 that the head reads along the target's own answers, the token after each)."""
    states, labels = [], []
    for prompt in prompts:
        answer = _plain(target, prompt, count + DEPTH)
        beside = target.open(Prompt(prompt))
        session = drafter.open(Prompt(prompt), beside)
        for at in range(count):
            [scores] = target.score([Job(beside, EMPTY, drafter.needs | Needs(logits=1))])
            beside.commit(EMPTY, Verdict((), answer[at : at + 1]))
            session.commit(EMPTY, scores, Verdict((), answer[at : at + 1]))
            tree = chain(answer[at + 1 : at + DEPTH])
            for node in range(ROOT, len(tree)):
                [(_, hidden)] = drafter.step([Step(session, tree, (node,))])
                states.append(hidden[0].double())
                labels.append(answer[at + 2 + node])
    return torch.stack(states), torch.tensor(labels)


def _plain(target: Any, prompt: Tokens, count: int) -> Tokens:
    session, answer = target.open(Prompt(prompt)), ()
    for _ in range(count):
        [scores] = target.score([Job(session, EMPTY, Needs(logits=1))])
        token = (int(scores.logits.tokens(0, scores.logits.values[0].argmax())),)
        session.commit(EMPTY, Verdict((), token))
        answer += token
    return answer
