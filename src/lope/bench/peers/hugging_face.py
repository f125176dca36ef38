"""The peer `transformers`: `generate`, plain, with prompt lookup, or with an assistant model."""

import time
from typing import Any

import torch
import transformers


class Steps:
    """A streamer that keeps what each step added, and when."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, float]] = []
        self._prompt = True
        self._last = time.perf_counter()

    def put(self, value: torch.Tensor) -> None:
        """Called by `generate`: first with the prompt, then with every step's tokens."""
        if self._prompt:
            self._prompt = False
            return
        now = time.perf_counter()
        self.taken.append((value.numel(), now - self._last))
        self._last = now

    def end(self) -> None:
        """Called by `generate` at the end."""


class HuggingFacePeer:
    """A causal model run by transformers."""

    def __init__(self, settings: dict[str, Any]) -> None:
        torch.set_num_threads(settings["threads"])
        dtype = getattr(torch, settings["dtype"])
        self._model = _load(settings["model"], dtype)
        self._ways: dict[str, Any] = {}
        if settings.get("prompt_lookup"):
            self._ways["prompt_lookup_num_tokens"] = settings["prompt_lookup"]
        if settings.get("assistant"):
            self._ways["assistant_model"] = _load(settings["assistant"], dtype)
        self._rows: list[int] = []
        self._model.register_forward_pre_hook(self._count, with_kwargs=True)
        self.versions = {"transformers": transformers.__version__, "torch": torch.__version__}

    def answer(self, ids: list[int], max_new_tokens: int, stop: list[int], fresh: bool) -> dict[str, Any]:
        """Answer a prompt greedily. Every pass is told by its rows: one, and as many as were drafted."""
        self._rows = []
        prompt = torch.tensor([ids])
        steps = Steps()
        with torch.inference_mode():
            whole = self._model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=False,
                max_new_tokens=max_new_tokens,
                eos_token_id=stop or None,
                pad_token_id=stop[0] if stop else 0,
                streamer=steps,
                **self._ways,
            )
        tokens = whole[0, len(ids) :].tolist()
        drafted = sum(rows - 1 for rows in self._rows[1:]) + max(0, self._rows[0] - len(ids))
        return {
            "tokens": tokens,
            "steps": steps.taken,
            "passes": len(self._rows) - 1,
            "drafted": drafted,
            "accepted": len(tokens) - len(self._rows) if self._ways else 0,
        }

    def _count(self, module: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        found = named.get("input_ids")
        self._rows.append(int((arguments[0] if found is None else found).shape[-1]))


def _load(folder: str, dtype: torch.dtype) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True).eval()


def open_peer(settings: dict[str, Any]) -> HuggingFacePeer:
    """Load the model."""
    return HuggingFacePeer(settings)
