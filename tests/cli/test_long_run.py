"""Where nobody sees a bar a line now and then says how far it is."""

import pytest

from lope.cli.long_run import LongRun


def test_lines_come_where_there_is_no_terminal_and_not_too_often(capsys: pytest.CaptureFixture[str]) -> None:
    with LongRun(silent=False, every=0.0) as shown:
        shown.show("distil", 0.25, "step 1/4 [bold]")
        shown.show("distil", 0.5, "step 2/4")
    with LongRun(silent=False, every=60.0) as shown:
        shown.show("distil", 0.75, "step 3/4")
    with LongRun(silent=True, every=0.0) as shown:
        shown.show("distil", 1.0, "step 4/4")
    found = capsys.readouterr()
    assert found.err.splitlines() == ["distil: 25%, step 1/4 [bold]", "distil: 50%, step 2/4"]
    assert found.out == ""
