"""The scripts by which shells complete the command line."""

from __future__ import annotations

from click.shell_completion import get_completion_class

from specmine.cli.base import bash_completion
from specmine.cli.base.completion import VARIABLE

SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    """Return the script of a shell; it asks ``specmine`` itself at each TAB.

    Parameters
    ----------
    shell : str
        One of ``SHELLS``.
    """
    from specmine.cli.main import specmine  # noqa: PLC0415  (which imports the commands' tables)

    kind = bash_completion.Bash if shell == "bash" else get_completion_class(shell)
    if kind is None:
        raise ValueError(f"no completion for {shell}")
    # the text alone: .source() would run a bash to find out its version
    values = kind(specmine, {}, "specmine", VARIABLE).source_vars()
    return str(kind.source_template % values).strip() + "\n"
