"""The peer OpenVINO GenAI: plain or with prompt lookup, on the GGUF file itself."""

import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import openvino
import openvino_genai


class Steps(openvino_genai.StreamerBase):  # type: ignore[misc]
    """A streamer that keeps the tokens of each step, and when they came."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[int] = []
        self.taken: list[tuple[int, float]] = []
        self._last = time.perf_counter()

    def write(self, token: int | Sequence[int]) -> Any:
        """Called by the pipeline with one token, or with several."""
        new = [int(one) for one in token] if isinstance(token, Sequence) else [int(token)]
        now = time.perf_counter()
        self.tokens += new
        self.taken.append((len(new), now - self._last))
        self._last = now
        return openvino_genai.StreamingStatus.RUNNING

    def end(self) -> None:
        """Called by the pipeline at the end."""


class OpenVinoPeer:
    """A GGUF file run by OpenVINO GenAI on the CPU."""

    def __init__(self, settings: dict[str, Any]) -> None:
        ways: dict[str, Any] = {"INFERENCE_NUM_THREADS": settings["threads"]}
        self._lookup = settings.get("prompt_lookup")
        if self._lookup:
            ways["prompt_lookup"] = True
        self._pipeline = openvino_genai.LLMPipeline(settings["model"], "CPU", **ways)
        self.versions = {"openvino-genai": version("openvino-genai")}

    def answer(self, ids: list[int], max_new_tokens: int, stop: list[int], fresh: bool) -> dict[str, Any]:
        """Answer a prompt greedily. It does not tell its passes."""
        wish = openvino_genai.GenerationConfig()
        wish.max_new_tokens, wish.do_sample = max_new_tokens, False
        wish.stop_token_ids = set(stop)
        if self._lookup:
            wish.num_assistant_tokens, wish.max_ngram_size = self._lookup, 3
        steps = Steps()
        prompt = openvino.Tensor(np.array([ids], dtype=np.int64))
        mask = openvino.Tensor(np.ones((1, len(ids)), dtype=np.int64))
        result = self._pipeline.generate(openvino_genai.TokenizedInputs(prompt, mask), wish, steps)
        whole = [int(token) for token in result.tokens[0]]
        taken = steps.taken
        if len(whole) > len(steps.tokens) and taken:  # the stop token is not streamed
            taken[-1] = (taken[-1][0] + len(whole) - len(steps.tokens), taken[-1][1])
        return {"tokens": whole, "steps": taken}


def open_peer(settings: dict[str, Any]) -> OpenVinoPeer:
    """Load the model."""
    return OpenVinoPeer(settings)
