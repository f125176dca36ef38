"""A peer as a system: it gets the very tokens that ours gets, turn after turn; one that is absent is one line."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bench.peers.test_process import STUB
from tests.homes import fresh_home

from lope.bench.peers import PEERS
from lope.bench.peers.environment import Environment, main
from lope.bench.peers.kind import PeerKind, Variant
from lope.bench.peers.system import PeerPlace, PeerSystem, open_peer
from lope.bench.suite import Item
from lope.core.errors import RunError
from lope.engine.conversation import Conversation
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loaded import LoadedModel

ITEM = Item("two", "writing", ("the cat sat", "and the dog?"))


class Echo:
    """In a process's stead: it answers what an engine of ours answers to the same tokens, and keeps the requests."""

    group = 1

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.asked: list[dict[str, object]] = []

    def ask(self, request: dict[str, object]) -> dict[str, object]:
        from lope.core.prompt import Prompt

        self.asked.append(request)
        answer = self.engine.generate(Prompt(tuple(request["ids"])), max_new_tokens=request["max_new_tokens"])  # type: ignore[arg-type]
        return {"tokens": list(answer.tokens), "steps": [[1, 0.1], [len(answer.tokens) - 1, 0.2]]}


@pytest.fixture
def model(tiny_model: Callable[..., LoadedModel]) -> LoadedModel:
    return tiny_model()


def test_a_peer_reads_the_tokens_that_ours_reads_in_every_turn(model: LoadedModel) -> None:
    engine = Engine(model, Parts(drafter="none"), exact=False)
    echo = Echo(engine)
    turns = PeerSystem("echo", echo, model).answer(ITEM, 6)  # type: ignore[arg-type]
    conversation = Conversation(engine, max_new_tokens=6, seed=0)
    for text, turn, request in zip(ITEM.turns, turns, echo.asked, strict=True):
        stream = conversation.say(text)
        for _ in stream:
            pass
        assert stream.answer.tokens == turn.tokens
        assert stream.answer.stats.prompt_tokens == turn.prompt_tokens == len(request["ids"])  # type: ignore[arg-type]
    assert [request["fresh"] for request in echo.asked] == [True, False]
    assert echo.asked[0]["stop"] == sorted(model.stop_tokens)
    assert turns[0].passes is None


@pytest.fixture
def place(tmp_path: Path) -> PeerPlace:
    files = {"folder": tmp_path / "model", "gguf": None}
    return PeerPlace(files, 1, "float32", 256, None, tmp_path / "scratch", tmp_path / "logs", 60.0)


class Here(PeerKind):
    """A kind whose worker is the stub, run by this Python."""

    @property
    def file(self) -> Path:
        return STUB


def _kind(module: str = "json", reads: str = "folder", *variants: Variant) -> PeerKind:
    return Here("stub", module, "stub", ("stub",), reads, variants or (Variant("stub", {}),))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOPE_HOME", fresh_home(tmp_path / "home"))
    return tmp_path / "home"


def test_variants_are_opened_and_answer(model: LoadedModel, place: PeerPlace) -> None:
    said: list[str] = []
    opened = open_peer(_kind(), place, model, said.append, {})
    try:
        assert [(system.name, versions) for system, versions in opened] == [("stub", {"stub": "1"})]
        assert opened[0][0].answer(ITEM, 4)[0].passes == 1
        assert (opened[0][0].peak_memory() or 1) > 0
        assert said == []
    finally:
        for system, _ in opened:
            system.close()
    assert open_peer(_kind(), place, model, said.append, {"stub": None}) == []


def test_what_cannot_be_opened_is_one_line_that_says_what_to_do(model: LoadedModel, place: PeerPlace) -> None:
    said: list[str] = []
    assert open_peer(_kind("no_such_module"), place, model, said.append, {}) == []
    assert open_peer(_kind("json", "gguf"), place, model, said.append, {}) == []
    assistant = Variant("stub assistant", {"assistant": True})
    assert open_peer(_kind("json", "folder", assistant), place, model, said.append, {}) == []
    broken = PeerPlace({"folder": Path("broken")}, 1, "float32", 256, None, place.scratch, place.logs, 60.0)
    assert open_peer(_kind(), broken, model, said.append, {}) == []
    assert said == [
        "stub is skipped: it is not installed (get it with: make peers PEERS=stub)",
        f"stub is skipped: it reads a GGUF file, and {model.name} is none",
        "stub assistant is skipped: name a smaller model of the same tokens with --assistant FOLDER",
        "stub is skipped: RuntimeError: the model is broken",
    ]


def test_an_environment_that_is_half_built_is_not_used(home: Path) -> None:
    kind = _kind("no_such_module")
    (kind.home / "bin").mkdir(parents=True)
    (kind.home / "bin" / "python").symlink_to(sys.executable)
    assert kind.python is None
    (kind.home / "ready").touch()
    assert kind.python == kind.home / "bin" / "python"
    assert Environment(kind).build() == f"stub: ready in {kind.home}"


def test_an_installation_that_fails_is_one_line(home: Path) -> None:
    kind = PeerKind("stub", "no_such_module", "stub", ("./no-such-folder",), "folder", ())
    (kind.home / "bin").mkdir(parents=True)
    (kind.home / "bin" / "python").symlink_to(sys.executable)
    with pytest.raises(RunError, match="stub: -m pip install failed: ") as caught:
        Environment(kind).build()
    assert "\n" not in str(caught.value)
    assert not (kind.home / "ready").exists()


def test_a_peer_that_is_installed_beside_lope_needs_no_environment(home: Path) -> None:
    assert Environment(_kind("json")).build() == "stub: installed beside lope already"
    assert not (home / "peers").exists()


def test_an_unknown_peer_is_told_the_right_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ollama"]) == 1
    assert capsys.readouterr().out == f"lope: no peer 'ollama' (there are: {', '.join(PEERS)})\n"


def test_every_peer_has_its_file() -> None:
    assert [kind.name for kind in PEERS.values() if not kind.file.is_file()] == []
    names = [variant.name for kind in PEERS.values() for variant in kind.variants]
    assert len(names) == len(set(names))
