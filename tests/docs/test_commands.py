"""Every command line in the README, in the documentation and in a command's own help is run, as it is written.

A block of code is one test, in which its lines run in order; a command in the text, or in the help, is a test of its
own, unless a block has the same line. They run in a copy of ``tests.workbench``, which has the files that examples
name.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("typer.testing", reason="typer is not installed")
pytest.importorskip("PIL", reason="pillow is not installed")

from threadpoolctl import threadpool_limits
from typer.main import get_command
from typer.testing import CliRunner

from covalign.cli import app
from covalign.study.reproduction import names as figures
from tests import fits, workbench

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(covalign\s[^`]+)`")
WRITTEN = {
    "-o",
    "--out",
    "--report",
    "--save",
    "--figure",
    "--factors-out",
    "--loadings-out",
    "--mofa-out",
    "--sets-out",
    "--claims",
    "--page",
}


class Example(NamedTuple):
    """Command lines to be run one after another, and where they stand."""

    where: str
    lines: tuple[str, ...]


# -- what there is ----------------------------------------------------------------------------------------------------


def commands(group=None, path: str = "covalign") -> Iterator[tuple[str, object]]:
    """Every command of the application, by the words that call it."""
    for name, command in (get_command(app) if group is None else group).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        elif not command.hidden:
            yield f"{path} {name}", command


COMMANDS = dict(commands())


def tidy(line: str) -> str:
    """Without the prompt, the comment after it, and line breaks within it."""
    return " ".join(re.sub(r"\s#\s.*", "", line.strip().removeprefix("$ ")).split())


def in_block(block: str) -> tuple[str, ...]:
    lines = re.sub(r"\\\n", " ", block).splitlines()
    return tuple(tidy(line) for line in lines if re.match(r"\s*(\$ )?covalign\s", line))


def in_help(command) -> Iterator[str]:
    """What follows ``Example:``, to the end of the paragraph."""
    for paragraph in re.split(r"\n\s*\n|\f|\b(?=Example:)", command.help or ""):
        if paragraph.strip().startswith("Example:"):
            yield tidy(paragraph.strip().removeprefix("Example:").replace("\\\n", " "))


def is_mention(line: str) -> bool:
    """Text about a command: its name alone, or with ``...`` where something is left out."""
    return line in COMMANDS or line == "covalign" or "..." in line or "…" in line


def written() -> tuple[list[Example], list[str]]:
    """Examples, each once, and mentions."""
    found: list[Example] = []
    for page in PAGES:
        text, name = page.read_text(), str(page.relative_to(ROOT))
        found += [Example(name, in_block(block)) for block in FENCED.findall(text)]
        found += [Example(name, (tidy(span),)) for span in INLINE.findall(FENCED.sub("", text))]
    found += [Example("help", (line,)) for command in COMMANDS.values() for line in in_help(command)]
    mentions = [example.lines[0] for example in found if len(example.lines) == 1 and is_mention(example.lines[0])]
    run = {example.lines: example for example in found if example.lines and example.lines[0] not in mentions}
    in_blocks = {line for lines in run if len(lines) > 1 for line in lines}
    return [run[lines] for lines in run if len(lines) > 1 or lines[0] not in in_blocks], sorted(set(mentions))


EXAMPLES, MENTIONS = written()


def runs_the_study(example: Example) -> bool:
    """Even a small part of it takes long: ``tests/statistics/test_commands.py`` runs these examples."""
    return any(line.startswith("covalign reproduce ") and "--list" not in line for line in example.lines)


# -- how they are run -------------------------------------------------------------------------------------------------


def option(words: list[str], names: set[str]) -> Iterator[str]:
    """Values of these options."""
    for i, word in enumerate(words):
        name, _, value = word.partition("=")
        if word in names:
            yield words[i + 1]
        elif name in names:
            yield value


def arguments(line: str) -> list[str]:
    """The words after ``covalign``; comparisons and the study are cut down, because the whole study takes hours.

    ``test_study`` runs all of it at a reduced size; here one figure stands for it.
    """
    words = shlex.split(line.split(" | ")[0])[1:]
    if words[0] == "compare" and "--list" not in words:
        return [*words, "--budget", "5"]
    if words[0] == "arena":
        return [*words, "--jobs", "1", "--no-peers"]
    if words[0] != "reproduce" or "--list" in words:
        return words
    kept, skip = [], False
    for word in words:
        if not skip and word not in {"--quick", "--reps", "--jobs", "--slow-reps"}:
            kept.append(word)
        skip = word in {"--reps", "--jobs", "--slow-reps"}
    kept += [] if {*kept} & {*figures()} else ["fig3"]
    return [*kept, "--tiny", "--reps", "1", "--slow-reps", "0", "--jobs", "1", "--no-peers"]


@pytest.fixture(scope="session")
def furnished(tmp_path_factory) -> Path:
    return workbench.furnish(tmp_path_factory.mktemp("workbench"))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A function that puts a model of this name into a folder; every model is made once."""
    kept = tmp_path_factory.mktemp("models")

    def provide(name: str, folder: Path) -> None:
        for package in ("torch", "transformers"):
            pytest.importorskip(package, reason=f"{package} is not installed")
        if not (kept / name).exists():
            (kept / name).mkdir(parents=True)
            workbench.MODELS[name](kept / name)
        shutil.copytree(kept / name, folder / name)

    return provide


@pytest.fixture
def shorter_fits(monkeypatch):
    """Fits stop at a loose tolerance, in one thread: the tests of the model look at its numbers."""
    fits.loosen(monkeypatch)
    with threadpool_limits(1):
        yield


@pytest.fixture
def smaller_study(monkeypatch):
    """Even the smallest study, or comparison, fits thousands of lassos; its own tests do that."""
    from covalign.closed_form import metrics
    from covalign.closed_form.metrics.dci import DCI
    from covalign.study.profiles import PROFILES, TINY

    less = TINY._replace(alphas=(1.0,), bs=(1.0,), lams=(0.5,), budget=2)
    monkeypatch.setitem(PROFILES, "tiny", less)
    monkeypatch.setattr(metrics, "dci", lambda *_: DCI(0.5, 0.5, 0.5))


@pytest.fixture
def smaller_measurements(monkeypatch):
    """The machine is measured with few features and a small file."""
    from covalign.study import costs

    measured, disk = costs.measured, costs._disk
    monkeypatch.setattr(costs, "_disk", lambda: disk(2**20))
    monkeypatch.setattr(costs, "measured", lambda job, **known: measured(job._replace(n_features=8), **known))


def clear(folder: Path, lines: list[list[str]]) -> None:
    """Take away what the lines are going to write, unless one of them reads it first."""
    made: set[str] = set()
    for words in lines:
        targets = set(option(words, WRITTEN))
        for target in targets - made:
            read = any(target in word for word in words if word != target) or words.count(target) > 1
            if (folder / target).is_file() and not read:
                (folder / target).unlink()
        made |= targets


def each(examples: list[Example]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("example", examples, ids=lambda example: f"{example.where}: {example.lines[0]}")


def assert_it_runs(example: Example, furnished: Path, models, tmp_path: Path, monkeypatch) -> None:
    folder = shutil.copytree(furnished, tmp_path / "here")
    lines = [arguments(line) for line in example.lines]
    clear(folder, lines)
    for name in {name for words in lines for name in option(words, {"--model", "-m"})}:
        models(name, folder)
    if any(re.search(r"\.(h5ad|h5mu)\b", word) for words in lines for word in words):
        pytest.importorskip("mudata", reason="anndata and mudata are not installed")
    monkeypatch.chdir(folder)
    for words in lines:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"covalign {shlex.join(words)}\n{done.output}"
        for target in option(words, WRITTEN):
            assert (folder / target).exists(), f"covalign {shlex.join(words)} wrote no {target}"


@pytest.mark.filterwarnings("default")  # a warning is no failure of a command
@pytest.mark.usefixtures("smaller_study", "shorter_fits", "smaller_measurements")
@each([example for example in EXAMPLES if not runs_the_study(example)])
def test_it_runs_as_written(example, furnished, models, tmp_path, monkeypatch):
    assert_it_runs(example, furnished, models, tmp_path, monkeypatch)


@pytest.mark.parametrize("mention", MENTIONS)
def test_what_is_mentioned_exists(mention):
    words = mention.replace("...", " ").replace("…", " ").split()
    (command,) = [command for name, command in COMMANDS.items() if words[: len(name.split())] == name.split()]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in words if word.startswith("-")} <= options | {"--help", "-h"}


# -- that the collection sees what there is ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_of_itself_in_its_help(name):
    assert any(line.startswith(f"{name} ") for line in in_help(COMMANDS[name]))


def test_the_readme_and_the_documentation_have_examples():
    places = {example.where for example in EXAMPLES}
    assert {"README.md", "help"} <= places
    assert any(place.startswith("docs") for place in places)
    assert max(len(example.lines) for example in EXAMPLES) > 1


def test_lines_are_found_however_they_are_written():
    text = (
        "Say `covalign plan\n--n-samples 1` or\n\n```bash\n$ covalign info \\\n  m.covalign   # what it is\nls\n```\n"
    )
    assert [in_block(block) for block in FENCED.findall(text)] == [("covalign info m.covalign",)]
    assert [tidy(span) for span in INLINE.findall(FENCED.sub("", text))] == ["covalign plan --n-samples 1"]


def test_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text()
    lines = [line for page in PAGES for block in FENCED.findall(page.read_text()) for line in block.splitlines()]
    targets = {match[1] for line in lines if (match := re.match(r"\s*(?:\$ )?make ([\w-]+)", line))}
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


# -- in a shell -------------------------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """What bash is offered when the tabulator is pressed at the end of the line."""
    words = {"_COVALIGN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return CliRunner().invoke(app, [], env=words, prog_name="covalign").stdout.split()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.count(" ") == 1])
def test_a_shell_completes_commands_and_their_options(name):
    assert name.removeprefix("covalign ") in completed(name[:-1])
    assert {"--json", "--help"} <= set(completed(f"{name} --"))
