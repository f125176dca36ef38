"""Topoformer: attention along seven relations, with no message from an empty neighbourhood."""

import math

import numpy as np
import pytest
import torch

from lope.core.errors import UsageError
from lope.graphs.graph import Graph
from lope.graphs.learned.features import NUM_SCALARS, schedule_features
from lope.graphs.learned.memory_features import NUM_MEMORY_FEATURES
from lope.graphs.learned.memory_problem import MemoryProblem
from lope.graphs.learned.network import NetworkShape, PriorityNetwork
from lope.graphs.learned.relations import seven_relations
from lope.graphs.learned.schedule_problem import ScheduleProblem
from lope.graphs.learned.topoformer import RelationAttention, Topoformer, additive
from lope.graphs.schedules.machines import Machines

GRAPH = Graph.build(
    [(0, 1), (1, 2), (0, 2), (2, 3), (4, 3)],
    num_nodes=6,
    durations=[3, 1, 4, 1, 5, 9],
    machine_types=[0, 1, 0, 1, 0, 1],
    output_bytes=[5, 3, 5, 8, 9, 7],
)
RELATIONS = seven_relations(GRAPH)


@torch.no_grad()
def one_by_one(attention: RelationAttention, nodes: torch.Tensor, relations: np.ndarray) -> torch.Tensor:
    """The same attention in plain loops over relations, heads, nodes and neighbours."""
    num_relations, num_heads, width = attention.shape
    split = attention.query_key_value(nodes).view(len(nodes), 3, num_relations, num_heads, width)
    rows = []
    for u in range(len(nodes)):
        messages = []
        for r in range(num_relations):
            for h in range(num_heads):
                message = torch.zeros(width)
                neighbours = np.flatnonzero(relations[r, u])
                scores = [float(split[u, 0, r, h] @ split[v, 1, r, h]) / math.sqrt(width) for v in neighbours]
                total = sum(math.exp(score) for score in scores)
                for v, score in zip(neighbours, scores, strict=True):
                    message = message + math.exp(score) / total * split[v, 2, r, h]
                messages.append(message)
        rows.append(attention.out(torch.cat(messages)))
    return torch.stack(rows)


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_is_its_definition(heads: int) -> None:
    torch.manual_seed(0)
    attention = RelationAttention(8, 4, heads)
    nodes = torch.randn(6, 8)
    found = attention(nodes, additive(torch.from_numpy(RELATIONS)))
    assert torch.allclose(found, one_by_one(attention, nodes, RELATIONS), atol=1e-5)


def test_an_empty_neighbourhood_sends_nothing() -> None:
    torch.manual_seed(0)
    attention = RelationAttention(8, 4, 1)
    lonely = attention(torch.randn(1, 8), additive(torch.zeros(7, 1, 1, dtype=torch.bool)))
    assert torch.equal(lonely[0], attention.out.bias)
    none = attention(torch.randn(3, 8), additive(torch.zeros(7, 3, 3, dtype=torch.bool)))
    assert torch.allclose(none, attention.out.bias.expand(3, 8))


def test_mutant_that_averages_over_all_nodes_where_there_are_none_is_caught() -> None:
    torch.manual_seed(0)
    attention = RelationAttention(8, 4, 1)
    nodes = torch.randn(6, 8)
    everybody = RELATIONS | ~RELATIONS.any(axis=2, keepdims=True)
    wrong = attention(nodes, additive(torch.from_numpy(everybody)))
    assert not torch.allclose(wrong, one_by_one(attention, nodes, RELATIONS), atol=1e-3)


def test_renumbering_the_nodes_renumbers_the_embeddings() -> None:
    torch.manual_seed(0)
    model = Topoformer(5, width=16, num_layers=2, head_width=4)
    features, order = torch.randn(6, 5), torch.tensor([3, 1, 5, 0, 2, 4])
    relations = additive(torch.from_numpy(RELATIONS))
    moved = model(features[order], relations[:, order][:, :, order])
    assert torch.allclose(moved, model(features, relations)[order], atol=1e-5)


def test_training_begins_at_the_warm_start() -> None:
    machines = Machines((1, 1))
    schedule = ScheduleProblem.read(GRAPH, machines, 2)
    memory = MemoryProblem.read(GRAPH)
    for problem, size, types in ((schedule, NUM_SCALARS + 2, 2), (memory, NUM_MEMORY_FEATURES, 0)):
        network = PriorityNetwork(NetworkShape(size, types, width=16, scale=4.0))
        logits = network(*problem.inputs.tensors())
        assert torch.allclose(logits, 4.0 * problem.inputs.heuristic)
        assert problem.greedy(logits.detach().double().numpy()).tolist() == problem.known_order.tolist()


def test_features_do_not_depend_on_units() -> None:
    reach = RELATIONS[0] | RELATIONS[2] | RELATIONS[4]
    scaled = Graph.build(GRAPH.edges, num_nodes=6, durations=GRAPH.durations * 1000, machine_types=GRAPH.machine_types)
    machines = Machines((1, 1))
    found = [schedule_features(graph, machines, reach, 3) for graph in (GRAPH, scaled)]
    assert np.allclose(*found)
    assert found[0].shape == (6, NUM_SCALARS + 3)
    assert found[0][:, NUM_SCALARS:].argmax(axis=1).tolist() == GRAPH.machine_types.tolist()


def test_more_machine_types_than_the_network_knows_are_refused() -> None:
    with pytest.raises(UsageError, match="up to 1 machine types, not 2"):
        ScheduleProblem.read(GRAPH, Machines((1, 1)), 0)
