"""What a request asks for: names, types and bounds, each refused with one clear line."""

from typing import Any

import pytest
from tests.engine.scripted import engine, script_of

from lope.core.errors import SettingError
from lope.engine.settings import RequestSettings

NAN, INFINITE = float("nan"), float("inf")
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"max_new_tokens": 0}, "max_new_tokens must be at least 1, not 0"),
    ({"max_new_tokens": -3}, "max_new_tokens"),
    ({"max_new_tokens": NAN}, "max_new_tokens"),
    ({"max_new_tokens": 2.5}, "max_new_tokens"),
    ({"max_new_tokens": INFINITE}, "max_new_tokens"),
    ({"max_new_tokens": "5"}, "max_new_tokens"),
    ({"max_new_tokens": None}, "max_new_tokens"),
    ({"temperature": -0.1}, "temperature must lie between 0 and 100, not -0.1"),
    ({"temperature": NAN}, "temperature"),
    ({"temperature": INFINITE}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_k": 0}, "top_k must be at least 1, not 0"),
    ({"top_k": -1}, "top_k"),
    ({"top_k": 1.5}, "top_k"),
    ({"top_k": NAN}, "top_k"),
    ({"top_p": -0.5}, "top_p"),
    ({"top_p": 1.5}, "top_p must lie between 0 and 1, not 1.5"),
    ({"top_p": NAN}, "top_p"),
    ({"min_p": 2.0}, "min_p"),
    ({"min_p": NAN}, "min_p"),
    ({"repetition_penalty": 0.0}, "repetition_penalty"),
    ({"repetition_penalty": NAN}, "repetition_penalty"),
    ({"frequency_penalty": NAN}, "frequency_penalty"),
    ({"presence_penalty": 1000.0}, "presence_penalty"),
    ({"min_new_tokens": -1}, "min_new_tokens"),
    ({"min_new_tokens": 1.5}, "min_new_tokens"),
    ({"seed": -1}, "seed must be at least 0, not -1"),
    ({"seed": 0.5}, "seed"),
    ({"stop_strings": [""]}, "a stop string must not be empty"),
    ({"stop_strings": ""}, "a stop string must not be empty"),
    ({"stop_strings": [3]}, "a stop string is text, not 3"),
    ({"logit_bias": {5: NAN}}, "logit_bias"),
    ({"logit_bias": {-5: 1.0}}, "logit_bias"),
    ({"allowed_tokens": []}, "allowed_tokens"),
    ({"max_tokens": 5}, "no setting 'max_tokens' (there are: "),
]


@pytest.mark.parametrize(("given", "says"), REFUSED, ids=str)
def test_a_setting_out_of_bounds_is_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError) as caught:
        RequestSettings.from_names(given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_unknown_setting_lists_the_right_ones() -> None:
    with pytest.raises(SettingError) as caught:
        RequestSettings.from_names({"temprature": 1.0})
    for name in ("temperature", "top_p", "max_new_tokens", "stop_strings", "logprobs"):
        assert name in str(caught.value)


@pytest.mark.parametrize("given", [given for given, _ in REFUSED[:6]], ids=str)
def test_the_engine_refuses_before_it_reads_the_prompt(given: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        engine(script_of("yes")).generate("go", raw=True, **given)


def test_names_are_sorted_into_sampling_and_limits() -> None:
    made = RequestSettings.from_names(
        {
            "temperature": 0.5,
            "top_k": 3,
            "stop_strings": ["a", "b"],
            "seed": 4,
            "allowed_tokens": [1, 2],
            "logit_bias": {5: -1, 6: 2.5},
            "logprobs": True,
        }
    )
    assert (made.sampling.temperature, made.sampling.top_k, made.sampling.allowed_tokens) == (0.5, 3, (1, 2))
    assert made.sampling.logit_bias == {5: -1, 6: 2.5}
    assert (made.stop_strings, made.seed, made.logprobs, made.max_new_tokens) == (("a", "b"), 4, True, 256)
    assert RequestSettings.from_names({"stop_strings": "end"}).stop_strings == ("end",)
    assert RequestSettings.from_names({}) == RequestSettings()


def test_a_seed_is_drawn_where_none_is_given_and_repeats_the_text() -> None:
    made = engine(script_of("yes"))
    first, second = (made.generate("go", raw=True, temperature=2.0, max_new_tokens=20) for _ in range(2))
    assert first.seed != second.seed
    again = made.generate("go", raw=True, temperature=2.0, max_new_tokens=20, seed=first.seed)
    assert again.tokens == first.tokens != second.tokens
