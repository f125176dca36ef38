"""Turns: the cache is reused, and what the model then reads is what a fresh reading of the conversation would hold."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.scripted import END, TOKENIZER, engine, script_of
from tests.laws import answers as laws

from lope.core.errors import UsageError
from lope.core.prompt import Path, Prompt
from lope.engine.answer import Answer
from lope.engine.conversation import Conversation
from lope.engine.engine import Engine
from lope.models.loaded import LoadedModel

Tiny = Callable[..., LoadedModel]
PARTS = [
    ("none", "chain"),
    ("ngram", "chain"),
    ("truncated:layers=2", "rsd_s"),
    ("standalone:path={standalone}", "chain"),
    ("eagle:path={eagle}", "rsd_s"),
]


def say(conversation: Conversation, text: str) -> Answer:
    stream = conversation.say(text)
    list(stream)
    return stream.answer


def read(conversation: Conversation) -> Path:
    """What the model's session holds."""
    request = conversation._request
    assert request is not None
    return (*request.context.ids, *request.answer().tokens)


@pytest.mark.parametrize(("drafter", "shape"), PARTS)
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.8, "seed": 2, "repetition_penalty": 1.2}], ids=str)
def test_a_turn_equals_a_fresh_reading_of_what_was_read_and_written(
    drafter: str, shape: str, settings: dict[str, Any], tiny_model: Tiny, tiny_folder: Callable[..., Any]
) -> None:
    made = laws.engine(tiny_model("qwen2"), laws.named(drafter, "qwen2", tiny_folder), shape)
    conversation = Conversation(made, "be brief", max_new_tokens=10, **settings)
    before: Path = ()
    for turn, text in enumerate(("the cat", "the cat and the dog", "on the mat")):
        answer = say(conversation, text)
        context = read(conversation)[: -len(answer.tokens)]
        assert context[: len(before)] == before
        assert conversation.reused == len(before)
        assert (conversation.reused > 0) == (turn > 0)
        fresh = made.generate(Prompt(context), max_new_tokens=10, **settings)
        assert answer.tokens == fresh.tokens
        assert answer.stats.prompt_tokens == len(context)
        before = read(conversation)
    assert [message["role"] for message in conversation.messages] == ["system", *("user", "assistant") * 3]


def test_the_stop_token_is_part_of_the_next_turns_context() -> None:
    """Otherwise the model would read two turns as one."""
    script = script_of("yes")
    conversation = Conversation(engine(script, sizes=(3,)))
    assert say(conversation, "one").tokens == (*script, END)
    say(conversation, "two")
    text = TOKENIZER.decode(read(conversation), skip_special=False)
    assert text == "user: one<|end|>assistant: yes<|end|>user: two<|end|>assistant: yes<|end|>"
    assert read(conversation) == TOKENIZER.encode(text)


@pytest.mark.parametrize("settings", [{"max_new_tokens": 2}, {"stop_strings": ["es"]}], ids=str)
def test_a_turn_that_ended_otherwise_is_closed_by_the_template(settings: dict[str, Any]) -> None:
    conversation = Conversation(engine(script_of("yes")), **settings)
    said = say(conversation, "one").text
    second = say(conversation, "two")
    context = TOKENIZER.decode(read(conversation)[: -len(second.tokens)], skip_special=False)
    assert context == f"user: one<|end|>assistant: {said}<|end|>user: two<|end|>assistant: "


def test_a_turn_broken_off_between_rounds_is_filed_as_far_as_it_went(tiny_model: Tiny) -> None:
    made = laws.engine(tiny_model("llama3"), "ngram")
    conversation = Conversation(made, max_new_tokens=20, ignore_stop=True)
    stream = conversation.say("the cat")
    for number, _ in enumerate(stream):
        if number == 4:
            break
    told = stream.answer
    assert 5 <= len(told.tokens) < 20
    assert conversation.messages[-1] == {"role": "assistant", "content": told.text}
    answer = say(conversation, "and then?")
    context = read(conversation)[: -len(answer.tokens)]
    assert answer.tokens == made.generate(Prompt(context), max_new_tokens=20, ignore_stop=True).tokens


def test_a_turn_that_was_never_begun_is_forgotten(tiny_model: Tiny) -> None:
    conversation = Conversation(laws.engine(tiny_model("llama3")), max_new_tokens=6)
    first = say(conversation, "the cat")
    conversation.say("never mind")
    say(conversation, "the dog")
    assert [message["content"] for message in conversation.messages] == [
        "the cat",
        first.text,
        "the dog",
        conversation.messages[-1]["content"],
    ]


def test_a_turn_that_does_not_fit_is_refused_and_the_conversation_goes_on(tiny_model: Tiny) -> None:
    made = laws.engine(tiny_model("llama3"))
    conversation = Conversation(made, max_new_tokens=6, ignore_stop=True)
    first = say(conversation, "the cat")
    with pytest.raises(UsageError, match="context"):
        conversation.say("zx " * 200)
    answer = say(conversation, "the dog")
    assert [message["content"] for message in conversation.messages[:3]] == ["the cat", first.text, "the dog"]
    context = read(conversation)[: -len(answer.tokens)]
    assert answer.tokens == made.generate(Prompt(context), max_new_tokens=6, ignore_stop=True).tokens


def test_a_full_context_is_refused_with_one_clear_line(tiny_model: Tiny) -> None:
    conversation = Conversation(laws.engine(tiny_model("llama3")), max_new_tokens=400, ignore_stop=True)
    answer = say(conversation, "the cat")
    assert len(read(conversation)) == 256
    assert len(answer.tokens) > 200
    with pytest.raises(UsageError, match="context"):
        conversation.say("the dog")


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_turn_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the prompt is empty"):
        Conversation(engine(script_of("yes"))).say(text)


def test_an_unknown_setting_is_refused_before_the_first_turn() -> None:
    with pytest.raises(UsageError, match="no setting 'heat'"):
        Conversation(engine(script_of("yes")), heat=1.0)


def test_a_model_without_a_template_goes_on_from_bare_text(tiny_model: Tiny) -> None:
    model = tiny_model("llama3")
    bare = LoadedModel(model.name, model.backend, model.tokenizer, None, model.stop_tokens)
    made: Engine = laws.engine(bare)
    conversation = Conversation(made, max_new_tokens=5)
    first = say(conversation, "the cat")
    say(conversation, "sat")
    ids = (*model.tokenizer.encode("the cat"), *first.tokens, *model.tokenizer.encode("sat"))
    assert read(conversation)[: len(ids)] == ids


def test_a_turn_cannot_go_on_after_another_has_begun() -> None:
    """They share a cache: the older one would write into the newer one's context."""
    conversation = Conversation(engine(script_of("yes, of course")))
    first = conversation.say("one")
    for _ in first:
        break
    list(conversation.say("two"))
    with pytest.raises(UsageError, match="another one has begun"):
        list(first)
    assert say(conversation, "three").text == "yes, of course"
