"""`lope learn`: its JSON, its files, and one clear line for every mistake."""

import json

import pytest

from lope.cli.main import main

SMALL = ["--seeds", "3", "--steps", "60", "--processes", "1"]


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `lope learn ...`."""
    with pytest.raises(SystemExit) as ended:
        main(["learn", *arguments])
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.mark.parametrize(
    ("verb", "methods"),
    [
        ("riverswim", {"tsde", "lazy", "linear", "ucrl2"}),
        ("random-mdp", {"tsde", "lazy", "linear", "ucrl2"}),
        ("lq", {"psrl_lq", "psrl_lq:growth=false", "psrl_lq:halving=false", "certainty_equivalence", "optimal"}),
        ("bandit", {"ucb1", "ucb_tuned", "thompson", "gaussian_thompson", "exp3", "epsilon_greedy"}),
    ],
)
def test_json_is_one_document_of_the_agreed_shape(capsys, verb: str, methods: set[str]) -> None:
    code, out, _ = run(capsys, verb, *SMALL, "--points", "3", "--json")
    document = json.loads(out)
    assert code == 0
    assert set(document) == {"j_star", "regret", "at"}
    assert document["at"] == [20, 40, 60]
    assert set(document["regret"]) == methods
    for curve in document["regret"].values():
        assert set(curve) == {"mean", "stderr"}
        assert len(curve["mean"]) == len(curve["stderr"]) == 3


def test_the_published_optima(capsys) -> None:
    small = ["--seeds", "1", "--steps", "2", "--processes", "1", "--json"]
    _, out, _ = run(capsys, "riverswim", *small, "--method", "tsde")
    assert json.loads(out)["j_star"] == pytest.approx(0.777064, abs=1e-6)
    assert json.loads(out)["regret"]["tsde"]["stderr"] == [None, None]
    _, out, _ = run(capsys, "lq", *small, "--method", "optimal")
    assert json.loads(out)["j_star"] == pytest.approx(7.99194, abs=1e-5)


def test_people_get_a_table(capsys) -> None:
    code, out, _ = run(capsys, "riverswim", *SMALL, "--method", "tsde", "--method", "tsde:prior=1.0")
    assert code == 0
    assert "J* = 0.777064" in out
    assert "±" in out


def test_out_writes_every_repeat_and_a_plot(capsys, tmp_path) -> None:
    file = tmp_path / "swim.json"
    code, _, _ = run(capsys, "riverswim", *SMALL, "--method", "tsde", "--out", str(file))
    document = json.loads(file.read_text())
    assert code == 0
    assert len(document["repeats"]["tsde"]["final_regret"]) == 3
    mean = sum(document["repeats"]["tsde"]["final_regret"]) / 3
    assert document["regret"]["tsde"]["mean"][-1] == pytest.approx(mean, rel=1e-4)
    assert document["settings"]["steps"] == 60
    assert {"command", "commit", "versions", "machine", "seconds", "lope_version"} <= set(document)
    assert file.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_a_process_and_a_system_of_ones_own(capsys, tmp_path) -> None:
    process, system = tmp_path / "process.json", tmp_path / "system.json"
    process.write_text('{"transitions": [[[0, 1]], [[1, 0]]], "rewards": [[0.25], [0.5]]}')
    code, out, _ = run(capsys, "mdp", str(process), *SMALL, "--json")
    assert code == 0
    assert json.loads(out)["j_star"] == pytest.approx(0.625)
    system.write_text('{"A": [[0.0]], "B": [[1]], "Q": [[3]], "R": [[1]]}')
    code, out, _ = run(capsys, "lq", "--system", f"file:path={system}", *SMALL, "--json")
    assert code == 0
    assert json.loads(out)["j_star"] == pytest.approx(3.0)


MISTAKES = [
    (["riverswim", "--seeds", "0"], "seeds must be at least 1"),
    (["riverswim", "--method", "tsed"], "did you mean 'tsde'"),
    (["riverswim", "--method", "tsde:priors=2"], "no setting"),
    (["riverswim", "--variant", "x"], "variant must be one of tsde, ucrl"),
    (["riverswim", "--states", "2"], "states must be at least 3"),
    (["riverswim", "--cost-noise", "nan"], "cost_noise must be at least 0"),
    (["random-mdp", "--concentration", "0"], "concentration must be a finite number above 0"),
    (["riverswim", "--out", "/nowhere/x.json"], "in a folder that exists"),
    (["riverswim", "--out", "x.txt"], "the path of a .json file"),
    (["lq", "--system", "cart"], "no LQ system part 'cart'"),
    (["lq", "--method", "psrl_lq:measure=trace"], "measure must be norm or radius"),
    (["mdp", "/nowhere.json"], "there is no file"),
    (["bandit", "--chances", "0.5,x"], "numbers separated by commas"),
    (["bandit", "--chances", "0.5,1.5"], "must lie between 0 and 1"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else None
)
def test_mistakes_are_one_clear_line_and_exit_code_2(capsys, arguments: list[str], message: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 2
    assert message in json.loads(out)["error"]


def test_a_multichain_process_is_a_clear_error(capsys, tmp_path) -> None:
    process = tmp_path / "process.json"
    process.write_text('{"transitions": [[[1, 0]], [[0, 1]]], "costs": [[0.25], [0.5]]}')
    code, out, _ = run(capsys, "mdp", str(process), *SMALL, "--json")
    assert code == 2
    assert "multichain" in json.loads(out)["error"]


def test_an_unstabilisable_system_is_a_clear_error(capsys, tmp_path) -> None:
    system = tmp_path / "system.json"
    system.write_text('{"A": [[1.5]], "B": [[0]], "Q": [[1]], "R": [[1]]}')
    code, out, _ = run(capsys, "lq", "--system", f"file:path={system}", *SMALL, "--json")
    assert code == 2
    assert "cannot be stabilised" in json.loads(out)["error"]
