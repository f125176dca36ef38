"""A model with everything that a request needs of it: backend, tokenizer, chat template, stop tokens."""

from dataclasses import dataclass

from lope.models.backend import Backend
from lope.models.chat_template import ChatTemplate
from lope.models.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """What `lope.models.loading.load` returns.

    name:        as the user wrote it.
    template:    None where the model has none (base models).
    stop_tokens: ids that end an answer.
    """

    name: str
    backend: Backend
    tokenizer: Tokenizer
    template: ChatTemplate | None
    stop_tokens: frozenset[int]
