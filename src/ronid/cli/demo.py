"""`ronid demo`: the whole flow on a help desk that ships with the package."""

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ronid.cli.console import note, print_json
from ronid.cli.fit import finished_left, start
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import AsJson, Device, Quiet, Seed
from ronid.cli.tables import intents_table, run_summary, scores_table

if TYPE_CHECKING:
    from ronid.run import RunFolder

SOURCE = "the Pedalo help desk (demo)"


@on_interrupt(UNCHANGED)
def demo(
    out: Annotated[
        Path, typer.Option(help="Run folder to create. An older demo run is replaced.")
    ] = Path("demo-run"),
    seed: Seed = 0,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Try RoNID on a small example help desk, in under a minute on a laptop.

    The demo uses preset `fast` and the true number of intents. It prints the intents and how well
    they agree with the true labels.
    """
    from ronid.data.demo import demo_corpus
    from ronid.presets import preset
    from ronid.run import Job, open_run

    corpus = demo_corpus()
    if (out / "run.json").is_file() and open_run(out).facts().get("source") == SOURCE:
        shutil.rmtree(out)
    n_intents = len({name for name in corpus.truth or () if name})
    if not quiet:
        note(f"the demo is told that there are {n_intents} intents; ronid fit finds the number")
    job = Job(corpus, None, n_intents, preset("fast"), seed, device)
    run = start(out, job, SOURCE, quiet)
    with on_interrupt(partial(finished_left, run)):
        _show(run, as_json, quiet)


def _show(run: "RunFolder", as_json: bool, quiet: bool) -> None:
    """Print what the demo found, and how right it is."""
    if as_json:
        print_json(run_summary(run))
        return
    intents_table(run)
    scores = run.scores()
    if scores is not None:
        from ronid.types import Scores

        if not quiet:
            note("against the hidden truth, unlabelled utterances only, in percent:")
        scores_table(Scores(**scores))
    if not quiet:
        note(f"report: {run.path / 'report.html'}")
