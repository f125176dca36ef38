"""The doors between the rooms. Every member here is called by the loop, or by the room one line above.

Settings are frozen and hold no state; what `open` or `start` returns is a session and holds all of it. Protocols are
generic in the session: T is the target's, D the drafter's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from torch import Tensor

from lope.core.budget import Budget, Round, Situation
from lope.core.draft import Draft, Draw
from lope.core.prompt import Path, Prompt
from lope.core.rows import Rows
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict

if TYPE_CHECKING:
    from lope.core.sampling import Sampling

Memo = tuple[float, ...]


class Chance(Protocol):
    """All chance of drafting and verifying goes through one of these, so that tests can visit every outcome."""

    def accept(self, probability: float) -> bool:
        """True with this probability (values of 1 and more: always; of 0 and less: never)."""

    def order(self, weights: Tensor, ids: Tensor | None, count: int, position: int) -> list[int]:
        """Up to `count` columns of `weights` [C] (>= 0) in the order drawn, without replacement, by weight.

        Columns of weight 0 are never drawn: fewer than `count` come back where the support is smaller. `ids` [C] names
        the tokens of the columns, `position` the context position that the token would take: noise that is shared with
        the target depends on both.
        """

    def gumbel(self, count: int, ids: Tensor | None, position: int) -> Tensor:
        """[count] independent Gumbel(0, 1) values, one a column."""


class Track(Protocol):
    """The state of a processor at the end of one token path. Immutable: trees branch."""

    def advance(self, token: int) -> Self:
        """The track after one more token."""

    def apply(self, values: Tensor, ids: Tensor | None) -> Tensor:
        """The processed logits [C] of the next token; must not write into `values`."""


class Processor(Protocol):
    """Changes logits by what came before: a penalty, a mask, a grammar, a user's own."""

    def begin(self, prompt: Prompt) -> Track:
        """The track after the prompt."""


class Sampler(Protocol):
    """Turns logits into the law that tokens are drawn from, along each path with that path's own history."""

    @property
    def greedy(self) -> bool:
        """True at temperature 0."""

    @property
    def needs(self) -> Needs:
        """How many logits the pipeline must see."""

    @property
    def length(self) -> int:
        """How many context items have been committed: the position that the next token takes."""

    def processed(self, logits: Rows, paths: Sequence[Path]) -> Rows:
        """Logits after penalties, masks and processors, before temperature. paths[i]: tokens after the root, row i."""

    def filtered(self, logits: Rows, paths: Sequence[Path]) -> Rows:
        """The probabilities that a token is drawn from; at temperature 0 all mass on the best."""

    def commit(self, tokens: Path) -> None:
        """Move the root."""

    def fork(self) -> "Sampler":
        """An independent copy at the same root."""


class TargetSession(Protocol):
    """One request's context inside a target. Items that have not run yet are pending; at least one always is."""

    @property
    def room(self) -> int:
        """How many more items the context can take."""

    def extend(self, prompt: Prompt) -> None:
        """Append items (the next turn of a conversation); they are pending."""

    def commit(self, draft: Draft, verdict: Verdict) -> None:
        """Keep the accepted path's rows, drop the others; the last emitted token is pending."""

    def fork(self) -> Self:
        """An independent copy."""


T = TypeVar("T")
D = TypeVar("D")
M = TypeVar("M")
BesideT = TypeVar("BesideT", contravariant=True)


@dataclass(frozen=True, eq=False)
class Job(Generic[T]):
    """One request of a packed target pass."""

    session: T
    draft: Draft
    needs: Needs


class Target(Protocol[T]):
    """The model whose answers must not change."""

    def open(self, prompt: Prompt) -> T:
        """A session; runs nothing."""

    def score(self, jobs: Sequence[Job[T]]) -> list[Scores]:
        """Run what is pending and all nodes, of all jobs, in one packed pass. Repeatable until commit."""


class DraftSession(Protocol):
    """One request's state inside a drafter."""

    def extend(self, prompt: Prompt) -> None:
        """Append context items that are not drafted."""

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        """Learn what the target decided. Runs no model: catching up is lazy."""


@dataclass(frozen=True, eq=False)
class Ask(Generic[D]):
    """One request of a packed drafting step. The sampler carries the drafter's own settings."""

    session: D
    budget: Budget
    sampler: Sampler
    chance: Chance


class Drafter(Protocol[D, BesideT]):
    """Proposes a tree for each request of a round."""

    @property
    def needs(self) -> Needs:
        """What it must know of the target's pass."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of its sources; `Draft.source` counts in them."""

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """The kinds of draw that its drafts may hold; `greedy`: the request is at temperature 0."""

    def sampling(self, request: "Sampling") -> "Sampling":
        """How it draws for a request that is sampled so; the sampler of its asks is made from this."""

    def open(self, prompt: Prompt, beside: BesideT) -> D:
        """A session beside the target's; runs nothing."""

    def fork(self, session: D, beside: BesideT) -> D:
        """An independent copy of a session, beside the target's copy."""

    def propose(self, asks: Sequence[Ask[D]]) -> list[Draft]:
        """One draft for each ask, within its budget."""


@dataclass(frozen=True, eq=False)
class Laws:
    """What a draft model says at the frontier of one request's tree.

    nodes:  the frontier, in order (ROOT included in the first step).
    rows:   [len(nodes)] what children are chosen by: probabilities, or at temperature 0 processed logits.
    own:    for each frontier node the probability that its own token had under its parent's row (1.0 for ROOT); some
            drafters compute it when it is first read.
    hidden: [len(nodes), d] or None: hidden states after the final norm, for rules that are trained on them.
    """

    nodes: Path
    rows: Rows
    own: Sequence[float]
    hidden: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Step(Generic[M]):
    """One request of a packed draft pass: run the frontier nodes of its tree (ROOT runs what is pending)."""

    session: M
    tree: Draft
    frontier: Path


class DraftModel(Protocol[M, BesideT]):
    """A model that drafts autoregressively; a shape decides which nodes it expands."""

    @property
    def needs(self) -> Needs:
        """What it must know of the target's pass."""

    def open(self, prompt: Prompt, beside: BesideT) -> M:
        """A session; runs nothing."""

    def fork(self, session: M, beside: BesideT) -> M:
        """An independent copy of a session."""

    def step(self, steps: Sequence[Step[M]]) -> list[tuple[Rows, Tensor | None]]:
        """One packed pass: for each request the logits of its frontier, and hidden states if it has any."""


class Growth(Protocol):
    """One draft while it grows."""

    @property
    def tree(self) -> Draft:
        """The tree so far (laws may be missing until `draft`)."""

    @property
    def frontier(self) -> Path:
        """The nodes to run next; empty when the draft is finished."""

    def grow(self, laws: Laws, last: Sequence[bool]) -> None:
        """Draw children of the frontier. Children of a `last` row are drawn but never expanded."""

    def draft(self) -> Draft:
        """The finished draft."""


class Shape(Protocol):
    """How an autoregressive drafter spends its node budget."""

    def draws(self, greedy: bool) -> frozenset[Draw]:
        """The kinds of draw that its drafts hold."""

    def start(self, budget: Budget, chance: Chance, greedy: bool, position: int) -> Growth:
        """A draft that has only its root; `position` is the one that a child of the root takes."""


class Stop(Protocol):
    """Says when a draft has gone far enough. It sees laws, never the drawn token itself."""

    def should_stop(self, laws: Laws, memos: Sequence[Memo]) -> list[tuple[bool, Memo]]:
        """For each frontier row: stop below it? and the memo that its children inherit."""


class Verifier(Protocol):
    """Decides which path of a draft is accepted and which token comes after it."""

    @property
    def lossless(self) -> bool:
        """True where the emitted tokens have exactly the target's law."""

    def accepts(self, greedy: bool) -> frozenset[Draw] | None:
        """The kinds of draw it can verify exactly, or None: it refuses."""

    @property
    def shares_noise(self) -> bool:
        """True where target and draft draw with the same noise, keyed by (seed, position)."""

    def verify(self, draft: Draft, scores: Scores, sampler: Sampler, chance: Chance) -> Verdict:
        """The verdict on one draft."""


class Policy(Protocol):
    """Chooses how much to draft; sees the whole batch at once."""

    def choose(self, situations: Sequence[Situation]) -> list[Budget]:
        """One budget for each request."""

    def learn(self, rounds: Sequence[Round]) -> None:
        """Hear what became of them."""
