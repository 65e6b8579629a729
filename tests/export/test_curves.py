import math

from ronid.export.curves import curves

HISTORY = [
    {"stage": "pretrain", "epoch": 1, "loss": 2.0, "loss_ce": 1.5, "loss_mlm": 0.5, "lr": 1e-4},
    {"stage": "pretrain", "epoch": 2, "loss": 1.0, "loss_ce": 0.8, "dev_accuracy": 71.5},
    {"stage": "em", "epoch": 1, "loss": 3.0, "changed": 0.125, "prior_entropy": 0.98},
    {"stage": "em", "epoch": 2, "loss": math.nan, "changed": None, "accuracy": 70.0},
]


def test_each_stage_gets_the_charts_it_has_numbers_for() -> None:
    assert [chart.title for chart in curves(HISTORY)] == [
        "Pre-training: loss",
        "Pre-training: held-out accuracy",
        "EM rounds: loss",
        "EM rounds: pseudo-labels changed",
        "EM rounds: entropy of the class prior",
        "EM rounds: accuracy",
    ]


def test_points_pair_epochs_with_finite_values_only() -> None:
    charts = {chart.title: chart for chart in curves(HISTORY)}
    total, labelled, masked = charts["Pre-training: loss"].series
    assert total.points == ((1, 2.0), (2, 1.0))
    assert (labelled.name, labelled.points) == ("labelled", ((1, 1.5), (2, 0.8)))
    assert masked.points == ((1, 0.5),)
    assert charts["EM rounds: loss"].series[0].points == ((1, 3.0),)
    assert charts["EM rounds: pseudo-labels changed"].series[0].points == ((1, 12.5),)


def test_a_total_equal_to_its_only_part_is_shown_once() -> None:
    (chart,) = curves([{"stage": "contrast", "epoch": 0, "loss": 1.0, "loss_intra": 1.0}])
    assert [series.name for series in chart.series] == ["intra-cluster"]


def test_odd_histories_do_no_harm() -> None:
    assert curves([]) == ()
    assert curves([{"stage": "em", "epoch": 1, "note": "text", "other": 3}]) == ()
    (chart,) = curves([{"loss": 1.0}, {"loss": 0.5}])
    assert chart.title == "Training: loss"
    assert chart.series[0].points == ((0, 1.0), (1, 0.5))


def test_losses_and_figures_of_other_methods_are_shown_in_their_own_words() -> None:
    rows = [
        {"stage": "self_train", "epoch": 1, "loss": 3.0, "loss_self_training": 2.0, "loss_ce": 1.0},
        {"stage": "discover", "epoch": 1, "loss": 1.0, "silhouette": 0.2, "dev_nmi": 80.0},
    ]
    charts = {chart.title: [series.name for series in chart.series] for chart in curves(rows)}
    assert charts == {
        "Self-training: loss": ["total", "labelled", "self training"],
        "Discover: loss": ["total"],
        "Discover: held-out accuracy": ["NMI"],
        "Discover: silhouette": ["silhouette"],
    }


COUNT = {
    "stage": "count", "k": 5, "estimate": 5, "low": 4, "high": 7, "leftover": 0,
    "numbers": [4, 5, 6], "rise": [1.0, 3.0, 2.0],
}  # fmt: skip


def test_the_number_of_intents_is_shown_with_its_evidence() -> None:
    (chart,) = curves([{**COUNT, "leftover": 1}])
    assert [(series.name, series.points) for series in chart.series] == [
        ("rise", ((4, 1.0), (5, 3.0), (6, 2.0)))
    ]
    assert (chart.over, chart.band, chart.mark) == ("intents", (4, 7), 5)
    assert "5 estimated, 4 to 7 possible. Not counted: 1 of utterances" in chart.note
    assert curves([{key: COUNT[key] for key in COUNT if key != "rise"}]) == ()


def test_runs_of_earlier_versions_keep_the_chart_of_the_rise() -> None:
    (chart,) = curves([{**COUNT, "recovery": [0.5, 0.9, 0.8]}])
    assert chart == curves([COUNT])[0]


def test_a_number_that_was_asked_for_is_not_called_an_estimate() -> None:
    (chart,) = curves([{**COUNT, "k": 7, "start": 7}])
    assert chart.note.endswith("5 estimated, 4 to 7 possible. 7 asked for, and taken.")
    (chart,) = curves([{**COUNT, "start": 30}])
    assert chart.note.endswith("5 estimated, 4 to 7 possible. 30 asked for, and not believed.")


def test_of_an_updated_run_the_number_is_that_of_version_0() -> None:
    (chart,) = curves([COUNT], updated=True)
    assert chart.note.endswith("part; for version 0: 5 estimated, 4 to 7 possible.")
