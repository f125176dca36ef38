"""JSON of anybody's files: what is wrong with it is a ValueError in one line."""

import json

import pytest

from lope.core import json_reader


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, b"\xff", "nope", '{"a": 1} 2'])
def test_what_is_no_json_is_one_line(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        json_reader.parsed(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [("9" * 5000, float("inf")), ("-" + "9" * 5000, float("-inf"))])
def test_a_number_of_thousands_of_digits_is_read(text: str, value: float) -> None:
    assert json_reader.parsed(text) == value


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63) + 1, 10**18])
def test_whole_numbers_of_64_bits_are_whole(value: int) -> None:
    found = json_reader.parsed(str(value))
    assert type(found) is int
    assert found == value


@pytest.mark.parametrize("value", [2**63, 10**19, -(10**25)])
def test_larger_ones_become_floats(value: int) -> None:
    found = json_reader.parsed(str(value))
    assert type(found) is float
    assert found == float(value)


def test_all_else_is_as_json_says() -> None:
    document = {"a": [1, 2.5, None, True, "x\u00e9"], "b": {}}
    assert json_reader.parsed(json.dumps(document)) == document
