"""A model that says a given text, and drafters that know it: endings and limits are tried on any text and any pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tokenizers
import torch
from tokenizers import decoders, pre_tokenizers

from lope.core.draft import EMPTY, ROOT, Draft, Draw, chain
from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Ask, Job
from lope.core.rows import Rows
from lope.core.sampling import Sampling
from lope.core.scores import Needs, Scores
from lope.core.verdict import Verdict
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.chat_template import ChatTemplate
from lope.models.loaded import LoadedModel
from lope.models.tokenizer import Tokenizer

BEGIN, END = 0, 1
_ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
_WORDS = ("the", "stop", "Ġend", "ĊĊ")
VOCABULARY = 2 + len(_ALPHABET) + len(_WORDS)


def tokenizer() -> Tokenizer:
    """Two control tokens, one token a byte, and a few words."""
    texts = ["<|begin|>", "<|end|>", *_ALPHABET, *_WORDS]
    raw = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={text: at for at, text in enumerate(texts)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(["<|begin|>", "<|end|>"])
    return Tokenizer(raw, bos=BEGIN, eos=END)


TOKENIZER = tokenizer()
TEMPLATE = ChatTemplate(
    "{% for item in messages %}{{ item['role'] }}: {{ item['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


@dataclass
class ScriptSession:
    """A context, and where the answer in the making began."""

    context: int
    ids: Path = ()
    began: int = 0

    @property
    def room(self) -> int:
        return self.context - len(self.ids)

    def extend(self, prompt: Prompt) -> None:
        if len(prompt.ids) > self.room:
            raise UsageError("the prompt does not fit")
        self.ids += prompt.ids
        self.began = len(self.ids)

    def commit(self, draft: Draft, verdict: Verdict) -> None:
        self.ids += verdict.tokens
        assert len(self.ids) <= self.context, "a target never holds more than its context"

    def fork(self) -> "ScriptSession":
        return ScriptSession(self.context, self.ids, self.began)


@dataclass(frozen=True)
class ScriptTarget:
    """The next token of the script has logit 5, its successor 4, all others between 0 and 1."""

    script: Path
    context: int

    def open(self, prompt: Prompt) -> ScriptSession:
        session = ScriptSession(self.context)
        session.extend(prompt)
        return session

    def score(self, jobs: Sequence[Job[ScriptSession]]) -> list[Scores]:
        return [self._score(job.session, job.draft) for job in jobs]

    def _score(self, session: ScriptSession, draft: Draft) -> Scores:
        assert len(session.ids) + max(draft.depths, default=0) < self.context, "a path leaves room for one token more"
        said = len(session.ids) - session.began
        values = torch.linspace(0.0, 1.0, VOCABULARY).repeat(1 + len(draft), 1)
        for row, node in enumerate((ROOT, *range(len(draft)))):
            at = said + len(draft.path(node))
            values[row, next_of(self.script, at + 1)] = 4.0
            values[row, next_of(self.script, at)] = 5.0
        return Scores(Rows(values, None, VOCABULARY, float("-inf")), 1)


def next_of(script: Path, at: int) -> int:
    return script[at] if at < len(script) else END


@dataclass(frozen=True)
class ScriptBackend:
    script: Path
    context: int = 512
    vocab_size: int = VOCABULARY
    num_parameters: int = 1
    dtype: str = "float32"
    device: str = "cpu"
    can_be_exact: bool = True
    kernels: str = "torch"
    kernels_version: str = ""

    def target(self, exact: bool) -> ScriptTarget:
        return ScriptTarget(self.script, self.context)


@dataclass
class KnowingSession:
    said: int = 0

    def extend(self, prompt: Prompt) -> None:
        self.said = 0

    def commit(self, draft: Draft, scores: Scores, verdict: Verdict) -> None:
        self.said += len(verdict.tokens)


@dataclass(frozen=True)
class KnowingDrafter:
    """Drafts the next tokens of the script: `sizes` says how many, round by round; `right` of them are the script's."""

    script: Path
    sizes: tuple[int, ...] = (4,)
    right: int = 1 << 30
    calls: list[int] = field(default_factory=list)
    trouble: Callable[[int], None] | None = None

    needs = Needs()
    sources = ("knowing",)

    def draws(self, greedy: bool) -> frozenset[Draw]:
        return frozenset({Draw.POINT})

    def sampling(self, request: Sampling) -> Sampling:
        return request

    def open(self, prompt: Prompt, beside: object) -> KnowingSession:
        return KnowingSession()

    def fork(self, session: KnowingSession, beside: object) -> KnowingSession:
        return type(session)(session.said)

    def propose(self, asks: Sequence[Ask[KnowingSession]]) -> list[Draft]:
        number = len(self.calls)
        self.calls.append(number)
        if self.trouble is not None:
            self.trouble(number)
        size = self.sizes[number % len(self.sizes)]
        return [self._propose(ask, min(size, ask.budget.nodes, ask.budget.depth)) for ask in asks]

    def _propose(self, ask: Ask[KnowingSession], size: int) -> Draft:
        at = ask.session.said
        guesses = [next_of(self.script, at + step) + (step >= self.right) for step in range(size)]
        return chain(tuple(guesses)) if guesses else EMPTY


def script_of(text: str | bytes) -> Path:
    """One token a byte."""
    data = text.encode() if isinstance(text, str) else text
    alphabet = dict(zip(range(256), _bytes_in_order(), strict=True))
    return tuple(alphabet[byte] for byte in data)


def _bytes_in_order() -> list[int]:
    """The token of each byte value, found by asking the tokenizer what each token says."""
    pieces = TOKENIZER.pieces
    assert pieces is not None
    found = {pieces[token]: token for token in range(2, 2 + len(_ALPHABET))}
    return [found[bytes([value])] for value in range(256)]


def engine(script: Path, *, sizes: tuple[int, ...] = (), context: int = 512, **more: Any) -> Engine:
    """An engine that says the script and then stops. sizes: of the drafts, none for plain decoding."""
    model = LoadedModel("script", ScriptBackend(script, context), TOKENIZER, TEMPLATE, frozenset({END}))  # type: ignore[arg-type]
    fall_back = more.pop("on_draft_error", "fail")
    drafter = KnowingDrafter(script, sizes or (0,), **more) if sizes or more else None
    parts = Parts("none")
    return Engine(model, parts, exact=False, on_draft_error=fall_back, drafter=drafter)
