"""Shipped and trained weights: a safetensors file, and beside it a JSON card that says what they are for.

The card holds `problem` (`schedule` or `memory`), `shape` (the settings of `NetworkShape`), `recipe` and `reached`.
"""

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from lope.core import json_reader
from lope.core.errors import ModelError, SettingError
from lope.graphs.learned.network import NetworkShape, PriorityNetwork

SHIPPED = Path(__file__).with_name("weights")


def shipped_names() -> list[str]:
    """The names of the weights that come with lope."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


@cache
def load_network(name: str, problem: str) -> PriorityNetwork:
    """The network of shipped weights `name`, or of a file `name.safetensors` with its card `name.json`.

    Raises SettingError where there is none or it is for another problem, ModelError where a file is broken.
    """
    weights = SHIPPED / f"{name}.safetensors" if name in shipped_names() else Path(name).with_suffix(".safetensors")
    if not weights.is_file():
        raise SettingError(f"no weights {name!r} (shipped: {', '.join(shipped_names())}; or a path to a .safetensors)")
    card = read_card(weights.with_suffix(".json"))
    if card.get("problem") != problem:
        raise SettingError(f"weights {name!r} are for problem {card.get('problem')!r}, not {problem!r}")
    try:
        network = PriorityNetwork(NetworkShape(**card["shape"]))
        network.load_state_dict(load_file(weights))
    except (KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"{weights} does not fit its card: {str(error).splitlines()[0]}") from None
    network.requires_grad_(False)
    return network.eval()


def read_card(path: Path) -> dict[str, Any]:
    """The card of a weights file. Raises ModelError where it is absent or no JSON object."""
    try:
        card = json_reader.parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: weights need a card beside them ({error})") from None
    if not isinstance(card, dict):
        raise ModelError(f"{path} is not a card")
    return card


def save_network(network: PriorityNetwork, path: Path, card: dict[str, Any]) -> None:
    """Write `path` (.safetensors) and its card; `shape` is filled in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, path)
    full = {"problem": card["problem"], "shape": dataclasses.asdict(network.shape), **card}
    path.with_suffix(".json").write_text(json.dumps(full, indent=1) + "\n", encoding="utf-8")
