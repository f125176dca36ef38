"""Chat templates: what transformers renders, in a sandbox; a conversation goes on from what was really read."""

import datetime
from typing import Any

import pytest
import tokenizers
import transformers
from tests.models import families

from lope.core.errors import ModelError
from lope.models.chat_template import ChatTemplate
from lope.models.tokenizer import Tokenizer

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "the cat's <b>&amp; 'quotes'</b>\n  two lines"},
    {"role": "assistant", "content": " sat "},
    {"role": "user", "content": "日本語 👍"},
]
TEMPLATES = {
    "plain": families.TEMPLATE,
    "white space": "{% for m in messages %}\n    {% if m.role == 'user' %}\n  U: {{ m.content }}\n    {% endif %}\n"
    "{% endfor %}",
    "tojson": "{{ messages | tojson }} {{ messages[0] | tojson(indent=2) }} "
    "{{ {'b': 1, 'a': 2} | tojson(sort_keys=True) }}",
    "loop controls": "{% for m in messages %}{% if loop.index == 2 %}{% continue %}{% endif %}{{ m.content }}"
    "{% if loop.index == 3 %}{% break %}{% endif %}{% endfor %}",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}\n{% endfor %}",
    "special tokens": "{{ bos_token }}{{ messages[1]['content'] | trim }}{{ eos_token }}",
    "tools": "{% if tools is none %}none{% else %}some{% endif %}{% if tools %}x{% endif %}",
    "namespace": "{% set ns = namespace(n=0) %}"
    "{% for m in messages %}{% set ns.n = ns.n + m.content | length %}{% endfor %}{{ ns.n }}",
    "slices": "{{ messages[1:] | map(attribute='role') | join(',') }}{{ messages[0].content.split(' ')[-1] }}",
}


def reference(source: str) -> Any:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=families.tokenizer(), bos_token="<|begin|>", eos_token="<|end|>", chat_template=source
    )


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, {"bos_token": "<|begin|>", "eos_token": "<|end|>"})


@pytest.mark.parametrize("case", list(TEMPLATES))
@pytest.mark.parametrize("prompt", [True, False])
def test_the_text_is_that_of_transformers(case: str, prompt: bool) -> None:
    expected = reference(TEMPLATES[case]).apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=prompt)
    assert template(TEMPLATES[case]).render(MESSAGES, add_generation_prompt=prompt) == expected


def test_the_date_can_be_asked_for() -> None:
    found = template("{{ strftime_now('%Y') }}").render(MESSAGES)
    assert int(found) in (datetime.datetime.now().year - 1, datetime.datetime.now().year)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ raise_exception('roles must\n alternate') }}", "cannot render these messages: roles must alternate"),
        ("{% for m in messages %}", "is not valid Jinja: line 1"),
        ("{{ messages[9].content }}", "cannot render these messages"),
        ("{{ 1 / 0 }}", "cannot render these messages: division by zero"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "cannot render these messages"),
        ("{{ messages.append({}) }}", "cannot render these messages"),
        ("{% for i in range(10000000) %}x{% endfor %}", "cannot render these messages"),
    ],
)
def test_a_template_that_raises_is_one_clear_error(source: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        template(source).render(MESSAGES)
    assert "\n" not in str(caught.value)


def conversation(tokenizer: Tokenizer, said: tuple[int, ...]) -> tuple[tuple[int, ...], list[dict[str, str]]]:
    """A first turn and the ids that the model wrote to it (with its end token): all ids, all messages."""
    messages = [{"role": "user", "content": "the dog"}]
    first = template(families.TEMPLATE).ids(tokenizer, messages)
    answer = {"role": "assistant", "content": tokenizer.decode(said)}
    return (*first, *said), [*messages, answer, {"role": "user", "content": "and the cat"}]


def test_a_next_turn_goes_on_from_the_ids_that_were_written() -> None:
    tokenizer = Tokenizer(families.tokenizer())
    letters = tuple(tokenizer.encode(letter)[0] for letter in "the cat")  # not how the tokenizer would cut it
    assert letters != tokenizer.encode("the cat")
    earlier, messages = conversation(tokenizer, (*letters, 1))
    ids = template(families.TEMPLATE).ids(tokenizer, messages, earlier=earlier)
    assert ids[: len(earlier)] == earlier
    text = template(families.TEMPLATE).render(messages)
    assert tokenizer.decode(ids, skip_special=False) == text
    assert ids[len(earlier) :] == tokenizer.encode(text[len(tokenizer.decode(earlier, skip_special=False)) :])


def test_a_next_turn_after_an_answer_that_was_cut_off() -> None:
    tokenizer = Tokenizer(families.tokenizer())
    earlier, messages = conversation(tokenizer, tokenizer.encode("the cat"))  # no end token: the budget ran out
    ids = template(families.TEMPLATE).ids(tokenizer, messages, earlier=earlier)
    assert ids[: len(earlier)] == earlier
    assert tokenizer.decode(ids, skip_special=False) == template(families.TEMPLATE).render(messages)


def test_a_template_that_drops_earlier_text_is_followed() -> None:
    tokenizer = Tokenizer(families.tokenizer())
    forgetful = template("{{ messages[-1].content }}<|begin|>")
    earlier, messages = conversation(tokenizer, tokenizer.encode("the cat"))
    assert forgetful.ids(tokenizer, messages, earlier=earlier) == tokenizer.encode("and the cat<|begin|>")


def test_without_earlier_ids_the_ids_are_those_of_transformers() -> None:
    expected = reference(families.TEMPLATE).apply_chat_template(MESSAGES, add_generation_prompt=True)["input_ids"]
    raw = tokenizers.Tokenizer.from_str(families.tokenizer().to_str())
    assert list(template(families.TEMPLATE).ids(Tokenizer(raw), MESSAGES)) == expected
