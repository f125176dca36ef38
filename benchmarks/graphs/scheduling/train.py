"""Repeat the training of shipped weights: `python train.py jssp RUN_FOLDER [--data FILE] [--out WEIGHTS.safetensors]`.

Stops at any time and goes on from the last checkpoint in RUN_FOLDER; a line a step goes to RUN_FOLDER/log.jsonl.
"""

import argparse
from pathlib import Path

import torch

from lope.graphs.learned.recipes import RECIPES, train_recipe
from lope.graphs.learned.weights import save_network


def main() -> None:
    """Train one recipe on one core and write its weights with their card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", help="the TPC-H file or its folder (default: $LOPE_DATA)")
    parser.add_argument("--out", type=Path, help="where to write the weights (default: in the run's folder)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    trainer = train_recipe(given.name, given.folder, data=given.data)
    out = given.out or given.folder / f"{given.name}.safetensors"
    card = {**RECIPES[given.name].card(), "steps": trainer.step, "seconds": round(trainer.seconds)}
    save_network(trainer.network, out, card)
    print(f"written: {out}")


if __name__ == "__main__":
    main()
