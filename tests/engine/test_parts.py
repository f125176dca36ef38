"""Parts by name: what is unknown, what does not fit, and which verifier was taken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws import answers as laws

from lope.core import commas
from lope.core.errors import LopeError, UsageError
from lope.drafters import DRAFTERS
from lope.drafters.hybrid import HybridDrafter
from lope.engine.engine import Engine
from lope.engine.opening import load
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel

Tiny = Callable[..., LoadedModel]

REFUSED: list[tuple[dict[str, str], str]] = [
    ({"drafter": "ngrm"}, "did you mean 'ngram'? (there are: none, ngram, model"),
    ({"drafter": "ngram:max_gram=3"}, "ngram has no setting 'max_gram=3' (it takes: max_ngram"),
    ({"drafter": "ngram:max_ngram=0"}, "ngram"),
    ({"drafter": "model:path=/a,b"}, r"model has no setting 'b' (it takes: path, temperature, top_k, top_p; a comma"),
    ({"drafter": r"model:path=/a\,b"}, "no model '/a,b'"),
    ({"drafter": "ngram:num_tokens=nan"}, "takes int, not 'nan'"),
    ({"drafter": "truncated"}, "truncated needs layers"),
    ({"drafter": "truncated:layers=0"}, "layers must be at least 1, not 0"),
    ({"drafter": "truncated:layers=99"}, "layers must lie between 1 and 3, not 99"),
    ({"drafter": "model"}, "model needs path"),
    ({"drafter": "model:path=/nowhere/at/all"}, "no model '/nowhere/at/all'"),
    ({"drafter": "truncated:layers=1", "shape": "bush"}, "(there are: chain, rsd_c, rsd_s, independent"),
    ({"drafter": "truncated:layers=1", "shape": "chain:depth=-1"}, "depth must be at least 1, not -1"),
    ({"drafter": "truncated:layers=1", "draft_stop": "svip:threshold=nan"}, "threshold"),
    ({"verifier": "greedyy"}, "did you mean 'greedy'?"),
    ({"verifier": "auto:x=1"}, "auto takes no settings"),
    ({"policy": "fixedd"}, "did you mean 'fixed'?"),
    ({"policy": "fixed:nodes=-1"}, "nodes must be at least 0, not -1"),
]


@pytest.mark.parametrize(("names", "says"), REFUSED, ids=str)
def test_a_part_that_cannot_be_made_is_refused_by_name(names: dict[str, str], says: str, tiny_model: Tiny) -> None:
    with pytest.raises(LopeError) as caught:
        Engine(tiny_model("llama3"), Parts(**{"drafter": "none", **names}), exact=False).policy  # noqa: B018
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_value_with_commas_is_spelled_as_it_is_read_in_parts_of_parts_too() -> None:
    written = r"hybrid:drafter=model:path=/a\\\,b\,temperature=0.5,min_ngram=3"
    hybrid = DRAFTERS.make(written)
    assert hybrid == HybridDrafter(drafter=r"model:path=/a\,b,temperature=0.5", min_ngram=3)
    assert DRAFTERS.make(hybrid.drafter).path == "/a,b"
    assert DRAFTERS.spell(hybrid) == written


@given(st.text(alphabet="a\\,=: "), st.text(alphabet="a\\,"))
def test_any_value_can_be_written_and_one_behind_it_is_another(first: str, second: str) -> None:
    assert commas.read(commas.within(first)) == first
    assert commas.divided(f"{commas.within(first)},{commas.within(second)}") == [*map(commas.within, (first, second))]


SAMPLED = {"temperature": 1.0, "seed": 0, "max_new_tokens": 4}


@pytest.mark.parametrize(
    ("drafter", "shape", "settings", "taken"),
    [
        ("none", "chain", {}, "greedy"),
        ("ngram", "chain", {}, "greedy"),
        ("none", "chain", SAMPLED, "coupled"),
        ("ngram", "chain", SAMPLED, "coupled"),
        ("truncated:layers=1", "chain", SAMPLED, "rejection"),
        ("truncated:layers=1", "rsd_c", SAMPLED, "recursive"),
        ("truncated:layers=1", "rsd_s", SAMPLED, "recursive"),
        ("truncated:layers=1", "independent", SAMPLED, "recursive_with_replacement"),
    ],
)
def test_auto_says_which_rule_it_took(
    drafter: str, shape: str, settings: dict[str, Any], taken: str, tiny_model: Tiny
) -> None:
    made = laws.engine(tiny_model("llama3"), drafter, shape)
    assert made.generate(laws.prompt(made.model, "mat"), **{"max_new_tokens": 4, **settings}).verifier == taken


@pytest.mark.parametrize(
    ("shape", "verifier", "settings"),
    [
        ("chain", "greedy", SAMPLED),
        ("rsd_s", "rejection", SAMPLED),
        ("rsd_s", "recursive_with_replacement", SAMPLED),
        ("independent", "recursive", SAMPLED),
    ],
)
def test_a_pair_that_cannot_be_lossless_is_refused_before_the_first_token(
    shape: str, verifier: str, settings: dict[str, Any], tiny_model: Tiny
) -> None:
    made = laws.engine(tiny_model("llama3"), "truncated:layers=1", shape, verifier)
    with pytest.raises(UsageError, match="without changing the answer"):
        made.stream(laws.prompt(made.model, "mat"), **settings)


def test_a_drafter_of_another_tokenizer_is_refused(
    tiny_model: Tiny, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    """By content: the vocabularies have the same size."""
    folder = tmp_path / "other"
    folder.mkdir()
    for file in tiny_folder("llama3").iterdir():
        data = file.read_bytes()
        if file.name == "tokenizer.json":
            assert b'"cat"' in data
            data = data.replace(b'"cat"', b'"cow"')
        (folder / file.name).write_bytes(data)
    with pytest.raises(LopeError, match="tokenizer"):
        laws.engine(tiny_model("llama3"), f"model:path={folder}")


@pytest.mark.parametrize(("threads", "says"), [(0, "threads must"), (-2, "threads must")])
def test_threads_are_checked(threads: int, says: str, tiny_folder: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match=says):
        load(str(tiny_folder("llama3")), threads=threads, dtype="float32")


def test_exact_is_refused_where_it_cannot_be_had(tiny_folder: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="exact passes need packed CPU linears"):
        load(str(tiny_folder("llama3")), dtype="float16", exact=True)
    assert load(str(tiny_folder("llama3")), dtype="float16").exact is False


def test_an_engine_is_exact_wherever_it_can_be(tiny_folder: Callable[..., Path]) -> None:
    made = load(str(tiny_folder("llama3")), dtype="float32")
    assert made.exact == made.model.backend.can_be_exact
    assert load(str(tiny_folder("llama3")), dtype="float32", exact=False).exact is False
