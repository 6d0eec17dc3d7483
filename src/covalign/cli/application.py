"""What all commands share: the application, its messages, and its exit codes."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import covalign as package
from covalign._core.extras import missing_extra
from covalign._core.files import target_exists
from covalign._core.interrupts import Interrupted, interruptible
from covalign._core.json_values import json_value
from covalign._core.messages import (
    AS_CATEGORY,
    AS_LEVELS,
    AS_NUMBERS,
    BY_POSITION,
    DECLARE_ALL,
    DECLARE_FIRST,
    GIVE_COVARIATES,
    KEEP_FIRST,
    MATCH_PREFIX,
    MORE_SWEEPS,
    OTHER_COLUMNS,
    TRANSPOSE,
    message,
)
from covalign._core.paths import exists, is_folder
from covalign.exceptions import MissingExtraError, TargetExistsError

try:
    import typer
    from typer.core import TyperGroup
except ImportError:
    raise missing_extra("typer", "cli") from None

# Click itself uses 2 for a command line that it cannot parse.
FAILED, MISUSED, EXISTS, MISSING_EXTRA, INTERRUPTED = 1, 2, 3, 4, 130

EXIT_CODES = (
    "Exit codes: 0 success; 1 the work or a part of it failed; 2 the command line or the data are wrong; "
    "3 a file exists already (--force replaces it); 4 a Python package is not installed; 130 interrupted."
)

NO_MEMORY = "there is not enough memory for this: use fewer rows, features or folds, or a machine with more memory"
DEFECT = "this is a defect of covalign, please report it; python -X dev -m covalign ... shows where it occurred"
RESUMES = "finished work is kept, and the same command resumes"

# Names that earlier versions or other programs have for an option.
SYNONYMS = {
    "--starts": "--n-init",
    "--seed": "--random-state",
    "--gaps": "--missing",
    "--std": "--return-std",
    "--rows": "--n-samples",
    "--dims": "--n-features",
    "--overwrite": "--force",
}

# Remedies that commands have another way for.
REMEDIES = {
    BY_POSITION: "use --by-position if rows are in the same order",
    GIVE_COVARIATES: "give a table of covariates, or name columns of that file with --covariate",
    MATCH_PREFIX: "use --match prefix",
    KEEP_FIRST: "use --match first to keep the first of each",
    AS_NUMBERS: "write plain numbers, or levels that are not numbers, or choose other columns with --covariate",
    AS_CATEGORY: "if these are levels, put a letter before every number",
    AS_LEVELS: "choose other columns with --covariate",
    OTHER_COLUMNS: "write numbers in this column, or remove it from the file",
    DECLARE_FIRST: "choose other columns with --covariate",
    DECLARE_ALL: "leave out the rows with other levels",
    TRANSPOSE: "use --transpose all",
    MORE_SWEEPS: "raise --max-iter",
}

RUNNING: ContextVar[Any] = ContextVar("RUNNING", default=None)  # the command that runs, as click knows it


class AnswerLostError(Exception):
    """Standard output took no more: its disk is full, for example."""


class Commands(TyperGroup):
    """The group of commands. With --json, standard output has a wrong command line's error, too."""

    def main(self, args: Any = None, *more: Any, **options: Any) -> Any:
        """Run a command line. No error ends in a traceback, and no character in an error of its encoding."""
        as_json = "--json" in (sys.argv[1:] if args is None else args)
        _open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            return _flushed(super().main, args, *more, **options)
        except (KeyboardInterrupt, Interrupted):
            stopped = _stop("interrupted", INTERRUPTED, as_json)
        except (AnswerLostError, OSError) as error:
            _forget_output()
            why = _system_words(error) if isinstance(error, OSError) else error
            stopped = _stop(f"the answer cannot be written to standard output ({why})", FAILED, as_json=False)
        except Exception as error:
            if sys.flags.dev_mode:
                raise
            full = isinstance(error, ImportError) and re.search("failed to map|[Cc]annot allocate", str(error))
            defect = f"unexpected {type(error).__name__}: {error}; {DEFECT}"
            stopped = _stop(NO_MEMORY if full else defect, FAILED, as_json)
        sys.exit(stopped.exit_code)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, and remember it for ``in_flags``."""
        ctx.meta["covalign.json"] = "--json" in args
        found = super().resolve_command(ctx, args)
        RUNNING.set(found[1])
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Suggest the present name of an option that has another name here."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            meant = SYNONYMS.get(getattr(error, "option_name", None) or "")
            if hasattr(error, "possibilities") and meant in _flags(getattr(error, "ctx", None)):
                error.possibilities = [meant]
            if hasattr(error, "format_message") and ctx.meta.get("covalign.json"):
                say_json({"error": error.format_message(), "exit_code": MISUSED})
            raise


def _flags(ctx: Any) -> list[str]:
    return [] if ctx is None else [name for param in ctx.command.params for name in param.opts]


app = typer.Typer(
    cls=Commands,
    help="Latent dimensions that answer to names.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(package.__version__)
        raise typer.Exit()


@app.callback()
def covalign(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version and exit."),
    ] = False,
) -> None:
    """Latent dimensions that answer to names."""


def say(*lines: Any) -> None:
    """Print lines of the answer to standard output."""
    try:
        for line in lines:
            typer.echo(line)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise AnswerLostError(_system_words(error)) from error


def note(text: Any) -> None:
    """Print a note to standard error. The work goes on if no one can read it."""
    with suppress(OSError):
        typer.echo(text, err=True)


def say_json(answer: Any) -> None:
    """Print the answer as JSON, in ASCII, which every terminal and pipe can take. NaN and infinity become null."""
    say(json.dumps(json_value(answer), allow_nan=False))


def reply(as_json: bool, answer: Any, *lines: Any) -> None:
    """Print the answer as JSON, or as lines for readers."""
    if as_json:
        say_json(answer)
    else:
        say(*lines)


def note_reasons(reasons: Mapping[str, Mapping[str, Any]]) -> None:
    """Print to standard error what has no result, and why: status -> name -> reason."""
    for status, names in reasons.items():
        for name, why in names.items():
            note(f"{status}: {name}: {why}")


def reply_made(made: Any, as_json: bool) -> None:
    """Print the files that a study made; print what has no result, and why, to standard error."""
    reasons = {"absent": made.outcome.absent, "skipped": made.skipped, "failed": made.outcome.failed}
    files = [str(file) for file in made.files]
    reply(as_json, {"files": files, **reasons}, *files)
    note_reasons({status: {name: in_flags(why) for name, why in some.items()} for status, some in reasons.items()})


# -- messages ---------------------------------------------------------------------------------------------------------


def in_flags(text: Any, command: Any = None) -> str:
    """A message of the library, in one line, with flags of the command that runs instead of Python arguments.

    ``lam=0.5`` becomes ``--lam 0.5``, ``overwrite=True`` becomes ``--force``, ``confounders=['batch']`` becomes
    ``--confounder batch``. Bare names are replaced at the start ("lam needs ...") and where they have an underscore.
    Quoted text, such as the name of a file, stays as it is, and so do arguments that the command has no flag for.
    """
    line = re.sub(r"read_table\(path, ((?:index|na)=[^)]*)\)", r"\1", " ".join(str(text).split()))
    for remedy, here in REMEDIES.items():
        line = line.replace(remedy, here)
    known = _arguments(RUNNING.get() if command is None else command)
    if not known:
        return line
    names = "|".join(sorted(known, key=len, reverse=True))
    bare = "|".join(name for name in known if "_" in name) or "(?!)"
    quoted = r"""(?<!\w)(?:'[^']*'|"[^"]*")(?!\w)"""
    value = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|\.\.\.|[\w.+-]*\w|"""
    pattern = (
        rf"{quoted}|^(?P<first>{names})(?= (?:needs|must|cannot) )"
        rf"|(?<![\w./=-])(?:(?P<name>{names})(?: = |=)(?P<value>{value})|(?P<bare>{bare})(?![\w(]|\.\w))"
    )
    return re.sub(pattern, lambda found: _flag(known, found), line)


def _arguments(command: Any) -> dict[str, Any]:
    """Python arguments by name, with the option that stands for each."""
    options = [] if command is None else [param for param in command.params if param.param_type_name == "option"]
    known = {_long(option)[2:].replace("-", "_"): option for option in options}
    several = {f"{name}s": option for name, option in known.items() if option.multiple}
    renamed = {"overwrite": known["force"]} if "force" in known else {}
    return {**several, **renamed, **known}


def _long(option: Any) -> str:
    return str(max(option.opts, key=len))


def _flag(known: dict[str, Any], found: re.Match[str]) -> str:
    name, value = found["first"] or found["bare"] or found["name"], found["value"]
    if name is None:
        return found[0]
    flag = _long(known[name])
    if not value or value == "True":
        return flag
    if value in ("False", "None"):
        return str((known[name].secondary_opts or [f"no {flag}"])[0])
    values = re.findall(r"'([^']*)'|\"([^\"]*)\"|([^\s,\[\]'\"]+)", value)
    return " ".join(f"{flag} {shlex.quote(''.join(one)) if one[2] != '...' else '...'}" for one in values)


def check_free(*paths: Path | None, force: bool) -> None:
    """Refuse, before any work, to replace existing files or to write into a folder that cannot be written to."""
    for path in paths:
        if path is None:
            continue
        folder = path.absolute().parent
        if exists(path) and not force:
            raise target_exists(path)
        if not is_folder(folder):
            raise ValueError(message(f"The folder of {str(path)!r} does not exist", remedy="Make it first"))
        if not os.access(folder, os.W_OK):
            raise ValueError(message(f"The folder of {str(path)!r} is not writable", remedy="Choose another one"))


@contextmanager
def answering(kept: str = "nothing was written", *, as_json: bool = False) -> Iterator[None]:
    """Turn errors that the user can correct into one line on standard error and an exit code.

    ``kept`` says what an interruption leaves behind. With ``as_json`` standard output has the error, too.
    """
    try:
        with interruptible():
            yield
    except BrokenPipeError:  # the reader of the answer has stopped reading: typer ends quietly
        raise
    except TargetExistsError as error:
        raise _stop(error, EXISTS, as_json) from None
    except MissingExtraError as error:
        raise _stop(error, MISSING_EXTRA, as_json) from None
    except ValueError as error:
        raise _stop(error, MISUSED, as_json) from None
    except OSError as error:
        raise _stop(_system_words(error), MISUSED, as_json) from None
    except MemoryError:
        raise _stop(f"{NO_MEMORY}; {kept}", FAILED, as_json) from None
    except (KeyboardInterrupt, Interrupted):
        raise _stop(f"interrupted; {kept}", INTERRUPTED, as_json) from None


def _flushed(run: Any, *args: Any, **options: Any) -> Any:
    """Run, then write what is still in the buffer: at the end of the process an error would be a traceback."""
    try:
        return run(*args, **options)
    except SystemExit:
        sys.stdout.flush()
        raise


def _open_closed_streams() -> None:
    """Standard streams that the caller closed lead nowhere, or the next open file would take their place."""
    while (nowhere := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(nowhere)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  # for the whole process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _system_words(error: OSError) -> str:
    """What the system says, without its numbers."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return message("The working folder does not exist any more", remedy="Change to another folder")
    why = "its disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
    return why if error.filename is None else f"{str(error.filename)!r}: {why}"


def _forget_output() -> None:
    """Send what is left in the buffer of standard output to nowhere, or Python complains at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _stop(why: Any, code: int, as_json: bool) -> typer.Exit:
    line = in_flags(why)
    note(f"covalign: {line}")
    if as_json:
        with suppress(AnswerLostError):
            say_json({"error": line, "exit_code": code})
    return typer.Exit(code)


def main() -> None:
    """Entry point."""
    app()
