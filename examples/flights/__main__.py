"""The whole way once: Ray members, a Spark pipeline, a load, hourly upserts under statements, six questions.

Ends with exit code 0 only if every answer was DuckDB's.
"""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from types import FrameType

import secateur
from examples.flights.answer import Answer, Oracle, WrongAnswerError, ask
from examples.flights.dataset import unpack
from examples.flights.increments import ReaderThread, check_agreement, hourly_increments, until_last_day
from examples.flights.pipeline import clean, start_spark
from examples.flights.questions import AIRCRAFT, QUESTIONS
from examples.flights.screen import Screen
from examples.flights.tables import DDL
from secateur.errors import Error

__all__ = ["main", "run"]


def run(screen: Screen) -> None:
    """Run the demo; whatever was started is ended, also after an exception or Ctrl-C."""
    with ExitStack() as ends:
        screen.heading("Three members on Ray")
        with screen.step("Starting Ray, a controller and three members") as notes:
            cluster = ends.enter_context(secateur.start(members=3, runtime="ray"))
            _watch_signals()
            connection = ends.enter_context(cluster.connect())
            notes.append(cluster.address)

        screen.heading("A Spark pipeline over the flights of 2013")
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="secateur-flights-")))
        with screen.step("Starting Spark"):
            spark = start_spark(folder)
            ends.callback(spark.stop)
            _watch_signals()
        with screen.step("Reading, cleaning and enriching"):
            cleaned = clean(spark, unpack(folder))
        screen.findings(cleaned.findings)

        screen.heading("From Spark straight into the members")
        for name, table in cleaned.tables.items():
            with screen.step(f"Loading {name}") as notes:
                connection.execute(DDL[name])
                first = until_last_day(table) if name == "flights" else table
                report = secateur.spark.write(first, name, mode="append", address=cluster.address)
                notes.append(f"{report.rows:,} rows, {report.rows / report.seconds:,.0f} a second")
        screen.members(cluster.members())

        screen.heading("The last day of the year, hour by hour, while statements are answered")
        flights = cleaned.tables["flights"]
        increments = list(hourly_increments(flights))
        totals = list(accumulate((increment.scheduled for increment in increments), initial=0))
        with (
            screen.step(f"{len(increments)} upserts") as notes,
            ReaderThread(cluster.connect, AIRCRAFT, totals) as reader,
        ):
            for increment in increments:
                secateur.spark.write(increment.rows, "flights", mode="upsert", address=cluster.address)
            notes.append(f"{totals[-1]:,} flights, each twice; {reader.lookups:,} look-ups meanwhile,")
            notes.append(f"median {reader.median_ms:.2f} ms")
        with screen.step("Comparing what Spark and secateur hold") as notes:
            notes.append(f"the figures of {check_agreement(flights, connection)} airlines agree")

        with screen.step("Giving DuckDB the same rows, to compare every answer with"):
            oracle = Oracle({name: table.toArrow() for name, table in cleaned.tables.items()})
            ends.callback(oracle.close)
        unpruned = ends.enter_context(cluster.connect())
        unpruned.execute("SET pruning = off")
        answers: dict[str, Answer] = {}
        for question in QUESTIONS:
            answers[question.title] = ask(connection, unpruned, oracle, question)
            screen.answer(question, answers[question.title])

        screen.heading("In short: medians, each answer compared with DuckDB's")
        screen.summary(answers)
        with screen.step("Stopping Spark, the members and Ray"):
            ends.close()


def main() -> int:
    """Run as a program.

    Returns:
        0 when all went well, 1 when something failed, 130 after Ctrl-C.
    """
    _watch_signals()
    screen = Screen()
    try:
        run(screen)
    except KeyboardInterrupt:
        screen.say("Interrupted; everything that was started has been stopped.")
        return 130
    except (Error, WrongAnswerError, FileNotFoundError) as error:
        screen.say(f"The demo failed: {type(error).__name__}: {error}")
        return 1
    return 0


def _watch_signals() -> None:
    # Ray and Spark each install handlers of their own when they start, which would end the process, or talk about it,
    # before everything is stopped.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Impatience must not interrupt the stopping: only the first one counts. What libraries log from now on is that they
    # were interrupted.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    logging.disable()
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
