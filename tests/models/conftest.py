"""Tiny checkpoints, written once for all tests of a session; a cache folder of its own for every test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
from tests.homes import fresh_home
from tests.models import families

from lope.models.cache_folder import CacheFolder


@pytest.fixture(autouse=True)
def cache_home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.node.get_closest_marker("model"):  # the default model is fetched once, into the real cache folder
        return CacheFolder.default().root
    home = tmp_path.with_name(f"{tmp_path.name}-home")
    monkeypatch.setenv("LOPE_HOME", fresh_home(home))
    return home


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Callable[..., Path]) -> Callable[[str], Any]:
    """name -> (transformers model, its folder, its F32 GGUF file)."""
    made: dict[str, Any] = {}

    def make(name: str) -> Any:
        if name not in made:
            model = families.hugging_face(name)
            file = families.save_gguf(name, model, tmp_path_factory.mktemp(name) / "tiny.gguf")
            made[name] = (model, tiny_folder(name), file)
        return made[name]

    return make


@pytest.fixture(scope="session")
def quantised(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[[str], Any]) -> Callable[[str], Path]:
    """name -> a Q8_0 GGUF file of the same model."""

    def make(name: str) -> Path:
        path = tmp_path_factory.getbasetemp() / f"{name}.q8.gguf"
        if not path.exists():
            families.save_gguf(name, tiny(name)[0], path, kind=gguf.GGMLQuantizationType.Q8_0)
        return path

    return make
