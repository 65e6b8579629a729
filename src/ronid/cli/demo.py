"""`ronid demo`: the whole flow on a help desk that ships with the package."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from ronid.cli.console import note, print_json
from ronid.cli.fit import start
from ronid.cli.options import AsJson, Device, Quiet
from ronid.cli.tables import intents_table, run_summary, scores_table

SOURCE = "the Pedalo help desk (demo)"


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the run; an older demo is replaced.")
    ] = Path("demo-run"),
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result (on CPU).")] = 0,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Discover the intents of a made-up bike-share help desk; under a minute on a laptop."""
    from ronid.data.demo import demo_corpus
    from ronid.presets import preset
    from ronid.run import Job, open_run

    if (out / "run.json").is_file() and open_run(out).facts().get("source") == SOURCE:
        shutil.rmtree(out)
    corpus = demo_corpus()
    n_intents = len({name for name in corpus.truth or () if name})
    if not quiet:
        note(f"the demo is told that there are {n_intents} intents; ronid fit finds the number")
    job = Job(corpus, None, n_intents, preset("fast"), seed, device)
    run = start(out, job, SOURCE, quiet)
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
