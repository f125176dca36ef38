"""Configurations as they are written on the command line, and plain decoding that is always there twice."""

import pytest

from lope.bench.configuration import Configuration, Lineup
from lope.core.errors import SettingError, UsageError
from lope.engine.parts import Parts


def test_a_configuration_names_parts_and_their_settings() -> None:
    read = Configuration.read("drafter=model:path=a/b,temperature=0.5,policy=fixed:nodes=3,depth=2,draft-stop=never")
    assert read.parts == Parts(
        drafter="model:path=a/b,temperature=0.5", policy="fixed:nodes=3,depth=2", draft_stop="never"
    )
    within = Configuration.read(r"drafter=model:path=a\,b,policy=fixed")
    assert within.parts == Parts(drafter=r"model:path=a\,b", policy="fixed")
    assert Configuration.read("name=mine,drafter=ngram").name == "mine"
    assert Configuration.read("drafter=ngram").name == "drafter=ngram"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write it as"),
        ("ngram", "no setting 'ngram'"),
        ("drafter=", "write it as"),
        ("drafter=ngram,colour=red", "no setting 'colour=red'"),
        ("drafter=ngram,drafter=none", "given twice"),
        ("drafter=ngrm", "did you mean 'ngram'"),
        ("drafter=ngram,policy=nothing", "there are: "),
    ],
)
def test_a_wrong_configuration_is_one_line_that_says_what_is_right(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Configuration.read(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        ([], ["plain", "plain again", "ngram"]),
        (["drafter=none", "drafter=ngram"], ["drafter=none", "plain", "drafter=ngram"]),
        (["drafter=ngram"], ["drafter=ngram", "plain", "plain again"]),
        (["name=a,drafter=none", "drafter=ngram", "name=b,drafter=none"], ["a", "drafter=ngram", "b"]),
        (["name=plain,drafter=none"], ["plain", "plain again"]),
    ],
)
def test_plain_decoding_is_there_twice_and_the_first_configuration_is_the_reference(
    texts: list[str], names: list[str]
) -> None:
    lineup = Lineup.of(texts)
    assert [configuration.name for configuration in lineup.configurations] == names
    assert lineup.reference == names[0]
    plain = [configuration.name for configuration in lineup.configurations if configuration.is_plain]
    assert plain == [lineup.plain, lineup.again]


def test_two_configurations_of_one_name_are_refused() -> None:
    with pytest.raises(SettingError, match="two configurations are called 'drafter=ngram'"):
        Lineup.of(["drafter=ngram", "drafter=ngram"])
