"""A model's chat template: messages to the text that the model was trained on."""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lope.core.errors import ModelError
from lope.models.tokenizer import Tokenizer

Message = Mapping[str, Any]


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template, run in a sandbox with what transformers gives one: the same names, filters and white space.

    source:         the template.
    special_tokens: `bos_token`, `eos_token`, ... -> text; variables of the template.
    """

    source: str
    special_tokens: Mapping[str, str] = field(default_factory=dict)

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """The text of a conversation; messages are `{"role": ..., "content": ...}`, system message first if any.

        Raises ModelError where the template is broken or refuses the messages.
        """
        try:
            return self._compiled.render(
                messages=[dict(message) for message in messages],
                tools=None,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self.special_tokens,
            )
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - a template is somebody's program and may raise anything
            raise ModelError(f"the chat template cannot render these messages: {_one_line(error)}") from None

    def ids(self, tokenizer: Tokenizer, messages: Sequence[Message], *, earlier: Sequence[int] = ()) -> tuple[int, ...]:
        """The ids of a conversation up to where the model answers.

        earlier: ids of the conversation so far, as the model read and wrote them. Where the template keeps that text as
        it is, they are kept as they are (written text need not be how the tokenizer would cut it), so that a cached
        context stays a prefix. Where it does not (it drops thoughts, say), the ids are those of the new text.
        """
        text = self.render(messages)
        whole = tokenizer.encode(text)
        if not earlier:
            return whole
        said = tokenizer.decode(earlier, skip_special=False)
        if not text.startswith(said):
            return whole
        continued = (*earlier, *tokenizer.encode(text[len(said) :]))
        same = tokenizer.decode(continued, skip_special=False) == tokenizer.decode(whole, skip_special=False)
        return continued if same else whole

    @cached_property
    def _compiled(self) -> jinja2.Template:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        try:
            return environment.from_string(self.source)
        except jinja2.TemplateSyntaxError as error:
            raise ModelError(f"the chat template is not valid Jinja: line {error.lineno}: {_one_line(error)}") from None


class _Generation(jinja2.ext.Extension):
    """`{% generation %}`: marks what the model wrote, for training; here its body is rendered as it stands."""

    tags = {"generation"}  # noqa: RUF012 - jinja reads it from the class

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.datetime.now().strftime(pattern)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without the HTML escapes of Jinja's own filter."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
