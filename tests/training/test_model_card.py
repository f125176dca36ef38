"""The model card: everything in it stands in drafter.json, and what is not there is not said."""

import json
from pathlib import Path
from typing import Any

import pytest

from lope.core.errors import ModelError
from lope.training.model_card import ModelCard, write_card

DOCUMENT: dict[str, Any] = {
    "format": 1,
    "kind": "eagle",
    "target": {"name": "smollm2", "tokenizer": "abc", "vocab_size": 49152, "hidden_size": 576, "num_layers": 30},
    "decoder": {"hidden_size": 576, "num_layers": 1},
    "layers": [2, 15, 27],
    "storage": "int8",
    "recipe": {
        "loss": "tvd++",
        "vocab": 6144,
        "seed": 11,
        "learning_rate": 0.002,
        "sets": [{"prompts": "own", "temperatures": [0.0, 0.7], "seed": 5, "max_new_tokens": 160}],
    },
    "figures": {"held_out": [0.61, 0.55], "seconds": 5400, "steps": 700, "answer_tokens": 1234567},
    "operating_point": {"shape": "rsd_s:width=4,depth=4", "depth": 4, "nodes": 16, "expected_speedup": 1.93},
}
POINT = {
    "name": "chain depth=3",
    "tokens_per_pass": 2.346,
    "tokens_per_pass_low": 2.2,
    "tokens_per_pass_high": 2.5,
    "acceptance": [0.62, 0.58, 0.5],
    "mbsu": None,
    "modelled_speedup": 1.75,
    "speedup": 1.7,
    "speedup_low": 1.6,
    "speedup_high": 1.8,
    "tokens_per_second": 51.23,
}
EVAL = {"suite": "mini", "prompts": 24, "max_new_tokens": 64, "dtype": "bfloat16", "threads": 2, "processor": "a CPU"}


def test_a_set_that_was_read_is_not_called_answers() -> None:
    found = {"prompts": "text of wiki.jsonl", "temperatures": [1.0], "top_p": 1.0, "max_new_tokens": 384, "top_k": 64}
    text = ModelCard("shipped", {**DOCUMENT, "recipe": {"sets": [found]}}).text()
    assert "Set 1: text of wiki.jsonl, read by the target" in text
    assert "* tokens read together: 384" in text
    assert "answers of the target" not in text
    assert "temperatures" not in text


def test_recipe_data_figures_and_limits() -> None:
    text = ModelCard("shipped", DOCUMENT).text()
    for line in (
        "# shipped: a drafter for smollm2",
        "* tokens in the head: 6144 of 49152",
        "* hidden states that it reads: 2, 15, 27",
        "* licence: yours to choose, within the terms of the target and of the texts that it learned from",
        "* loss of the last stage: tvd++",
        "* training time: 90.0 minutes",
        "* answer tokens in the sets, held-out ones left out: 1234567",
        "* prompts: written by the target",
        "* temperatures: 0, 0.7",
        "* acceptance by position, held-out answers: 0.61, 0.55",
        "* shape: rsd_s:width=4,depth=4",
        "## Limits",
    ):
        assert line in text.splitlines(), line
    assert "None" not in text
    assert "Measured" not in text
    assert "Trimmed" not in text


def test_measured_points_are_a_table_and_what_is_unknown_is_a_dash() -> None:
    figures = {"eval": {**EVAL, "points": [POINT]}, "eval_sampled": {**EVAL, "temperature": 0.7, "points": []}}
    text = ModelCard("it", {**DOCUMENT, "figures": figures}).text()
    assert "## Measured greedily" in text
    assert "## Measured at temperature 0.7" in text
    row = "| chain depth=3 | 2.35 | 2.20 to 2.50 | 62 58 50 % | – | 1.75 | 1.70 | 1.60 to 1.80 | 51.2 |"
    assert row in text.splitlines()


def test_a_trimmed_drafter_says_so_and_keeps_what_was_measured_before() -> None:
    trim = {"counts": "target", "counted_in": ["set"], "vocab": 4096, "vocab_before": 6144, "coverage": 0.97}
    recipe = {**DOCUMENT["recipe"], "trim": trim}
    text = ModelCard("it", {**DOCUMENT, "recipe": recipe, "figures": {"untrimmed": DOCUMENT["figures"]}}).text()
    assert "* tokens in the head: 4096 of 49152" in text
    assert "kept 4096 of its 6144 tokens, the most frequent in what the target says" in text
    assert "## Held-out, before it was trimmed" in text
    assert "* steps: 700" in text


def test_it_is_written_from_drafter_json_alone(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"drafter\.json: cannot be read"):
        write_card(tmp_path)
    (tmp_path / "drafter.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    write_card(tmp_path)
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == ModelCard(tmp_path.name, DOCUMENT).text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "drafter.json"]


def test_an_empty_document_is_a_card_too() -> None:
    assert "## Limits" in ModelCard("it", {"kind": "standalone", "target": {"name": "it"}}).text()
