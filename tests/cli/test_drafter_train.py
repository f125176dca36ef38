"""`lope drafter train` on a tiny model: what it prints and writes, how it goes on, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.training.distilling import after, distil, file_prompts

from lope.models.drafter_folder import DrafterFolder
from lope.models.loaded import LoadedModel
from lope.training.trainer import Report, Trainer


@pytest.fixture
def words(tiny_folder: Callable[..., Path], tiny_model: Callable[..., LoadedModel], tmp_path: Path) -> list[str]:
    """A command without what is trained."""
    distil(tiny_model("llama3"), tmp_path / "set", file_prompts(), after(14), layers=(1, 2, 3))
    model = ["--target", str(tiny_folder("llama3")), "--dtype", "float32", "--threads", "1"]
    sizes = ["--vocab", "60", "--hidden", "64", "--layers", "1", "--length", "128", "--rows", "2"]
    pace = ["--steps", "6", "--evaluate-every", "3", "--set", str(tmp_path / "set")]
    return ["drafter", "train", *model, *sizes, *pace, "--out", str(tmp_path / "out")]


@pytest.mark.parametrize("kind", ["standalone", "eagle"])
def test_a_drafter_that_the_engine_can_use(
    kind: str, words: list[str], tmp_path: Path, tiny_folder: Callable[..., Path], lope: Caller
) -> None:
    if kind == "eagle":
        refused = lope(*words, "--kind", kind)
        assert refused.complaint == "a feature drafter is as wide as its target: leave out --hidden"
        at = words.index("--hidden")
        words = words[:at] + words[at + 4 :]
    called = lope(*words, "--kind", kind, "--json")
    assert called.code == 0, called.err
    assert called.document["last"]["step"] == 6
    assert len(called.document["held_out"]) == (3 if kind == "eagle" else 1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.suffix in (".md", ".safetensors")) == [
        "README.md",
        "drafter.safetensors",
    ]
    parts = ["--drafter", f"{kind}:path={tmp_path / 'out'}", "--policy", "fixed:depth=3", "--max-new-tokens", "12"]
    model = ["--model", str(tiny_folder("llama3")), "--dtype", "float32", "--raw"]
    drafted = lope("run", "the cat sat", *model, *parts, "--json").document
    plain = lope("run", "the cat sat", *model, "--drafter", "none", "--max-new-tokens", "12", "--json").document
    assert drafted["drafted"] > 0
    assert drafted["tokens"] == plain["tokens"]


def test_the_same_command_has_nothing_more_to_do_and_more_steps_go_on(
    words: list[str], tmp_path: Path, lope: Caller
) -> None:
    lope(*words, "--json")
    assert lope(*words, "--json").document["last"] is None
    more = ["9" if word == "6" else word for word in words]
    assert lope(*more, "--json").document["last"]["step"] == 9
    log = [json.loads(line)["step"] for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert log == list(range(1, 10))


def test_the_plot_is_a_picture(words: list[str], tmp_path: Path, lope: Caller) -> None:
    pytest.importorskip("matplotlib")
    assert lope(*words, "--plot", str(tmp_path / "curve.png")).code == 0
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_is_one_line_and_the_same_command_goes_on(
    words: list[str], tmp_path: Path, lope: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepped, steps = Trainer._step, []

    def step(self: Trainer) -> Report:
        steps.append(1)
        if len(steps) == 5:
            raise KeyboardInterrupt
        return stepped(self)

    monkeypatch.setattr(Trainer, "_step", step)
    called = lope(*words, "--json")
    assert called.code == 130
    assert called.complaint.startswith("interrupted: what was finished is kept")
    assert called.document["error"].startswith("interrupted")
    again = lope(*words, "--json")
    assert again.code == 0, again.err
    assert again.document["last"]["step"] == 6
    assert len(steps) == 5 + 3, "steps 4 to 6 are made again"


def test_a_drafter_to_begin_from_keeps_its_own_head_where_no_number_is_given(
    words: list[str], tmp_path: Path, lope: Caller
) -> None:
    assert lope(*words, "--json").code == 0
    at = words.index("--vocab")
    bare = [*words[:at], *words[at + 2 : -1], str(tmp_path / "second"), "--init", str(tmp_path / "out")]
    assert lope(*bare, "--json").code == 0
    first, second = (DrafterFolder.read(tmp_path / name) for name in ("out", "second"))
    assert second.tensors["kept"].tolist() == first.tensors["kept"].tolist()
    assert first.about.recipe["output"] > second.about.recipe["output"] == 0.0, "it has learned from plain answers"
    assert "tokens in the head: 60 of" in (tmp_path / "second" / "README.md").read_text(encoding="utf-8")


def test_kind_and_sizes_are_those_of_the_drafter_to_begin_from(words: list[str], tmp_path: Path, lope: Caller) -> None:
    two = ["2" if word == "1" and words[at - 1] == "--layers" else word for at, word in enumerate(words)]
    assert lope(*two, "--json").code == 0
    at, out, init = words.index("--vocab"), str(tmp_path / "second"), ["--init", str(tmp_path / "out")]
    bare = [*words[:at], *words[at + 6 : -1], out, *init]
    assert lope(*bare, "--layers", "1").complaint == f"{tmp_path / 'out'}: its --layers is 2, not 1: leave it out"
    assert lope(*bare, "--kind", "eagle").complaint.endswith("its kind is standalone, not eagle")
    assert lope(*bare).code == 0
    begun, second = (DrafterFolder.read(tmp_path / name).about.decoder for name in ("out", "second"))
    assert (second.num_layers, second.hidden_size, second.context) == (2, 64, begun.context)
    assert "nothing was left to do" in lope(*bare).out


def test_a_number_of_tokens_chooses_the_head_anew(words: list[str], tmp_path: Path, lope: Caller) -> None:
    assert lope(*words, "--json").code == 0
    at = words.index("--vocab")
    more = [
        *words[:at],
        "--vocab",
        "70",
        *words[at + 2 : -1],
        str(tmp_path / "second"),
        "--init",
        str(tmp_path / "out"),
    ]
    assert lope(*more, "--json").code == 0
    first, second = (set(DrafterFolder.read(tmp_path / name).tensors["kept"].tolist()) for name in ("out", "second"))
    assert len(second) == 70
    assert first < second, "the most said ones of the same set"
    assert "tokens in the head: 70 of" in (tmp_path / "second" / "README.md").read_text(encoding="utf-8")
    other = ["80" if word == "70" else word for word in more]
    assert "was begun with another vocab" in lope(*other).complaint
    assert lope(*(word for word in more if word not in ("--vocab", "70"))).code == 2


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (["--loss", "mse"], "no loss part 'mse'"),
        (["--kind", "medusa"], "a drafter is standalone or eagle, not 'medusa'"),
        (["--vocab", "100000"], "the vocabulary to keep must be"),
        (["--set", "nowhere"], "nowhere: is not a distilled set"),
        (["--init", "nowhere"], "nowhere: is not a drafter folder"),
        (["--minutes", "-1"], "minutes must be"),
        (["--learning-rate", "0"], "learning_rate must be"),
        (["--learning-rate", "1e300"], "learning_rate must lie between"),
        (["--storage", "int4"], "weights are stored as"),
        (["--plot", "curve.doc"], "a plot ends in .png or .svg"),
        (["--plot", "/nowhere/curve.png"], "there is no folder /nowhere"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    changed: list[str], complaint: str, words: list[str], tmp_path: Path, lope: Caller
) -> None:
    name = changed[0]
    at = words.index(name) if name in words else len(words)
    called = lope(*words[:at], *changed, *words[at + 2 :])
    assert called.code == 2
    assert complaint in called.complaint
