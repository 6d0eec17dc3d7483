"""What all commands share: the application, how they speak, and what their exit codes mean."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import covalign as package
from covalign._core import validation as errors

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
    say(json.dumps(_plain(answer), allow_nan=False))  # in ASCII, which every terminal and pipe can take


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
    """Refuse, before any work, to replace files that are there, or to write where that is not possible."""
    for path in paths:
        if path is None:
            continue
        folder = path.absolute().parent
        if path.exists() and not force:
            raise errors.target_exists(path, "say --force")
        if not folder.is_dir():
            raise errors.no_folder(path)
        if not os.access(folder, os.W_OK):
            raise errors.locked_folder(path)


@contextmanager
def answering(kept: str = "nothing was written", *, as_json: bool = False) -> Iterator[None]:
    """Errors of the user's making become one line on standard error and an exit code; ``kept`` says what is left.

    With ``as_json`` standard output, where the answer would be, has the same error for machines.
    """
    try:
        with interruptible():
            yield
    except BrokenPipeError:  # who reads the answer has read enough: typer ends quietly
        raise
    except errors.TargetExistsError as error:
        raise _stop(error, EXISTS, as_json) from None
    except errors.MissingExtraError as error:
        raise _stop(error, MISSING_EXTRA, as_json) from None
    except (ValueError, OSError) as error:
        raise _stop(error, MISUSED, as_json) from None
    except KeyboardInterrupt:
        raise _stop(f"interrupted; {kept}", INTERRUPTED, as_json) from None


def _stop(why: Any, code: int, as_json: bool) -> typer.Exit:
    line = " ".join(str(why).splitlines())
    note(f"covalign: {line}")
    if as_json:
        with suppress(OSError):  # which may be what went wrong
            say_json({"error": line, "exit_code": code})
    return typer.Exit(code)


class _Stopped(BaseException):
    """Control-C, under a name that nothing on the way catches."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Control-C end the command: a fit would take KeyboardInterrupt for "enough sweeps" and go on from there."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # someone else listens, or nobody is to
        return

    def stop(*_: Any) -> None:
        raise _Stopped

    try:
        signal.signal(signal.SIGINT, stop)
    except ValueError:  # only the main thread may
        yield
        return
    try:
        yield
    except _Stopped:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    """Entry point."""
    app()
