"""Backends of tiny models, each made once."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.models import families
from tests.models.huggingface.other_families import OTHERS, other

from lope.models.cache_folder import CacheFolder
from lope.models.huggingface import HuggingFaceBackend


@pytest.fixture(scope="session")
def adapted() -> Callable[[str], tuple[Any, HuggingFaceBackend]]:
    """name -> (transformers model, the adapter around it)."""
    made: dict[str, tuple[Any, HuggingFaceBackend]] = {}

    def make(name: str) -> tuple[Any, HuggingFaceBackend]:
        if name not in made:
            model = other(name) if name in OTHERS else families.hugging_face(name)
            made[name] = (model, HuggingFaceBackend(model))
        return made[name]

    return make


@pytest.fixture(scope="session")
def user_cache() -> CacheFolder:
    """The cache folder of whoever runs the tests (tests have one of their own): the built-in model is in it."""
    return CacheFolder.default()
