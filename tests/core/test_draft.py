import pytest

from lope.core.draft import EMPTY, ROOT, Draft, Draw, chain
from lope.core.verdict import NOTHING, Verdict

#        root
#     5   5   6        node 1 copies node 0
#    7 8      7        children of the copies hang under node 0
TREE = Draft((5, 5, 6, 7, 8, 7), (ROOT, ROOT, ROOT, 0, 0, 2), (Draw.INDEPENDENT,) * 6, (0,) * 6, None, (-1,) * 7)


def test_a_trees_relations() -> None:
    assert TREE.firsts == (0, 0, 2, 3, 4, 5)
    assert TREE.children == ((0, 1, 2), (3, 4), (), (5,), (), (), ())
    assert TREE.depths == (1, 1, 1, 2, 2, 2)
    assert [TREE.path(node) for node in (ROOT, 4, 5)] == [(), (0, 4), (2, 5)]
    assert [TREE.words(node) for node in (ROOT, 4, 5)] == [(), (5, 8), (6, 7)]
    assert len(TREE) == 6


def test_a_chain_is_a_tree_of_points() -> None:
    draft = chain((4, 4, 9), source=2)
    assert draft.parents == (ROOT, 0, 1)
    assert draft.firsts == (0, 1, 2)
    assert draft.words(2) == (4, 4, 9)
    assert set(draft.draws) == {Draw.POINT}
    assert draft.source == (2, 2, 2)


def test_an_empty_draft_is_still_a_draft() -> None:
    assert len(EMPTY) == 0
    assert EMPTY.children == ((),)
    with pytest.raises(TypeError, match="ask for its length"):
        bool(EMPTY)
    assert len(chain(())) == 0


def test_a_verdict_is_cut_to_text() -> None:
    verdict = Verdict((0, 3, 4), (5, 7, 8, 9))
    assert verdict.cut(9) == verdict.cut(4) == verdict
    assert verdict.cut(2) == Verdict((0,), (5, 7))
    assert verdict.cut(1) == Verdict((), (5,))
    assert Verdict((), ()) == NOTHING
    with pytest.raises(AssertionError):
        verdict.cut(0)
