"""Names to models, and every name that cannot be one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.models import families
from tests.models.logits import all_logits

from lope.core.errors import LopeError, ModelError, SettingError
from lope.models.loading import load


def test_a_folder_and_a_file_give_the_same_model(tiny: Callable[[str], Any]) -> None:
    _, folder, file = tiny("mistral")
    one, two = load(str(folder), dtype="float32"), load(str(file), dtype="float32")
    ids = one.tokenizer.encode("the cat sat on the mat")
    assert torch.equal(all_logits(one, ids), all_logits(two, ids))
    assert one.name == str(folder)
    assert one.tokenizer.fingerprint == two.tokenizer.fingerprint
    assert one.stop_tokens == two.stop_tokens == {1}
    assert one.template == two.template


@pytest.mark.usefixtures("torch_kernels")
def test_a_gguf_file_is_kept_dequantised_only_when_asked(
    tiny: Callable[[str], Any], quantised: Callable[[str], Path], cache_home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(quantised("qwen3").read_bytes())
    plain = load(str(file), dtype="float32")
    assert not (cache_home / "models").exists()
    kept = load(str(file), dtype="float32", cache_dequantised=True)
    [folder] = [path for path in (cache_home / "models").iterdir() if path.is_dir()]
    assert folder.name.startswith("mine-")
    assert folder.name.endswith("-float32")
    ids = plain.tokenizer.encode("the cat sat on the mat")
    assert torch.equal(all_logits(plain, ids), all_logits(kept, ids))
    families.save_gguf("qwen3", families.hugging_face("qwen3", seed=1), file)  # the file changes: so does what is kept
    other = load(str(file), dtype="float32", cache_dequantised=True)
    assert not torch.equal(all_logits(plain, ids), all_logits(other, ids))


def test_dtype_is_measured_once(tiny: Callable[[str], Any], cache_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tiny("llama2")[1])
    first = load(folder)
    assert first.backend.dtype in ("float32", "bfloat16")
    assert (cache_home / "machine.json").exists()
    monkeypatch.setattr("lope.models.run_dtype._measure", lambda *_: pytest.fail("measured again"))
    assert load(folder).backend.dtype == first.backend.dtype


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, "bfloat16"), (0.99, "float32"), (2.0, "float32")])
def test_the_clearly_faster_dtype_runs(
    ratio: float, expected: str, tiny: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {torch.float32: 1.0, torch.bfloat16: ratio}
    monkeypatch.setattr("lope.models.run_dtype._seconds", lambda linear, x: seconds[x.dtype])
    assert load(str(tiny("llama2")[1])).backend.dtype == expected


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"dtype": 3}', b'{"dtype": {}, "other": 1}'])
def test_a_damaged_note_of_the_machine_is_written_anew(
    content: bytes, tiny: Callable[[str], Any], cache_home: Path
) -> None:
    (cache_home / "machine.json").write_bytes(content)
    load(str(tiny("llama2")[1]))
    written = (cache_home / "machine.json").read_text()
    assert '"seconds"' in written
    assert ('"other": 1' in written) == (b"other" in content)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_dtype_is_the_one_asked_for(dtype: str, tiny: Callable[[str], Any]) -> None:
    assert load(str(tiny("llama2")[1]), dtype=dtype).backend.dtype == dtype


def test_settings_that_cannot_be_are_refused(tiny: Callable[[str], Any]) -> None:
    folder = str(tiny("llama2")[1])
    with pytest.raises(SettingError, match="dtype must be auto, float32, bfloat16, float16, not 'int8'"):
        load(folder, dtype="int8")
    with pytest.raises(SettingError, match="device 'abacus' cannot be used here"):
        load(folder, device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(SettingError, match="device 'cuda' cannot be used here"):
            load(folder, device="cuda")


NAMES = {
    "nothing": (
        "no-such-model",
        "there is no such file or folder, and it is no built-in name .smollm2. and no hub name",
    ),
    "empty": ("", "no model ''"),
    "no such file": ("nowhere/x.gguf", "no model 'nowhere/x.gguf'"),
    "no such folder": ("/nowhere/at/all", "no model '/nowhere/at/all'"),
    "relative": ("./x", r"no model '\./x'"),
    "two slashes": ("a/b/c", "no model 'a/b/c'"),
}


@pytest.mark.parametrize("case", list(NAMES))
def test_a_name_of_nothing_is_one_clear_error(case: str) -> None:
    name, message = NAMES[case]
    with pytest.raises(ModelError, match=message) as caught:
        load(name)
    assert "\n" not in str(caught.value)


FILES = {
    "text": ("notes.txt", b"hello", "is not a GGUF file; a folder of safetensors or a GGUF file can be loaded"),
    "empty": ("empty.gguf", b"", "is not a GGUF file"),
    "another format": ("x.gguf", b"ggml" * 100, "is not a GGUF file"),
    "pickle": ("pytorch_model.bin", b"\x80\x02", "pickles are never loaded"),
    "one shard": ("model.safetensors", b"x", "is one file of a model; name its folder"),
    "magic alone": ("x.gguf", b"GGUF", "is not a GGUF file: it has 4 bytes"),
    "version": ("x.gguf", b"GGUF" + (9).to_bytes(4, "little") + bytes(64), "GGUF version 9 cannot be read"),
    "big-endian": (
        "x.gguf",
        b"GGUF" + (3).to_bytes(4, "big") + bytes(64),
        "cannot be read .2 and 3 can, little-endian",
    ),
    "absurd counts": ("x.gguf", b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 16, "items do not fit"),
    "no architecture": ("x.gguf", b"GGUF" + (3).to_bytes(4, "little") + bytes(64), "lacks 'general.architecture'"),
}


@pytest.mark.parametrize("case", list(FILES))
def test_a_file_that_is_no_model_is_one_clear_error(case: str, tmp_path: Path) -> None:
    name, content, message = FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        load(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_an_empty_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is not a model folder: it has no config\.json"):
        load(str(tmp_path))


def test_a_hub_name_offline_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = (
        "from lope.models.loading import load\nfrom lope.core.errors import ModelError\ntry:\n  load('some/model')\n"
    )
    script += "except ModelError as error:\n  print(error)"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (
        "some/model: cannot be fetched from the Hugging Face hub, and is not in its cache: go online once"
        in done.stdout
    )
    assert done.stdout.count("\n") == 1


def test_a_hub_name_is_read_from_the_hubs_cache(tiny: Callable[[str], Any], tmp_path: Path) -> None:
    snapshots = tmp_path / "hub" / "models--some--model"
    (snapshots / "refs").mkdir(parents=True)
    (snapshots / "refs" / "main").write_text("abc")
    (snapshots / "snapshots").mkdir()
    os.symlink(tiny("llama2")[1], snapshots / "snapshots" / "abc")
    script = "from lope.models.loading import load\nprint(load('some/model', dtype='float32').backend.vocab_size)"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(families.tokenizer().get_vocab_size())


def test_loading_imports_no_more_than_it_needs(tiny: Callable[[str], Any]) -> None:
    folder = tiny("llama2")[1]
    script = f"import sys\nfrom lope.models.loading import load\nload({str(folder)!r}, dtype='float32')\n"
    script += "print([name for name in ('transformers', 'gguf', 'huggingface_hub', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("which", [1, 2], ids=["folder", "gguf"])
def test_hf_runs_the_same_model_by_transformers(which: int, tiny: Callable[[str], Any], cache_home: Path) -> None:
    place = str(tiny("llama3")[which])
    mine, theirs = load(place, dtype="float32"), load(f"hf:{place}", dtype="float32")
    assert type(mine.backend) is not type(theirs.backend)
    assert theirs.name == f"hf:{place}"
    ids = mine.tokenizer.encode("the cat sat on the mat")
    assert (all_logits(mine, ids) - all_logits(theirs, ids)).abs().max() < 1e-4
    assert mine.tokenizer.fingerprint == theirs.tokenizer.fingerprint
    assert mine.template is not None
    assert theirs.template is not None
    assert mine.template.source == theirs.template.source
    assert mine.stop_tokens == theirs.stop_tokens


def test_errors_are_the_users_own() -> None:
    assert issubclass(ModelError, LopeError)
    with pytest.raises(ValueError, match="no model"):
        load("no-such-model")
