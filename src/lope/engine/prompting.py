"""From what a user writes to token ids: a question, a conversation, or bare text."""

from collections.abc import Mapping, Sequence
from typing import Any

from lope.core.errors import UsageError
from lope.core.prompt import Path
from lope.models.loaded import LoadedModel

Message = Mapping[str, Any]


def prompt_ids(model: LoadedModel, ask: str | Sequence[Message], *, system: str | None, raw: bool) -> Path:
    """The ids that the model goes on from.

    ask: a question (a user turn of the model's chat template), a list of messages, or with `raw` bare text.
    Raises UsageError for an empty prompt, and where a template is wanted that the model does not have.
    """
    if raw:
        if not isinstance(ask, str) or system is not None:
            raise UsageError("raw takes one text, without messages and without a system prompt")
        if not ask:
            raise UsageError("the prompt is empty")
        return model.tokenizer.encode(_encodable(ask), add_special=True)
    if model.template is None:
        raise UsageError(f"{model.name} has no chat template: use --raw (raw=True) to go on from a bare text")
    return model.template.ids(model.tokenizer, messages(ask, system))


def messages(ask: str | Sequence[Message], system: str | None) -> list[Message]:
    """A question as a list of messages, the system prompt before it."""
    if isinstance(ask, str):
        if not ask.strip():
            raise UsageError("the prompt is empty")
        ask = [{"role": "user", "content": ask}]
    _check_ask(ask)
    if not ask:
        raise UsageError("the conversation is empty: it needs at least one message")
    for message in ask:
        _check_message(message)
    return [*([] if system is None else [{"role": "system", "content": _encodable(system)}]), *ask]


def _check_ask(ask: object) -> None:
    if not isinstance(ask, Sequence) or isinstance(ask, bytes):
        raise UsageError(f"a prompt is a text, a list of messages or a lope.Prompt of token ids, not {ask!r:.60}")


def _check_message(message: object) -> None:
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(content, str) or "role" not in message:
        raise UsageError('a message is {"role": "user" | "assistant" | "system", "content": text}')
    _encodable(content)


def _encodable(text: str) -> str:
    """Refuse text with half a surrogate pair, which is what invalid UTF-8 on the command line becomes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the prompt is not valid UTF-8 (at character {error.start})") from None
    return text
