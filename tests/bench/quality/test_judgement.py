"""Retrieval prompts, matching answers, and configurations beside the reference."""

from typing import Any

import pytest
from tests.homes import fresh_home

from lope.bench.quality.answers import Question
from lope.bench.quality.judgement import RETRIEVAL_TOKENS, Judge
from lope.bench.quality.retrieval import Retrieval
from lope.bench.quality.subject import Subject
from lope.bench.quality.tasks import read_tasks
from lope.core.errors import LopeError, SettingError, UsageError
from lope.engine.engine import Engine
from lope.engine.parts import Parts


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))


@pytest.fixture
def engine(tiny_model) -> Engine:
    return Engine(tiny_model(), Parts("none"), exact=True)


class Roomy:
    """An engine whose context is as long as the test needs: prompts are only built, not run."""

    def __init__(self, engine: Engine) -> None:
        self.ids = engine.ids
        self.model: Any = type("M", (), {"backend": type("B", (), {"context": 100_000}), "template": None})


@pytest.mark.parametrize("kind", ["passkey", "needle"])
@pytest.mark.parametrize("raw", [True, False])
def test_a_prompt_is_as_long_as_it_may_be_and_hides_its_secret(engine, kind, raw):
    roomy: Any = Roomy(engine)
    retrieval = Retrieval((kind,), (800, 1500), (0.0, 0.5, 1.0), repeats=2)
    prompts = retrieval.prompts(roomy, raw, RETRIEVAL_TOKENS)
    assert len(prompts) == 12
    filler = len(
        engine.ids("The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\n")
    )
    for hidden in prompts:
        ids = engine.ids(hidden.question.prompt, raw=raw)
        assert hidden.tokens == len(ids) <= hidden.length
        assert hidden.tokens > hidden.length - filler
        lines = hidden.question.prompt.split("\n")
        [at] = [i for i, line in enumerate(lines) if hidden.question.answers[0] in line]
        assert (at - 1) / (len(lines) - 3) == pytest.approx(hidden.depth, abs=0.1)
        assert hidden.question.right(f"It is {hidden.question.answers[0]}.")
        assert not hidden.question.right("It is not known.")


def test_secrets_are_keyed_by_the_seed(engine):
    roomy: Any = Roomy(engine)
    one, again, other = (
        [hidden.question for hidden in Retrieval(lengths=(900,), seed=seed).prompts(roomy, True, 8)]
        for seed in (0, 0, 1)
    )
    assert one == again
    assert one != other
    assert len({question.answers for question in one}) == len(one)


def test_lengths_must_fit(engine):
    with pytest.raises(SettingError, match="a prompt of 250 tokens and an answer of 16 do not fit the context of 256"):
        Retrieval(lengths=(250,)).prompts(engine, True, 16)
    with pytest.raises(SettingError, match="a prompt of 20 tokens is too short"):
        Retrieval(lengths=(20,)).prompts(engine, True, 16)
    with pytest.raises(SettingError, match="retrieval is of passkey or needle"):
        Retrieval(("key",))


@pytest.mark.parametrize(
    ("match", "answer", "right", "wrong"),
    [
        ("exact", "Paris", "  paris\n", "Paris."),
        ("contains", "blue  umbrella", "It is a blue umbrella.", "an umbrella"),
        ("number", "1,234", "so 3 + 1231 = 1234.", "1234 and then 5"),
        ("number", "-0.5", "it is -0.50", "0.5"),
    ],
)
def test_matching(match, answer, right, wrong):
    question = Question("?", ("no", answer), match)
    assert question.right(right)
    assert not question.right(wrong)


def test_tasks_are_read(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"prompt": "a", "answer": "b"}\n{"prompt": "c", "answer": ["d", "e"], "match": "contains"}\n')
    assert read_tasks(path) == [Question("a", ("b",)), Question("c", ("d", "e"), "contains")]
    for row, words in (
        ('{"answer": "b"}', "line 1: has no prompt"),
        ('{"prompt": "a"}', "line 1: has no answer"),
        ('{"prompt": "a", "answer": [""]}', "has no answer"),
        ('{"prompt": "a", "answer": "b", "match": "fuzzy"}', "match is one of exact, contains, number, not 'fuzzy'"),
        ("\n", "has no rows"),
    ):
        path.write_text(row)
        with pytest.raises(UsageError, match=words):
            read_tasks(path)


def test_lossless_configurations_agree_and_another_model_does_not(engine, tiny_model):
    judge = Judge(
        texts=["the cat sat on the mat"],
        retrieval=Retrieval(lengths=(210,), depths=(0.0, 1.0), repeats=1),
        tasks=[Question("the dog ran", ("nowhere",))],
        max_new_tokens=12,
        raw=True,
    )
    steps: list[int] = []
    plain = judge.judge("plain", engine, lambda: steps.append(1))
    assert len(steps) == judge.steps
    ngram = judge.judge("ngram", Engine(engine.model, Parts("ngram"), exact=True))
    other = judge.judge("other", Engine(tiny_model(seed=1), Parts("none"), exact=True))
    document = ngram.document(plain)
    assert document["agreement"] == 1.0
    assert document["perplexity"]["ratio"] == 1.0
    assert document["retrieval"]["cells"] == plain.document(plain)["retrieval"]["cells"]
    assert other.document(plain)["agreement"] < 1.0
    assert other.document(plain)["perplexity"]["ratio"] != 1.0
    assert [(cell.depth, cell.count) for cell in plain.cells] == [(0.0, 1), (1.0, 1)]


BASE = Subject("plain", "smollm2", "auto", None, Parts("none"))


def test_configurations():
    read = Subject.read("model=hf:/m,dtype=bfloat16,exact=no,drafter=model:path=/d,temperature=1.0,policy=fixed", BASE)
    assert (read.model, read.dtype, read.exact) == ("hf:/m", "bfloat16", False)
    assert read.parts.drafter == "model:path=/d,temperature=1.0"
    assert Subject.read("dtype=float32", BASE).parts == BASE.parts
    assert Subject.read("drafter=ngram,name=mine", BASE).name == "mine"
    within = Subject.read(r"drafter=model:path=/name=a\,b,,model=hf:/m\,n,", BASE)
    assert (within.name, within.model) == (r"drafter=model:path=/name=a\,b,,model=hf:/m\,n,", "hf:/m,n")
    assert within.parts.drafter == r"model:path=/name=a\,b"
    for text in ("", "exact=perhaps", "dtype=", "model=a,model=b", "drafter=ngrm", "colour=red"):
        with pytest.raises(LopeError):
            Subject.read(text, BASE)


def test_something_must_be_asked():
    with pytest.raises(UsageError, match="nothing to judge by"):
        Judge()
