"""`never` looks at nothing."""

from lope.stops.never import NeverStop


def test_it_never_stops_and_needs_no_laws():
    assert NeverStop().should_stop(None, [(), (1.0,)]) == [(False, ()), (False, ())]
