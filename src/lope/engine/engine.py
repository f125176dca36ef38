"""The engine: a target, a drafter that fits it, and the loop that makes answers with them."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from lope.core import checks
from lope.core.cost import Calibration
from lope.core.draft import EMPTY
from lope.core.errors import UsageError
from lope.core.noise import key
from lope.core.prompt import Path, Prompt
from lope.core.protocols import Drafter, Policy, Target
from lope.drafters.none import NoneDrafter
from lope.engine.answer import Answer, Piece
from lope.engine.calibration import EngineCalibration
from lope.engine.ending import TextEnding
from lope.engine.loop import Loop
from lope.engine.parts import Parts
from lope.engine.prompting import Message, prompt_ids
from lope.engine.request import Request
from lope.engine.settings import RequestSettings
from lope.models.loaded import LoadedModel

Ask = str | Sequence[Message] | Prompt


class Stream:
    """An answer while it is made: iterate for its pieces, then read `answer`. Breaking off keeps what was said."""

    def __init__(self, loop: Loop, request: Request) -> None:
        self._pieces = loop.run([request])
        self._request = request

    def __iter__(self) -> Iterator[Piece]:
        return (piece for _, piece in self._pieces)

    @property
    def answer(self) -> Answer:
        """The answer so far; finished when the iteration is."""
        return self._request.answer()


class Engine:
    """Answers prompts with one target and one drafter. Settings are those of `RequestSettings` and `Sampling`."""

    def __init__(
        self,
        model: LoadedModel,
        parts: Parts,
        *,
        exact: bool,
        on_draft_error: str = "fail",
        drafter: Drafter[Any, Any] | None = None,
        policy: Policy | None = None,
    ) -> None:
        if on_draft_error not in ("fail", "fall-back"):
            raise UsageError(f"on_draft_error is 'fail' or 'fall-back', not {on_draft_error!r}")
        self.model = model
        self.parts = parts
        self.exact = exact
        self.target: Target[Any] = model.backend.target(exact)
        self.drafter: Drafter[Any, Any] = drafter or parts.make_drafter(model)
        self.fall_back = on_draft_error == "fall-back"
        self._policy_settings = parts.make_policy()
        self._given_policy = policy
        self._numbered = 0
        parts.make_verifier(self.drafter, greedy=True)

    @cached_property
    def calibration(self) -> Calibration | None:
        """What passes and drafts cost here, if `lope calibrate` or the policy `calibrated` has saved it; else None."""
        return EngineCalibration(self).saved()

    @cached_property
    def policy(self) -> Policy:
        """The policy; one that needs a calibration measures it now, unless it was saved."""
        return self._given_policy or self._policy_settings.attach(EngineCalibration(self).ready)

    @cached_property
    def loop(self) -> Loop:
        """The loop over the rounds of this engine's requests."""
        return Loop(self.target, self.drafter, self.policy, self.fall_back)

    def stream(self, ask: Ask, *, system: str | None = None, raw: bool = False, **settings: Any) -> Stream:
        """Make one answer piece by piece, one piece a pass.

        ask: a question, a list of messages, or a Prompt of token ids. raw: no chat template around a string.
        settings: fields of RequestSettings (max_new_tokens, seed, stop_strings, ...) and Sampling (temperature, ...).
        """
        request = self.open(self._prompt(ask, system, raw), RequestSettings.from_names(settings))
        return Stream(self.loop, request)

    def generate(self, ask: Ask, *, system: str | None = None, raw: bool = False, **settings: Any) -> Answer:
        """Make one answer."""
        stream = self.stream(ask, system=system, raw=raw, **settings)
        for _ in stream:
            pass
        return stream.answer

    def generate_batch(
        self,
        asks: Sequence[Ask],
        *,
        num_return_sequences: int = 1,
        system: str | None = None,
        raw: bool = False,
        **settings: Any,
    ) -> list[Answer]:
        """Answer all prompts in one packed run: the same texts as one by one.

        num_return_sequences: that many answers to each prompt, the prompt run once; they stand side by side. The first
        one has the request's own seed, the others seeds made from it.
        """
        checks.whole("num_return_sequences", num_return_sequences, 1)
        if isinstance(asks, str):
            raise UsageError("generate_batch takes a list of prompts; one text goes to generate")
        wanted = RequestSettings.from_names(settings)
        requests = []
        for ask in asks:
            first = self.open(self._prompt(ask, system, raw), wanted)
            requests.append(first)
            if num_return_sequences > 1:
                self._run_prompt(first)
                requests += [self.fork(first, wanted, index) for index in range(1, num_return_sequences)]
        for _ in self.loop.run(requests):
            pass
        return [request.answer() for request in requests]

    def open(self, prompt: Prompt, settings: RequestSettings) -> Request:
        """A request whose prompt is pending. Raises UsageError where it does not fit, before anything runs."""
        if not prompt.ids:
            raise UsageError("the prompt is empty: it has no tokens to go on from")
        session = self.target.open(prompt)
        if session.room < 1:
            context = self.model.backend.context
            raise UsageError(f"the prompt fills the model's context of {context} tokens: there is no room to answer")
        return self.request(session, lambda: self.drafter.open(prompt, session), prompt, settings)

    def request(self, session: Any, beside: Callable[[], Any], context: Prompt, settings: RequestSettings) -> Request:
        """A request that goes on from an open session, all of which is `context`; `beside` makes the drafter's."""
        sampling = settings.sampling
        # the loop is made here: what it must measure is measured before the request's clock starts
        draft_session, draft_error = self.loop.begin_drafting(beside)
        stops = frozenset() if settings.ignore_stop else self.model.stop_tokens
        self._numbered += 1
        return Request(
            self._numbered,
            session=session,
            draft_session=draft_session,
            sampler=sampling.begin(context, self.model.stop_tokens),
            draft_sampler=self.drafter.sampling(sampling).begin(context, self.model.stop_tokens),
            verifier=self.parts.make_verifier(self.drafter, sampling.temperature == 0.0),
            ending=TextEnding(
                self.model.tokenizer,
                stop_tokens=stops,
                stop_strings=settings.stop_strings,
                max_new_tokens=min(settings.max_new_tokens, session.room),
            ),
            seed=random.SystemRandom().getrandbits(31) if settings.seed is None else settings.seed,
            context=context,
            logprobs=settings.logprobs,
            draft_error=draft_error,
        )

    def fork(self, request: Request, settings: RequestSettings, index: int) -> Request:
        """Another answer to the same context, with a seed of its own."""
        session = request.session.fork()
        own = replace(settings, seed=key(request.seed, index) >> 33)

        def beside() -> Any:
            if request.draft_error is not None:  # what the drafter holds cannot be relied on
                return self.drafter.open(request.context, session)
            return self.drafter.fork(request.draft_session, session)

        return self.request(session, beside, request.context, own)

    def plain(self) -> "Engine":
        """The same target, decoding one token a pass."""
        parts = replace(self.parts, drafter="none", verifier="auto", policy="fixed")
        return self._with(parts, NoneDrafter(), self._given_policy)

    def with_verifier(self, verifier: str) -> "Engine":
        """The same target and drafter, verified by another rule."""
        return self._with(replace(self.parts, verifier=verifier), self.drafter, self._given_policy)

    def calibrated(self) -> "Engine":
        """The same target and drafter, drafting as much as this machine's costs make worth it."""
        return self._with(replace(self.parts, policy="calibrated"), self.drafter, None)

    def with_policy(self, policy: Policy) -> "Engine":
        """The same target and drafter under another policy."""
        return self._with(self.parts, self.drafter, policy)

    def _with(self, parts: Parts, drafter: Drafter[Any, Any], policy: Policy | None) -> "Engine":
        mode = "fall-back" if self.fall_back else "fail"
        return Engine(self.model, parts, exact=self.exact, on_draft_error=mode, drafter=drafter, policy=policy)

    def ids(self, ask: Ask, *, system: str | None = None, raw: bool = False) -> Path:
        """The token ids of a prompt, template and all."""
        return self._prompt(ask, system, raw).ids

    def _prompt(self, ask: Ask, system: str | None, raw: bool) -> Prompt:
        return ask if isinstance(ask, Prompt) else Prompt(prompt_ids(self.model, ask, system=system, raw=raw))

    def _run_prompt(self, request: Request) -> None:
        """Run the prompt without emitting anything, so that forks need not."""
        self.target.score([request.job(EMPTY, self.drafter.needs)])
