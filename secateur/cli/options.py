"""Options that several commands have, so that they are written and explained alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from secateur.client.connect import ADDRESS_VARIABLE, TOKEN_VARIABLE

__all__ = ["Address", "AddressOption", "AsJson", "ClusterName", "InputFile", "LogFormat", "Token"]

_ADDRESS_HELP = "The cluster, secateur://host:port. Left out: the cluster that `secateur start` has started here."

Address: TypeAlias = Annotated[
    str | None, typer.Argument(envvar=ADDRESS_VARIABLE, help=_ADDRESS_HELP, show_default=False)
]
AddressOption: TypeAlias = Annotated[
    str | None, typer.Option("--address", envvar=ADDRESS_VARIABLE, help=_ADDRESS_HELP, show_default=False)
]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option(
        envvar=TOKEN_VARIABLE,
        help="The secret of the cluster. Left out: that of the cluster that was started here.",
        show_default=False,
        show_envvar=True,
    ),
]
LogFormat: TypeAlias = Annotated[
    str, typer.Option("--log-format", help="text, or json: log lines on standard error, one object a line.")
]
ClusterName: TypeAlias = Annotated[str, typer.Option("--name", help="The name of the cluster on this machine.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON.")]
InputFile: TypeAlias = Annotated[Path, typer.Argument(help="The file.", exists=True, dir_okay=False)]
