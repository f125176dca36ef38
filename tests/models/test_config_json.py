"""config.json against transformers' own reading of it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.models import families

from lope.core.errors import ModelError
from lope.models.config_json import decoder_config

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def write(path: Path, **changes: Any) -> Path:
    values = {key: value for key, value in {**BASE, **changes}.items() if value is not ...}
    (path / "config.json").write_text(json.dumps(values))
    return path / "config.json"


def theirs(path: Path) -> Any:
    return transformers.AutoConfig.from_pretrained(path.parent)


SCALINGS = {
    "none": {},
    "linear, old": {"rope_theta": 5000.0, "rope_scaling": {"type": "linear", "factor": 4.0}},
    "llama3, old": {
        "rope_theta": 500000.0,
        "max_position_embeddings": 131072,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    },
    "llama3, new": {"rope_parameters": families.LLAMA3},
    "yarn": {"rope_parameters": {**families.YARN, "rope_theta": 1000000.0, "original_max_position_embeddings": 32768}},
    "yarn, not truncated": {"rope_parameters": {**families.YARN, "truncate": False, "beta_fast": 16, "beta_slow": 2}},
    "yarn, mscale": {"rope_parameters": {**families.YARN, "mscale": 0.8, "mscale_all_dim": 0.5}},
    "yarn, attention_factor": {"rope_parameters": {**families.YARN, "attention_factor": 1.3}},
    "longrope, equal": {
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0, 1.5, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0],
            "long_factor": [1.0, 1.5, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0],
            "factor": 4.0,
            "original_max_position_embeddings": 512,
        }
    },
}


@pytest.mark.parametrize("case", list(SCALINGS))
def test_rope_is_that_of_transformers(case: str, tmp_path: Path) -> None:
    path = write(tmp_path, **SCALINGS[case])
    config = decoder_config(path)
    rotary = transformers.LlamaForCausalLM(theirs(path)).model.rotary_emb
    plain = config.rope_theta ** -(torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim)
    divisors = torch.tensor(config.rope_factors or [1.0] * (config.head_dim // 2), dtype=torch.float64)
    torch.testing.assert_close((plain / divisors).float(), rotary.inv_freq, rtol=1e-5, atol=0)
    assert config.rope_scale == pytest.approx(rotary.attention_scaling)
    assert (config.rope_factors is None) == (case == "none")


@pytest.mark.parametrize(
    "architecture", ["LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"]
)
def test_silence_means_what_it_means_to_transformers(architecture: str, tmp_path: Path) -> None:
    kind = architecture.removesuffix("ForCausalLM").lower()
    path = write(tmp_path, architectures=[architecture], model_type=kind, num_attention_heads=32, hidden_size=256)
    config, expected = decoder_config(path), theirs(path)
    assert config.num_kv_heads == expected.num_key_value_heads
    assert config.head_dim == (getattr(expected, "head_dim", None) or 256 // 32)
    assert config.norm_eps == expected.rms_norm_eps
    assert config.rope_theta == expected.rope_parameters["rope_theta"]
    assert config.tied == expected.tie_word_embeddings
    windowed = architecture == "MistralForCausalLM"  # the only one whose silence means a sliding window
    assert config.context == (expected.sliding_window if windowed else expected.max_position_embeddings)


@pytest.mark.parametrize(
    ("changes", "context"),
    [
        ({"architectures": ["MistralForCausalLM"], "num_key_value_heads": 4, "sliding_window": 512}, 512),
        ({"architectures": ["MistralForCausalLM"], "num_key_value_heads": 4, "sliding_window": None}, 2048),
        ({"architectures": ["Qwen2ForCausalLM"], "num_key_value_heads": 4, "sliding_window": 512}, 2048),
        (
            {
                "architectures": ["Qwen2ForCausalLM"],
                "num_key_value_heads": 4,
                "sliding_window": 512,
                "use_sliding_window": True,
                "max_window_layers": 1,
            },
            512,
        ),
        (
            {
                "architectures": ["Qwen2ForCausalLM"],
                "num_key_value_heads": 4,
                "sliding_window": 512,
                "use_sliding_window": True,
                "max_window_layers": 2,
            },
            2048,
        ),
    ],
)
def test_a_sliding_window_caps_the_context(changes: dict[str, Any], context: int, tmp_path: Path) -> None:
    assert decoder_config(write(tmp_path, max_position_embeddings=2048, **changes)).context == context


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, r"'GPT2LMHeadModel' is not supported \(there are: LlamaForCausalLM"),
        ({"architectures": []}, "architecture 'llama' is not supported"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' is not supported"),
        ({"hidden_size": ...}, "hidden_size must be a positive whole number, not None"),
        ({"hidden_size": -4}, "hidden_size must be a positive whole number, not -4"),
        ({"num_hidden_layers": "2"}, "num_hidden_layers must be a positive whole number, not '2'"),
        ({"num_key_value_heads": 3}, "4 heads do not share 3 of 16 numbers evenly"),
        ({"rms_norm_eps": -1.0}, r"rms_norm_eps must be a positive number, not -1\.0"),
        (
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "'dynamic' is not supported .there are: default, linear",
        ),
        ({"rope_scaling": {"type": "linear"}}, "needs a positive factor, not None"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "needs a positive factor, not 0"),
        ({"rope_parameters": {"a": {"rope_type": "default"}}}, "RoPE settings that differ by layer"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "part of each head"),
        (
            {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}},
            "equal short and",
        ),
        ({"quantization_config": {"bits": 4}}, "the weights are quantised"),
    ],
)
def test_what_cannot_be_built_is_one_clear_error(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        decoder_config(write(tmp_path, **changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00\xff"])
def test_what_is_no_json_object_is_one_clear_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(ModelError, match=r"config\.json: (is not JSON|holds no JSON object)"):
        decoder_config(tmp_path / "config.json")
