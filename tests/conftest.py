"""One thread for all tests, Ctrl-C for those that press it, tiny random models, written and loaded once a run."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from lope.models.lean.native.library import why_not
from lope.models.loaded import LoadedModel
from lope.models.loading import load


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """Whoever started the tests in the background may have switched it off, for them and what they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """Sets torch's threads; put back at the end."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """(family, seed) -> the folder of a tiny random model of `tests.models.families`; all have the same tokenizer."""
    from tests.models import families  # imports transformers

    made: dict[tuple[str, int], Path] = {}

    def make(family: str = "llama3", seed: int = 0) -> Path:
        if (family, seed) not in made:
            place = tmp_path_factory.mktemp(f"{family}-{seed}")
            made[family, seed] = families.save_folder(families.hugging_face(family, seed), place / "model")
        return made[family, seed]

    return make


@pytest.fixture(scope="session")
def tiny_model(tiny_folder: Callable[..., Path]) -> Callable[..., LoadedModel]:
    """(family, seed) -> that model, loaded in float32."""
    made: dict[tuple[str, int, str | None], LoadedModel] = {}

    def make(family: str = "llama3", seed: int = 0) -> LoadedModel:
        key = family, seed, os.environ.get("LOPE_KERNELS")
        if key not in made:
            made[key] = load(str(tiny_folder(family, seed)), dtype="float32")
        return made[key]

    return make


@pytest.fixture(params=["native", "torch"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which kernels models that are loaded from here on run on: a test that takes this runs on both."""
    name: str = request.param
    if name == "native" and (reason := why_not()):
        pytest.skip(f"no native kernels here: {reason}")
    monkeypatch.setenv("LOPE_KERNELS", name)
    return name


@pytest.fixture
def data() -> Path:
    """The folder of the data that are no part of lope: what needs them is skipped where they are not."""
    near = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LOPE_DATA") or near)
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set LOPE_DATA")
    return folder


@pytest.fixture
def torch_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that are loaded from here on run on torch's kernels."""
    monkeypatch.setenv("LOPE_KERNELS", "torch")
