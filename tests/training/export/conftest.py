"""A tiny target and drafters for it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.training.export import drafters

from lope.models.drafter_folder import DrafterFolder, DrafterTarget


@pytest.fixture
def target(tiny_folder: Callable[..., Path]) -> DrafterTarget:
    return drafters.aimed_at(tiny_folder("llama2"))


@pytest.fixture
def eagle(target: DrafterTarget, tmp_path: Path) -> DrafterFolder:
    """A trimmed feature drafter that reads layers 0, 1 and 2 of a target with three."""
    return drafters.eagle(target, tmp_path / "eagle")


@pytest.fixture
def remote(target: DrafterTarget, tmp_path: Path) -> DrafterFolder:
    """A trimmed feature drafter for a larger target, by a hub name, that reads the layers every engine takes."""
    aimed = drafters.DrafterTarget("some/model", target.tokenizer, target.vocab_size, target.hidden_size, 8)
    return drafters.eagle(aimed, tmp_path / "remote", layers=(2, 4, 5), operating_point={"shape": "chain", "depth": 5})
