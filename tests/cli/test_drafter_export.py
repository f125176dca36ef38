"""`lope drafter export`: what it writes and prints, what it checks, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.training.export import drafters


@pytest.fixture
def eagle(tiny_folder: Callable[..., Path], tmp_path: Path) -> Path:
    return drafters.eagle(drafters.aimed_at(tiny_folder("llama2")), tmp_path / "eagle").path


@pytest.mark.parametrize(("engine", "form"), [("vllm", "speculators"), ("sglang", "plain")])
def test_a_feature_drafter_is_written_and_passes_its_own_check(
    lope: Caller, eagle: Path, tmp_path: Path, engine: str, form: str
) -> None:
    out = tmp_path / "out"
    called = lope("drafter", "export", str(eagle), "--to", engine, "--out", str(out), "--json")
    assert called.code == 0
    document = called.document
    assert list(document) == ["drafter", "to", "form", "out", "target", "files", "bytes", "command"]
    assert document["form"] == form
    assert document["files"] == ["README.md", "config.json", "model.safetensors"]
    assert document["bytes"] == sum(path.stat().st_size for path in out.iterdir())
    checked = lope("drafter", "export", "--check", str(out), "--target", document["target"], "--json")
    assert checked.code == 0
    assert checked.document["form"] == form
    assert checked.document["traps"] == []


def test_people_read_where_it_is_and_how_to_use_it(
    lope: Caller, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    target = drafters.aimed_at(tiny_folder("llama2"), name="elsewhere")
    drafters.standalone(target, tmp_path / "drafter", kept=target.vocab_size)
    words = ["drafter", "export", str(tmp_path / "drafter"), "--to", "vllm", "--out", str(tmp_path / "out")]
    assert "no model 'elsewhere'" in lope(*words).complaint
    called = lope(*words, "--target", str(tiny_folder("llama2")))
    assert called.code == 0
    lines = called.out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"{tmp_path / 'out'}: README.md, config.json, ")
    assert lines[1] == f"target: {tiny_folder('llama2')}"
    assert lines[2].startswith("use it: vllm serve ")


def test_a_trap_is_a_line_and_exit_code_1(lope: Caller, eagle: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    lope("drafter", "export", str(eagle), "--to", "vllm", "--out", str(out))
    config = json.loads((out / "config.json").read_text())
    del config["norm_before_residual"]
    (out / "config.json").write_text(json.dumps({**config, "norm_output": True}))
    called = lope("drafter", "export", str(out), "--check")
    assert called.code == 1
    assert called.out.splitlines() == [
        "norm_before_residual missing (vLLM 0.33): vLLM takes true, llama.cpp and the speculators library false: "
        "write it",
        "norm_output (llama.cpp): the normalised state is fed back (norm_output), llama.cpp feeds back the other",
    ]
    assert called.complaint == f"{out}: falls into 2 traps"
    called = lope("drafter", "export", str(out), "--check", "--json")
    assert called.code == 1
    assert [trap["name"] for trap in called.document["traps"]] == ["norm_before_residual missing", "norm_output"]
    assert called.document["traps"][0]["loaders"] == ["vLLM 0.33"]
    assert called.document["error"] == called.complaint


def test_what_cannot_be_done_is_one_line(lope: Caller, eagle: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    refused = [
        ([str(eagle)], "name the engine"),
        ([str(eagle), "--to", "vllm"], "name the engine"),
        ([str(eagle), "--to", "vllm", "--out", out, "--check"], "--check writes nothing"),
        ([str(eagle), "--to", "gguf", "--out", out], "no engine 'gguf' to export to"),
        ([str(eagle), "--to", "transformers", "--out", out], "transformers has no EAGLE-3 class"),
        ([str(eagle), "--to", "vllm", "--out", str(eagle)], "is there already"),
        ([str(tmp_path / "none"), "--to", "vllm", "--out", out], "is not a drafter folder"),
        ([str(eagle), "--check"], "is no exported drafter"),
    ]
    for words, message in refused:
        called = lope("drafter", "export", *words)
        assert called.code == 2
        assert message in called.complaint
        assert called.out == ""
        assert "error" in lope("drafter", "export", *words, "--json").document
    assert not (tmp_path / "out").exists()
