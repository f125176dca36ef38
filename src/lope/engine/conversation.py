"""A conversation: the cache is kept between turns, as far as the template lets the earlier text stand."""

from typing import Any

from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt
from lope.engine.engine import Engine, Stream
from lope.engine.prompting import Message, messages
from lope.engine.request import Request
from lope.engine.settings import RequestSettings


class Conversation:
    """Turns of user and model. `say` streams the model's turn; `finish` files it. A turn that fails is forgotten."""

    def __init__(self, engine: Engine, system: str | None = None, **settings: Any) -> None:
        self._engine = engine
        self._settings = RequestSettings.from_names(settings)
        self._system = system
        self._messages: list[Message] = []
        self._context: Path = ()
        self._request: Request | None = None
        self._latest: Stream | None = None
        self.reused = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return tuple(self._messages)

    def say(self, text: str) -> Stream:
        """Add a user turn and stream the answer; once it has been iterated, the turn is part of the conversation."""
        asked = [*self._messages, *messages(text, self._system if not self._messages else None)]
        template = self._engine.model.template
        earlier = self._context
        if template is None:
            said = Prompt((*earlier, *self._engine.ids(text, raw=True)))
        else:
            said = Prompt(template.ids(self._engine.model.tokenizer, asked, earlier=earlier))
        self._latest = _Turn(self, self._go_on(said, earlier), asked)
        return self._latest

    def check_latest(self, turn: Stream) -> None:
        """Refuse to go on with a turn after which another one has begun: they share one cache."""
        if turn is not self._latest:
            raise UsageError("this turn is over: another one has begun since")

    def file(self, request: Request, asked: list[Message]) -> None:
        """Remember a turn: the context is what was read and written, whatever the template would make of it."""
        answer = request.answer()
        self._messages = [*asked, {"role": "assistant", "content": answer.text}]
        self._context = (*request.context.ids, *answer.tokens)
        self._request = request

    def _go_on(self, said: Prompt, earlier: Path) -> Request:
        before, self._request = self._request, None
        if before is None or said.ids[: len(earlier)] != earlier:
            self.reused = 0
            return self._engine.open(said, self._settings)
        fresh = Prompt(said.ids[len(earlier) :])
        self.reused = len(earlier)
        before.session.extend(fresh)

        def beside() -> Any:
            if before.draft_error is not None:  # it has not heard the end of the last turn
                return self._engine.drafter.open(said, before.session)
            before.draft_session.extend(fresh)
            return before.draft_session

        return self._engine.request(before.session, beside, said, self._settings)


class _Turn(Stream):
    """A stream that files itself when its iteration ends or is broken off between rounds, not if it fails."""

    def __init__(self, conversation: Conversation, request: Request, asked: list[Message]) -> None:
        super().__init__(conversation._engine.loop, request)
        self._conversation = conversation
        self._asked = asked

    def __iter__(self) -> Any:
        self._conversation.check_latest(self)
        try:
            yield from super().__iter__()
        except Exception:
            raise  # a turn that fails is forgotten
        except BaseException:
            self._conversation.file(self._request, self._asked)
            raise
        self._conversation.file(self._request, self._asked)
