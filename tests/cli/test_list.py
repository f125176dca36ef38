"""`lope list`: every part that the tables name, with its settings."""

import pytest
from tests.cli.calling import Caller

from lope.core.registry import Room
from lope.drafters import DRAFTERS
from lope.policies import POLICIES
from lope.shapes import SHAPES
from lope.stops import STOPS
from lope.verifiers import VERIFIERS

ROOMS = {"drafters": DRAFTERS, "shapes": SHAPES, "verifiers": VERIFIERS, "policies": POLICIES, "stops": STOPS}


@pytest.mark.parametrize(("name", "room"), ROOMS.items(), ids=list(ROOMS))
def test_every_part_of_a_room_is_listed_with_its_settings(name: str, room: Room, lope: Caller) -> None:
    called = lope("list", name, "--json")
    parts = called.document["parts"]
    assert called.code == 0
    assert [part["name"] for part in parts] == list(room)
    for part in parts:
        assert part["room"] == name
        assert part["summary"].endswith((".", ":"))
        assert isinstance(part["lossless"], bool)
        assert [setting["name"] for setting in part["settings"]] == [s.name for s in room.settings(part["name"])]
        required = [setting["name"] for setting in part["settings"] if setting["required"]]
        made = ",".join(f"{key}=1" for key in required)
        room.make(part["name"] + (f":{made}" if made else ""))


def test_a_part_whose_file_says_nothing_is_listed_by_its_class(lope: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from lope.drafters import ngram

    monkeypatch.setattr(ngram, "__doc__", None)
    parts = {part["name"]: part for part in lope("list", "drafters", "--json").document["parts"]}
    assert ngram.NgramDrafter.__doc__ is not None
    assert parts["ngram"]["summary"] == ngram.NgramDrafter.__doc__.splitlines()[0]


def test_settings_are_shown_as_they_are_written(lope: Caller) -> None:
    assert "branching=3-2-1" in lope("list", "shapes").out.replace("\n", "")


def test_without_a_room_all_are_listed(lope: Caller) -> None:
    document = lope("list", "--json").document
    assert {part["room"] for part in document["parts"]} >= set(ROOMS)


def test_papers_are_named_by_number(lope: Caller) -> None:
    parts = {part["name"]: part for part in lope("list", "verifiers", "--json").document["parts"]}
    assert parts["rejection"]["paper"] == "arXiv:2211.17192"
    assert parts["recursive"]["paper"] == "arXiv:2402.14160"
    parts = {part["name"]: part for part in lope("list", "drafters", "--json").document["parts"]}
    assert parts["eagle"]["paper"] == "arXiv:2503.01840"
    assert parts["standalone"]["paper"] == "arXiv:2403.00858"
    assert parts["eagle"]["settings"][0] == {"name": "path", "type": "str", "default": "", "required": False}


def test_people_see_tables(lope: Caller) -> None:
    called = lope("list")
    assert called.code == 0
    assert "ngram" in called.out
    assert "rsd_s" in called.out
    assert "drafters" in called.out


def test_an_unknown_room_lists_the_right_ones(lope: Caller) -> None:
    called = lope("list", "kitchens", "--json")
    assert called.code == 2
    assert "drafters" in called.document["error"]
