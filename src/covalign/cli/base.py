"""What all commands share: the application, how they speak, and what their exit codes mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import covalign as package
from covalign import _validation as errors

try:
    import typer
except ImportError:
    raise errors.missing_extra("typer", "cli") from None

# What a caller learns from the exit code. Click itself uses 2 for an option it does not know.
FAILED, MISUSED, EXISTS, MISSING_EXTRA, INTERRUPTED = 1, 2, 3, 4, 130

EXIT_CODES = (
    "Exit codes: 0 done; 1 part of the work failed; 2 the command or the data are not as needed; "
    "3 a file is there already (--force replaces it); 4 an extra is not installed; 130 interrupted."
)

RESUMES = "what is finished is kept, the same command goes on from there"

app = typer.Typer(
    help="Latent dimensions that answer to names.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that are there already.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(package.__version__)
        raise typer.Exit()


@app.callback()
def covalign(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it and stop.")
    ] = False,
) -> None:
    """Latent dimensions that answer to names."""


def say(text: Any = "") -> None:
    """A line of the answer, on standard output."""
    typer.echo(text)


def note(text: Any) -> None:
    """A line beside the answer, on standard error."""
    typer.echo(text, err=True)


def say_json(answer: Any) -> None:
    """The answer for machines: JSON has no NaN, so null stands for it."""
    say(json.dumps(_plain(answer), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def check_free(*paths: Path | None, force: bool) -> None:
    """Refuse, before any work, to replace files that are there, or to write where there is no folder."""
    for path in paths:
        if path is not None and path.exists() and not force:
            raise errors.target_exists(path, "say --force")
        if path is not None and not path.absolute().parent.is_dir():
            raise errors.no_folder(path)


@contextmanager
def answering(kept: str = "nothing was written") -> Iterator[None]:
    """Errors of the user's making become one line on standard error and an exit code; ``kept`` says what is left."""
    try:
        yield
    except errors.TargetExistsError as error:
        raise _stop(error, EXISTS) from None
    except errors.MissingExtraError as error:
        raise _stop(error, MISSING_EXTRA) from None
    except (ValueError, OSError) as error:
        raise _stop(error, MISUSED) from None
    except KeyboardInterrupt:
        raise _stop(f"interrupted; {kept}", INTERRUPTED) from None


def _stop(why: Any, code: int) -> typer.Exit:
    note(f"covalign: {why}")
    return typer.Exit(code)


def main() -> None:
    """Entry point."""
    app()
