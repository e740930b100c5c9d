"""Options that several commands have, so that they are written and explained alike."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

from secateur.client.connect import ADDRESS_VARIABLE, TOKEN_VARIABLE

# The environment is read where the cluster is found (connecting.py): what it says yields to --name.
_ADDRESS_HELP = (
    f"The cluster, secateur://host:port. Left out: that of --name, of {ADDRESS_VARIABLE}, or the one that was started"
    " here."
)
_NAME_HELP = "The name of the cluster on this machine."

Address: TypeAlias = Annotated[str | None, typer.Argument(help=_ADDRESS_HELP, show_default=False)]
AddressOption: TypeAlias = Annotated[str | None, typer.Option("--address", help=_ADDRESS_HELP, show_default=False)]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"The secret of the cluster. Left out: that of the one that was started here, or {TOKEN_VARIABLE}.",
        show_default=False,
    ),
]
LogFormat: TypeAlias = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="text, or json: log lines on standard error, one object a line."),
]
NewName: TypeAlias = Annotated[str, typer.Option("--name", help=_NAME_HELP)]
ClusterName: TypeAlias = Annotated[
    str | None, typer.Option("--name", help=f"{_NAME_HELP} Needed where several run.", show_default=False)
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON.")]
