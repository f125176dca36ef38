"""Groups of verbs: in the order of their table, imported when asked for, absent modules left out."""

import sys

import pytest
import typer
from typer.testing import CliRunner

from lope.cli.lazy_verbs import lazy_verbs

TABLE = {"version": "tests.cli.no_such_module:app", "plan": "lope.cli.plan:app", "bench": "lope.cli.bench:app"}


@pytest.fixture
def group() -> typer.Typer:
    app = typer.Typer(cls=lazy_verbs(TABLE), no_args_is_help=True)
    app.callback()(lambda: None)
    return app


def test_absent_modules_are_left_out_and_the_order_is_the_tables(group: typer.Typer) -> None:
    command = typer.main.get_command(group)
    assert command.list_commands(None) == ["plan", "bench"]
    assert CliRunner().invoke(group, ["version"]).exit_code == 2
    assert CliRunner().invoke(group, ["nosuchverb"]).exit_code == 2


def test_a_verb_is_imported_when_it_is_asked_for(group: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lope.cli.plan", raising=False)
    command = typer.main.get_command(group)
    assert "lope.cli.plan" not in sys.modules
    found = command.get_command(None, "plan")
    assert found.name == "plan"
    assert "lope.cli.plan" in sys.modules


def test_two_groups_do_not_share_their_tables(group: typer.Typer) -> None:
    other = lazy_verbs({"run": "lope.cli.run:app"})
    assert other(name="other").list_commands(None) == ["run"]
    assert typer.main.get_command(group).list_commands(None) == ["plan", "bench"]
