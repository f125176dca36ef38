"""What the contracts share: how a draft is checked, how a drafter is asked, and a target beside which it drafts."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.models import random_drafter
from tests.models.lean.random_decoder import backend
from torch import Tensor

from lope.core.budget import Budget
from lope.core.chance import KeyedChance
from lope.core.draft import EMPTY, ROOT, Draft, Draw
from lope.core.noise import key
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Ask, Job
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import Needs
from lope.core.verdict import NOTHING, Verdict
from lope.drafters import DRAFTERS
from lope.drafters.autoregressive import AutoregressiveDrafter
from lope.drafters.workshop import Workshop
from lope.models.drafter_folder import DrafterTarget
from lope.models.table import TableModel
from lope.models.table_draft import TableDraftModel
from lope.shapes import SHAPES
from lope.stops import STOPS

PLAIN = Sampling(temperature=1.0)


class WordyModel(TableDraftModel):
    """Many words and the engine's precision: float32 logits, one of 64 rows by the whole context."""

    @cached_property
    def logits(self) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return self.spread * torch.randn(64, self.vocabulary, generator=generator)

    def step(self, steps: Any) -> Any:
        contexts = [[step.session.ids + step.tree.words(node) for node in step.frontier] for step in steps]
        which = [[key(*context) % 64 for context in level] for level in contexts]
        return [(Rows(self.logits[rows], None, self.vocabulary, float("-inf")), None) for rows in which]


def ask(session: Any, *, budget: Budget, sampling: Sampling, prompt: Path, seed: int = 0) -> Ask[Any]:
    """An ask whose sampler stands at the end of `prompt`."""
    return Ask(session, budget, sampling.begin(Prompt(prompt)), KeyedChance(seed, 0, len(prompt)))


def grown(
    shape: Any, *, budget: Budget, sampling: Sampling = PLAIN, seed: int = 0, model: Any = None, stop: Any = None
) -> Draft:
    """One draft of a shape over a table model, after the prompt (0, 1)."""
    drafter = AutoregressiveDrafter(model or TableDraftModel(), shape, STOPS.make("never") if stop is None else stop)
    session = drafter.open(Prompt((0, 1)), None)
    [draft] = drafter.propose([ask(session, budget=budget, sampling=sampling, prompt=(0, 1), seed=seed)])
    return draft


def check_draft(draft: Draft, budget: Budget, kinds: frozenset[Draw], sources: int) -> None:
    """The invariants of every draft, whoever proposed it."""
    count = len(draft)
    assert all(ROOT <= parent < node for node, parent in enumerate(draft.parents)), "parents come first"
    assert len(draft.parents) == len(draft.draws) == len(draft.source) == count
    assert len(draft.law_of) == count + 1
    assert count <= max(0, budget.nodes), "a budget is a hard cap"
    assert max(draft.depths, default=0) <= max(0, budget.depth), "a budget is a hard cap"
    assert set(draft.draws) <= kinds, "a drafter draws only as it says"
    assert all(0 <= source < sources for source in draft.source)
    assert all(parent == ROOT or draft.firsts[parent] == parent for parent in draft.parents), "copies have no children"
    drawn_parents = [parent for parent in range(ROOT, count) if _check_family(draft, parent)]
    assert [parent for parent in range(ROOT, count) if draft.law_of[parent + 1] >= 0] == drawn_parents
    rows = [draft.law_of[parent + 1] for parent in drawn_parents]
    assert sorted(rows) == list(range(0 if draft.laws is None else len(draft.laws))), "one row for each drawn family"
    if draft.laws is not None:
        _check_laws(draft.laws)
        for parent, row in zip(drawn_parents, rows, strict=True):
            law = draft.laws.dense(row)
            drawn = [node for node in draft.children[parent + 1] if draft.draws[node] is not Draw.POINT]
            assert all(law[draft.tokens[node]] > 0 for node in drawn), "a drawn token has mass in its law"


def _check_family(draft: Draft, parent: int) -> bool:
    """Check the children of one parent; True if any was drawn."""
    nodes = draft.children[parent + 1]
    if not nodes:
        return False
    assert nodes == tuple(range(nodes[0], nodes[0] + len(nodes))), "siblings stand together"
    points = [draft.draws[node] is Draw.POINT for node in nodes]
    assert points == sorted(points), "drawn siblings come before points"
    kinds = {draft.draws[node] for node in nodes} - {Draw.POINT}
    assert len(kinds) <= 1, "one drawn kind in a family"
    assert (kinds == {Draw.ONLY}) == (points.count(False) == 1), "ONLY is the single drawn child"
    tokens = Counter(draft.tokens[node] for node in nodes)
    if kinds != {Draw.INDEPENDENT}:
        assert max(tokens.values()) == 1, "only independent siblings may be equal"
    assert all(tokens[draft.tokens[node]] == 1 for node in nodes if draft.draws[node] is Draw.POINT)
    return bool(kinds)


def _check_laws(laws: Rows) -> None:
    assert laws.rest == 0.0, "laws are probabilities"
    assert bool((laws.values >= 0).all())
    sums = laws.values.to(torch.float64).sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5), "laws sum to one"
    for row in range(len(laws)):
        held = laws.held(row)
        assert len(held.unique()) == len(held), "a row holds a token once"
        assert bool(((held >= 0) & (held < laws.size)).all())


def same_draft(one: Draft, other: Draft, tolerance: float = 0.0) -> bool:
    """Bit for bit, or laws as near as passes of different sizes are."""
    if (one.tokens, one.parents, one.draws, one.law_of) != (other.tokens, other.parents, other.draws, other.law_of):
        return False
    if one.laws is None or other.laws is None:
        return one.laws is other.laws
    pairs = [(one.laws.dense(row), other.laws.dense(row)) for row in range(len(one.laws))]
    return all(torch.allclose(mine, its, atol=tolerance, rtol=0) for mine, its in pairs)


@dataclass(frozen=True, eq=False)
class Place:
    """A drafter and the target beside which it drafts. tolerance: how far apart its laws may lie by rounding."""

    drafter: Any
    target: Any
    tolerance: float = 0.0

    def open(self, text: Path) -> "Told":
        """Sessions of both, opened on a text."""
        beside = self.target.open(Prompt(text))
        return Told(self, beside, self.drafter.open(Prompt(text), beside), text)


class Told:
    """One request: a drafter's session, the target's session beside it, and the text. Both hear the same."""

    def __init__(self, place: Place, beside: Any, session: Any, text: Path) -> None:
        self.place, self.beside, self.session, self.text = place, beside, session, text

    def ask(self, sampling: Sampling, budget: Budget, seed: int = 0) -> Ask[Any]:
        own = self.place.drafter.sampling(sampling)
        return ask(self.session, budget=budget, sampling=own, prompt=self.text, seed=seed)

    def propose(self, sampling: Sampling, budget: Budget) -> Draft:
        [draft] = self.place.drafter.propose([self.ask(sampling, budget)])
        return draft

    def commit(self, draft: Draft, verdict: Verdict) -> None:
        """One pass of the target, and what is made of it."""
        needs = self.place.drafter.needs | Needs(logits=1)
        [scores] = self.place.target.score([Job(self.beside, draft, needs)])
        self.beside.commit(draft, verdict)
        self.session.commit(draft, scores, verdict)
        self.text += verdict.tokens

    def hear_nothing(self, draft: Draft) -> None:
        """A pass that commits nothing."""
        self.commit(draft, NOTHING)

    def extend(self, turn: Path) -> None:
        self.beside.extend(Prompt(turn))
        self.session.extend(Prompt(turn))
        self.text += turn

    def fork(self) -> "Told":
        beside = self.beside.fork()
        return Told(self.place, beside, self.place.drafter.fork(self.session, beside), self.text)

    def later(self, token: int = 2) -> "Told":
        """A fork after a pass without a draft: from there on every drafter may draft."""
        fork = self.fork()
        fork.commit(EMPTY, Verdict((), (token,)))
        return fork


def workshop(shape: str = "rsd_s:width=2,depth=3", stop: str = "never", vocabulary: int = 6) -> Workshop:
    """A target, and models to load, made of tables; every model has a context of 64 items."""

    def model(name: str) -> Any:
        backend: Any = SimpleNamespace(vocab_size=vocabulary, context=64)
        backend.draft_model = lambda: WordyModel(vocabulary)
        backend.truncated = lambda layers: backend
        return SimpleNamespace(name=name, backend=backend, tokenizer=SimpleNamespace(fingerprint="the same"))

    return Workshop(model("target"), SHAPES.make(shape), STOPS.make(stop), model)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Place]:
    """What a registered drafter is tried in: beside a table, or, if it was taught by a target, beside a real one."""
    # what a drafter with required settings is built from; a new one must be named here
    settings = {
        "model": "model:path=small",
        "truncated": "truncated:layers=1",
        "hybrid": "hybrid:drafter=model:path=small",
    }
    taught = ("standalone", "eagle")
    made: dict[str, Place] = {}

    def make(name: str) -> Place:
        plain = workshop()
        if name not in taught:
            return Place(DRAFTERS.make(settings.get(name, name)).attach(plain), TableModel(6))
        if name not in made:
            real = backend(vocab_size=6, hidden_size=32, num_layers=3)
            target = DrafterTarget("target", "the same", 6, 32, 3)
            about = random_drafter.about(name, target, kept=5, context=64)
            folder = random_drafter.write(tmp_path_factory.mktemp(name) / "drafter", about)
            loaded: Any = SimpleNamespace(
                name="target", backend=real, tokenizer=SimpleNamespace(fingerprint="the same")
            )
            attached = DRAFTERS.make(f"{name}:path={folder}").attach(
                Workshop(loaded, plain.shape, plain.stop, plain.load)
            )
            made[name] = Place(attached, real.target(exact=False), tolerance=1e-4)
        return made[name]

    return make


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The functions above (test folders are no packages)."""
    functions: list[Callable[..., Any]] = [ask, grown, check_draft, same_draft]
    return SimpleNamespace(wordy=WordyModel, plain=PLAIN, place=Place, **{f.__name__: f for f in functions})
