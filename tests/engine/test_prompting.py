"""Questions, conversations and bare text; what cannot be read is refused."""

from typing import Any

import pytest
from tests.engine.scripted import BEGIN, TOKENIZER, engine, script_of

from lope.core.errors import LopeError, ModelError, UsageError
from lope.core.prompt import Prompt
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.chat_template import ChatTemplate
from lope.models.loaded import LoadedModel

PLAIN = engine(script_of("yes"))


def with_template(source: str | None) -> Engine:
    model = PLAIN.model
    template = None if source is None else ChatTemplate(source)
    return Engine(
        LoadedModel(model.name, model.backend, model.tokenizer, template, model.stop_tokens), Parts("none"), exact=False
    )


def test_a_question_a_conversation_and_bare_text_are_read_as_what_they_are() -> None:
    text = TOKENIZER.decode(PLAIN.ids("why?", system="be brief"), skip_special=False)
    assert text == "system: be brief<|end|>user: why?<|end|>assistant: "
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    text = TOKENIZER.decode(PLAIN.ids(turns), skip_special=False)
    assert text == "user: a<|end|>assistant: b<|end|>user: c<|end|>assistant: "
    assert TOKENIZER.decode(PLAIN.ids(" why?\n", raw=True)) == " why?\n"
    assert PLAIN.ids(Prompt((BEGIN, 5))) == (BEGIN, 5)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("", {}, "the prompt is empty"),
    ("  \n\t", {}, "the prompt is empty"),
    ("", {"raw": True}, "the prompt is empty"),
    ([], {}, "the conversation is empty"),
    ([{"role": "user"}], {}, "a message is"),
    ([{"content": "a"}], {}, "a message is"),
    ([{"role": "user", "content": 5}], {}, "a message is"),
    (["why?"], {}, "a message is"),
    ("why?", {"raw": True, "system": "be brief"}, "raw takes one text"),
    ([{"role": "user", "content": "a"}], {"raw": True}, "raw takes one text"),
    ("caf\udce9", {}, "not valid UTF-8"),
    ("caf\udce9", {"raw": True}, "not valid UTF-8"),
    ("why?", {"system": "caf\udce9"}, "not valid UTF-8"),
    (Prompt(()), {}, "the prompt is empty"),
]


@pytest.mark.parametrize(("ask", "how", "says"), REFUSED, ids=repr)
def test_what_cannot_be_read_is_refused_with_one_line(ask: Any, how: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        PLAIN.generate(ask, **how)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_white_space_is_a_prompt_where_text_is_bare() -> None:
    assert PLAIN.generate(" ", raw=True).text == "yes"


def test_a_template_that_raises_is_one_clear_line() -> None:
    raising = with_template("{{ raise_exception('roles must\nalternate') }}")
    with pytest.raises(ModelError, match="roles must alternate"):
        raising.generate("why?")


@pytest.mark.parametrize(
    "source", ["{% if %}", "{{ 1 / 0 }}", "{{ messages.nothing.at.all }}", "{% for m in 5 %}{% endfor %}"]
)
def test_a_broken_template_is_one_clear_line(source: str) -> None:
    with pytest.raises(LopeError, match="the chat template"):
        with_template(source).generate("why?")


def test_a_template_that_says_nothing_leaves_an_empty_prompt() -> None:
    with pytest.raises(UsageError, match="the prompt is empty"):
        with_template("").generate("why?")


def test_without_a_template_a_question_needs_raw() -> None:
    bare = with_template(None)
    with pytest.raises(UsageError, match="no chat template: use --raw"):
        bare.generate("why?")
    assert bare.generate("why?", raw=True).text == "yes"


def test_a_batch_refuses_before_it_runs() -> None:
    with pytest.raises(UsageError, match="the prompt is empty"):
        PLAIN.generate_batch(["why?", ""])
    with pytest.raises(UsageError, match="num_return_sequences must be a whole number of at least 1, not 0"):
        PLAIN.generate_batch(["why?"], num_return_sequences=0)
    assert PLAIN.generate_batch([]) == []
