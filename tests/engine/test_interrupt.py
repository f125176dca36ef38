"""Ctrl-C acts between rounds: never in the middle of one, and what follows is as if it had not been pressed."""

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.engine.scripted import END, KnowingDrafter, engine, script_of
from tests.laws import answers as laws

from lope.engine.conversation import Conversation
from lope.engine.engine import Engine
from lope.engine.interrupt import Uninterrupted
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel

SCRIPT = script_of("the quick brown fox")


@pytest.fixture(autouse=True)
def _pythons_own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def pressed(times: int) -> list[int]:
    """How far a block comes in which Ctrl-C is pressed after each step."""
    done = []
    try:
        with Uninterrupted():
            for step in range(times):
                done.append(step)
                press()
            done.append(times)
    except KeyboardInterrupt:
        return done
    raise AssertionError("nothing was raised")


def test_a_press_waits_for_the_end_of_the_block() -> None:
    assert pressed(1) == [0, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_press_does_not_wait() -> None:
    assert pressed(2) == [0, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_the_block_is_not_hidden_by_a_press() -> None:
    def fail() -> None:
        with Uninterrupted():
            press()
            raise RuntimeError("the error")

    with pytest.raises(RuntimeError, match="the error"):
        fail()


def test_a_handler_of_the_users_own_is_left_alone() -> None:
    heard = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with Uninterrupted():
        press()
    assert heard == [signal.SIGINT]


def test_other_threads_have_no_handlers() -> None:
    raised = []

    def work() -> None:
        try:
            with Uninterrupted():
                pass
        except ValueError as error:  # what signal.signal raises outside the main thread
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not raised


def test_a_round_in_which_it_is_pressed_is_finished() -> None:
    """Pressed while the third draft is made; then the same stream goes on."""
    plain = engine(SCRIPT)
    drafter = KnowingDrafter(SCRIPT, (2,), trouble=lambda number: press() if number == 2 else None)
    stream = Engine(plain.model, plain.parts, exact=False, drafter=drafter).stream("go", raw=True)
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    assert stream.answer.tokens == SCRIPT[:9], "three rounds of two drafted tokens and one more"
    assert stream.answer.text == "the quick"


def test_a_conversation_goes_on_after_it(tiny_model: Callable[..., LoadedModel]) -> None:
    model = tiny_model("llama3")

    class Pressing:
        def __init__(self) -> None:
            self._inner = Parts("truncated:layers=2", "rsd_s").make_drafter(model)
            self.rounds = 0

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        def propose(self, asks: object) -> object:
            self.rounds += 1
            if self.rounds == 2:
                press()
            return self._inner.propose(asks)  # type: ignore[arg-type]

    made = Engine(model, Parts("truncated:layers=2", "rsd_s"), exact=True, drafter=Pressing())  # type: ignore[arg-type]
    conversation = Conversation(made, max_new_tokens=16, ignore_stop=True)
    stream = conversation.say("the cat")
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    assert 2 <= len(stream.answer.tokens) < 16
    again = conversation.say("the dog")
    list(again)
    request = conversation._request
    assert request is not None
    plain = laws.engine(model)
    assert again.answer.tokens == plain.generate(request.context, max_new_tokens=16, ignore_stop=True).tokens


def test_a_batch_can_be_broken_off(tiny_model: Callable[..., LoadedModel]) -> None:
    plain = engine(SCRIPT)
    drafter = KnowingDrafter(SCRIPT, (2,), trouble=lambda number: press() if number == 1 else None)
    made = Engine(plain.model, plain.parts, exact=False, drafter=drafter)
    with pytest.raises(KeyboardInterrupt):
        made.generate_batch(["a", "b"], raw=True)
    assert made.generate("go", raw=True).tokens == (*SCRIPT, END)
