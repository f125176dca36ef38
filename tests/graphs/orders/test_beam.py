import numpy as np
import pytest

from lope.graphs.errors import GraphError
from lope.graphs.generators.layered import layered_graph
from lope.graphs.graph import Graph
from lope.graphs.memory import peak_lower_bound, peak_memory
from lope.graphs.orders import set_search
from lope.graphs.orders.beam import BeamOrder, beam_order, improve, least_held
from lope.graphs.orders.beam_state import BeamState, Run
from lope.graphs.orders.chains import LONGEST, Chains
from lope.graphs.orders.set_search import SetSearch

WIDE = 4096


def wrong_answers(graphs, least_peak) -> int:
    return sum(peak_memory(graph, beam_order(graph, WIDE)) != least_peak(graph) for graph in graphs)


def test_a_wide_beam_is_exact_and_says_so(small_graphs, least_peak):
    for graph in small_graphs:
        found = SetSearch(WIDE).run(graph, least_held)
        assert found.is_proven
        assert peak_memory(graph, found.order) == least_peak(graph)


def test_what_is_called_proven_is_best(small_graphs, least_peak):
    rng = np.random.default_rng(3)
    proven = 0
    for graph in small_graphs:
        best = least_peak(graph)
        for width in (1, 2, 3):
            floor, ceiling = int(rng.integers(0, best + 3)), int(rng.integers(best, best + 4))
            found = SetSearch(width, floor, ceiling).run(graph, least_held)
            if found.is_proven:
                proven += 1
                assert (best if found.order is None else peak_memory(graph, found.order)) == best
                assert found.order is not None or ceiling <= best
    assert proven > 100


def merges_by_count(state: BeamState, nodes: tuple[int, ...]) -> int:
    return state.num_done + len(nodes)


def merges_by_last_node(state: BeamState, nodes: tuple[int, ...]) -> int:
    return nodes[-1]


@pytest.mark.parametrize("wrong", [merges_by_count, merges_by_last_node])
def test_wrong_merging_is_seen(monkeypatch, small_graphs, least_peak, wrong):
    real = BeamState.reached
    # `follow` must still know what has run: only the search's own key is wrong.
    monkeypatch.setattr(set_search.BeamState, "reached", wrong)
    monkeypatch.setattr(BeamState, "follow", _follow_with(real, BeamState.follow))
    assert wrong_answers(small_graphs, least_peak) > 0


def _follow_with(real, follow):
    def followed(state, run, *, reuse=False):
        after = follow(state, run, reuse=reuse)
        after.done = real(state, run.nodes)
        return after

    return followed


def test_runs_that_ignore_the_cost_are_seen(monkeypatch, small_graphs, least_peak):
    # A mutant that takes any ready node as one that costs nothing.
    monkeypatch.setattr(BeamState, "runs", lambda state: [state.run_of(min(state.frontier.ready))])
    assert wrong_answers(small_graphs, least_peak) > 0


def test_a_run_past_the_lowest_place_of_a_chain_is_seen(monkeypatch, small_graphs, least_peak):
    # A mutant that always goes on to the end of a chain.
    def to_the_end(state: BeamState, node: int) -> Run:
        last, steps, at, rise, sizes = node, 0, 0, 0, state.frontier.sizes
        following = state._chains.following
        while following[last] >= 0:
            rise = max(rise, at + state.frontier.needs[following[last]])
            last, steps = following[last], steps + 1
            at = sizes[last] - sizes[node]
        peak, live = state.after(node)
        return Run(max(peak, live + rise), live + at, state._chains.nodes(node, steps))

    monkeypatch.setattr(BeamState, "run_of", to_the_end)
    assert wrong_answers(small_graphs, least_peak) > 0


def test_long_chains_are_followed_only_so_far():
    # Two rows of 1,000 nodes that shrink by a byte each: one row after the other holds 1,001 + 1,000 - 1 at first.
    n = 1000
    edges = [(v, v + 1) for v in range(2 * n - 1) if v != n - 1]
    sizes = [1000 - v % n for v in range(2 * n)]
    graph = Graph.build(edges, output_bytes=sizes)
    assert max(stop.steps for stops in Chains.of(graph).stops for stop in stops) == LONGEST
    assert peak_memory(graph, beam_order(graph, 2)) == peak_memory(graph, range(2 * n)) == 1 + 1000 + 999


def test_every_run_says_what_the_evaluator_says(small_graphs, simulated):
    for graph in small_graphs:
        state = BeamState.start(graph, 0)
        while state.num_done < graph.num_nodes:
            runs = state.runs()
            state = state.follow(runs[-1])
            during = simulated(graph, state.order())
            assert state.peak == max(during)
            assert state.frontier.live == runs[-1].live


def test_copies_do_not_share_tables(small_graphs):
    for graph in small_graphs:
        state = BeamState.start(graph, 0)
        before = [(run.peak, run.live) for run in state.runs()]
        for run in state.runs():
            state.follow(run)
        assert [(run.peak, run.live) for run in state.runs()] == before


def test_more_time_is_never_worse_and_a_bad_order_is_never_returned():
    graph = layered_graph(np.random.default_rng(1), 200)
    given = np.arange(graph.num_nodes)
    assert improve(graph, given, 0.0).tolist() == given.tolist()
    assert peak_memory(graph, improve(graph, given, 0.3)) <= peak_memory(graph, given)
    assert graph.check_order(BeamOrder(seconds=1e-9).order(graph)) is not None


def test_anytime_stops_by_itself_once_an_order_is_proven(xla_graph):
    # A year's limit: this test ends because the search does.
    assert peak_memory(xla_graph, BeamOrder(seconds=3e7).order(xla_graph)) == 5


def test_priorities_break_ties_and_only_ties(small_graphs):
    two = Graph.build([], output_bytes=[3, 3])
    assert beam_order(two, 1, priorities=[0, 1]).tolist() == [1, 0]
    assert beam_order(two, 1, priorities=[1, 0]).tolist() == [0, 1]
    unequal = Graph.build([(0, 2), (1, 2)], output_bytes=[1, 2, 0], kept=[False] * 3)
    assert beam_order(unequal, 1, priorities=[0, 99, 0]).tolist() == [0, 1, 2]
    with pytest.raises(GraphError, match="3 numbers"):
        beam_order(unequal, 1, priorities=[0, 99])
    rng = np.random.default_rng(0)
    for graph in small_graphs[::5]:
        wide = beam_order(graph, WIDE, priorities=rng.normal(size=graph.num_nodes))
        assert peak_memory(graph, wide) == peak_memory(graph, beam_order(graph, WIDE))


def test_a_floor_is_never_below_what_every_order_needs(small_graphs):
    for graph in small_graphs[::10]:
        found = SetSearch(8, floor=-5).run(graph, least_held)
        assert peak_memory(graph, found.order) >= peak_lower_bound(graph)
