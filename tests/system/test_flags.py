"""Flags are called as parameters of the library are, read the same in all commands, and stand in messages."""

from __future__ import annotations

import inspect
import json

import pytest

testing = pytest.importorskip("typer.testing", reason="the command line needs typer")

from typer.main import get_command  # noqa: E402  (only where typer is installed)

import covalign as ca  # noqa: E402
from covalign.cli import app  # noqa: E402
from covalign.cli.application import REMEDIES, SYNONYMS, in_flags  # noqa: E402
from covalign.study import comparison, costs, reproduction  # noqa: E402
from covalign.study.arena import tournament  # noqa: E402
from covalign.study.profiles import Inputs, Profile  # noqa: E402
from covalign.study.runner import Resources  # noqa: E402
from covalign.tables.name_rules import NameRule  # noqa: E402
from covalign.tables.view_layout import Layout  # noqa: E402

COMMANDS = get_command(app).commands
# Options for files, and what only a command needs: which rows, how to print.
FILES = {"view", "covariates", "covariate", "index", "by_position", "key", "out", "report", "save", "figure"}
FILES |= {"sets", "factors_out", "loadings_out", "mofa_out", "sets_out", "force", "json", "list", "quick", "tiny"}
FILES |= {"read_gbs", "network_gbs"}
# How tables are read; na is a parameter of read_table, and no_scale names the views for which scale is False.
TABLES = {*Layout._fields, *NameRule._fields, ca.covariates.ordered.__name__, "no_scale", "na"}


def options(command):
    """The options of a command by their long names, as identifiers."""
    every = [option for option in command.params if option.param_type_name == "option" and option.name != "help"]
    return {max(option.opts, key=len)[2:].replace("-", "_"): option for option in every}


def parameters(*functions):
    return {name for function in functions for name in inspect.signature(function).parameters}


STUDY = {*Profile._fields, *Inputs._fields, *Resources._fields}
STANDS_FOR = {
    "align": parameters(ca.LatentAligner, ca.LatentAligner.fit, ca.LatentAligner.at),
    "fit": parameters(ca.InformedFactorAnalysis, ca.InformedFactorAnalysis.fit, ca.InformedFactorAnalysis.at),
    "check": parameters(ca.InformedFactorAnalysis.fit),
    "transform": parameters(ca.LatentAligner.transform, ca.InformedFactorAnalysis.transform),
    "frontier": parameters(ca.cross_validated_frontier),
    "compare": parameters(comparison.compare),
    "simulate": parameters(ca.simulate.scenario),
    "info": set(),
    "features": parameters(ca.InformedFactorAnalysis.features_frame),
    "associations": parameters(ca.InformedFactorAnalysis.associations),
    "enrich": parameters(ca.InformedFactorAnalysis.enrichment),
    "report": parameters(ca.report.write),
    "plan": parameters(costs.checked),
    "reproduce": parameters(reproduction.reproduce) | STUDY,
    "arena": parameters(tournament.arena) | STUDY,
    "embed": parameters(ca.embed.images, ca.embed.texts),
}


def test_all_commands_are_here():
    assert {*STANDS_FOR} == {*COMMANDS}


@pytest.mark.parametrize("name", STANDS_FOR)
def test_every_option_is_called_as_its_parameter(name):
    for flag, option in options(COMMANDS[name]).items():
        repeated = f"{flag}s" if option.multiple else flag  # one flag for each value of a list
        assert {flag, repeated} & (STANDS_FOR[name] | FILES | TABLES), flag


def test_the_same_flag_has_the_same_help_and_the_same_place():
    order = {name: [*options(command)] for name, command in COMMANDS.items()}
    for first in ("check", "align", "frontier", "fit", "transform", "compare"):
        for second in ("check", "align", "frontier", "fit", "transform", "compare"):
            shared = [flag for flag in order[first] if flag in order[second]]
            assert shared == [flag for flag in order[second] if flag in shared]
    for flag in (
        "covariate",
        "confounder",
        "index",
        "by_position",
        "key",
        "lam",
        "max_coupling",
        "shrinkage",
        "report",
    ):
        said = {options(command)[flag].help for command in COMMANDS.values() if flag in options(command)}
        assert len(said) == 1, said
    for flag in ("drop_first", "random_state", "force", "json"):
        said = {options(command)[flag].help for command in COMMANDS.values() if flag in options(command)}
        assert len(said) == 1, said


@pytest.mark.parametrize("name", STANDS_FOR)
def test_help_is_sentences(name):
    for option in COMMANDS[name].params:
        if not getattr(option, "hidden", False):
            assert option.help[0].isupper(), option.help
            assert option.help.endswith("."), option.help


# -- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STANDS_FOR)
def test_arguments_in_messages_become_flags(name):
    for parameter, option in options(COMMANDS[name]).items():
        flag = f"--{parameter.replace('_', '-')}"
        if option.is_flag:
            says = {
                f"use {parameter}=True.": f"use {flag}.",
                f"{parameter}=False": (option.secondary_opts or [f"no {flag}"])[0],
            }
        else:
            says = {
                f"use {parameter}='drop', or": f"use {flag} drop, or",
                f"use {parameter}=0.5.": f"use {flag} 0.5.",
                f'({parameter}="a b")': f"({flag} 'a b')",
                f"pass {parameter}=.": f"pass {flag}.",
                f"pass {parameter}=...": f"pass {flag} ...",
                f"{parameter} needs a number": f"{flag} needs a number",
            }
        if option.multiple:
            says[f"{parameter}s=['a', 'b']"] = f"{flag} a {flag} b"
            if f"{parameter}s" in options(COMMANDS[name]):
                del says[f"{parameter}s=['a', 'b']"]
        for message, want in says.items():
            assert in_flags(message, COMMANDS[name]) == want
        for message in (f"got '{parameter}=1.csv'", f"x{parameter}=1", f"in '{parameter} = 1 or so'"):
            assert in_flags(message, COMMANDS[name]) == message


def test_overwrite_is_force_and_names_with_underscores_are_flags_anywhere():
    fit = COMMANDS["fit"]
    assert in_flags("choose another, or pass overwrite=True.", fit) == "choose another, or pass --force."
    assert in_flags("got n_factors = 3: raise n_factors", fit) == "got --n-factors 3: raise --n-factors"
    assert (
        in_flags("see model.n_factors, n_factors_ and n_init()", fit) == "see model.n_factors, n_factors_ and n_init()"
    )
    assert in_flags("peers=False", COMMANDS["reproduce"]) == "--no-peers"


def test_a_line_without_a_command_stays_as_it_is():
    assert in_flags("use lam=0.5\nor  less", COMMANDS["info"]) == "use lam=0.5 or less"


def test_errors_and_warnings_of_the_library_name_flags(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = testing.CliRunner().invoke(app, ["simulate", "PN", "--n-samples", "0", "-o", "made"])
    assert "--n-samples needs" in result.stderr
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").touch()
    result = testing.CliRunner().invoke(app, ["simulate", "PN", "-o", "made"])
    assert "--force" in result.stderr
    assert "overwrite" not in result.stderr


# -- flags that are not there -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("fit --starts 2", "--n-init"),
        ("fit --seed 2", "--random-state"),
        ("fit --factors 2", "--n-factors"),
        ("compare --gaps drop", "--missing"),
        ("simulate PN --samples 3", "--n-samples"),
        ("plan --rows 3", "--n-samples"),
        ("plan --dims 3", "--n-features"),
        ("transform m --std", "--return-std"),
        ("embed x --overwrite", "--force"),
        ("align z.npy --lambda 1", "--lam"),
    ],
)
def test_the_present_name_of_a_flag_is_suggested(line, meant):
    result = testing.CliRunner().invoke(app, line.split())
    assert result.exit_code == 2
    assert meant in result.stderr.split("Error", 1)[1]
    assert result.stdout == ""
    machine = testing.CliRunner().invoke(app, [*line.split(), "--json"])
    answer = json.loads(machine.stdout)
    assert answer["exit_code"] == machine.exit_code == 2
    assert meant in answer["error"]


def test_synonyms_are_of_flags_that_exist():
    known = {f"--{flag.replace('_', '-')}" for command in COMMANDS.values() for flag in options(command)}
    assert {*SYNONYMS.values()} <= known
    assert not {*SYNONYMS} & known


def test_remedies_of_the_library_become_those_of_commands():
    said = in_flags(
        "if these are row names, name the column of row names with read_table(path, index='case')", COMMANDS["align"]
    )
    assert said == "if these are row names, name the column of row names with --index case"
    for remedy, here in REMEDIES.items():
        assert in_flags(f"rename these, or {remedy}.", COMMANDS["align"]) == f"rename these, or {here}."
