"""Made-up results documents: the numbers mean nothing, their relations are those of real ones."""

import random
from typing import Any

from lope.bench.record import Row, Turn
from lope.bench.suite import Suite

_PLAIN = ("plain", "plain again")


def made_row(item: Any, system: str, chance: random.Random, *, tells: bool = True, tokens: int = 48) -> Row:
    """One row; a system that is not plain drafts four tokens a pass and has some accepted."""
    drafts = 0 if system in _PLAIN else 4
    turns = []
    for _ in item.turns:
        steps, accepted_at, offered_at, passes = [(1, 0.2 + 0.1 * chance.random())], [0] * drafts, [0] * drafts, 0
        while (left := tokens - sum(count for count, _ in steps)) > 0:
            path = 0
            for place in range(min(drafts, left - 1)):
                offered_at[place] += 1
                if chance.random() > 0.6:
                    break
                accepted_at[place] += 1
                path += 1
            steps.append((path + 1, (0.02 + 0.002 * drafts) * (0.9 + 0.3 * chance.random())))
            passes += 1
        accepted = sum(accepted_at)
        told = {"passes": passes, "drafted": drafts * passes, "accepted": accepted} if tells else {}
        positions = {"offered_at": tuple(offered_at), "accepted_at": tuple(accepted_at)} if tells else {}
        words = tuple(7 if tells or chance.random() < 0.9 else 8 for _ in range(tokens))
        turns.append(Turn(20, words, tuple(steps), **told, **positions))
    memory = 300_000_000 + chance.randrange(10**8)
    return Row(item.id, item.category, item.group, system, tuple(turns), memory, 0)


def made_document(
    systems: tuple[str, ...] = ("plain", "plain again", "ngram"),
    *,
    peers: tuple[str, ...] = (),
    calibration: bool = True,
    lacking: tuple[tuple[str, str], ...] = (),
    seed: int = 0,
) -> dict[str, Any]:
    """A document of the built-in suite. lacking: rows that are not there."""
    chance = random.Random(seed)
    rows = [
        made_row(item, system, chance, tells=system not in peers)
        for item in Suite.mini().items
        for system in (*systems, *peers)
        if (item.id, system) not in lacking
    ]
    costs = {
        "system": next(name for name in systems if name not in _PLAIN),
        "contexts": [64, 512],
        "passes": [
            {"sizes": [1, 4, 16, 64], "seconds": [0.020, 0.021, 0.024, 0.050]},
            {"sizes": [1, 4, 16, 64], "seconds": [0.024, 0.025, 0.029, 0.061]},
        ],
        "overhead": 0.001,
        "drafting": {"sizes": [1, 8], "seconds": [0.0001, 0.0002]},
        "nodes": list(range(17)),
    }
    settings = {
        "suite": "mini",
        "max_new_tokens": 48,
        "model": "made <up>",
        "dtype": "float32",
        "threads": 1,
        "processor": "a processor & more",
    }
    session = {
        "started": "2026-01-01T00:00:00+00:00",
        "commit": "0" * 12,
        "load_average": [0.1, 0.2, 0.3],
        "versions": {"lope": "0.1.0"},
        "notes": ["a peer is skipped"],
    }
    named = [{"name": name, "kind": "ours", "how": name} for name in systems]
    named += [{"name": name, "kind": "peer", "how": name, "versions": {"it": "1"}} for name in peers]
    return {
        "schema": 1,
        "kind": "lope bench speed",
        "settings": settings,
        "reference": systems[0],
        "plain": ["plain", "plain again"],
        "systems": named,
        "items": [],
        "left_out": [],
        "calibration": [costs] if calibration else [],
        "sessions": [session],
        "rows": [row.to_json() for row in rows],
    }
