"""RoNID as scikit-learn users meet it."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from ronid import IntentDiscovery, RoNID
from ronid.errors import ConfigError, DataError, RonidWarning, UsageError
from ronid.presets import WITHOUT_GPU
from tests.helpers.toy_corpus import TinyEncoder, Toy

ALLOWED = {".json", ".toml", ".safetensors", ".parquet"}
QUICK = {
    "encoder": {"adapter_width": 32},
    "contrast": {"epochs": 3, "batch": 64},
    "m_step": {"epochs": 3, "batch": 64},
}


@pytest.fixture(scope="module")
def make(tiny: TinyEncoder) -> Any:
    """Return a function that makes a small, quick RoNID."""

    def build(n_intents: int = 8, **changes: Any) -> RoNID:
        usual = {"encoder": tiny("bert"), "settings": QUICK, "device": "cpu", "preset": "fast"}
        return RoNID(n_intents, **(usual | changes))

    return build


@pytest.fixture(scope="module")
def fitted(make: Any, utterances: Toy) -> RoNID:
    return make().fit(utterances.texts, utterances.labels())


def test_predictions_are_names_and_probabilities(fitted: RoNID, utterances: Toy) -> None:
    texts = utterances.texts[:50]
    names, probabilities = fitted.predict(texts), fitted.predict_proba(texts)
    assert names.shape == (50,)
    assert probabilities.shape == (50, 8)
    assert fitted.transform(texts).shape == (50, 32)
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    assert np.array_equal(fitted.classes_[probabilities.argmax(1)], names)


def test_none_of_these_is_answered_where_asked_for(fitted: RoNID) -> None:
    texts = ["refund my money back please", "zzz qqq xxx", "12345 67890"]
    names = fitted.predict(texts)
    assert set(names) <= set(fitted.classes_)
    answered = fitted.predict(texts, none="none_of_these")
    assert answered.dtype == object
    assert answered.tolist()[1:] == ["none_of_these"] * 2
    assert fitted.predict(texts, none="none_of_these", threshold=0).tolist() == names.tolist()
    assert fitted.predict(texts, threshold=1).tolist() == names.tolist()
    with pytest.raises(UsageError, match="is the name of an intent"):
        fitted.predict(texts, none=fitted.classes_[0])


def test_labels_index_the_intents(fitted: RoNID, utterances: Toy) -> None:
    assert fitted.labels_.shape == (300,)
    assert [intent.index for intent in fitted.intents_] == list(range(8))
    assert [intent.name for intent in fitted.intents_] == fitted.classes_.tolist()
    assert len(set(fitted.classes_)) == 8
    sizes = np.bincount(fitted.labels_, minlength=8)
    assert [intent.size for intent in fitted.intents_] == sizes.tolist()


def test_known_intents_keep_their_names_and_rows(fitted: RoNID, utterances: Toy) -> None:
    assert fitted.classes_[:4].tolist() == utterances.names[:4]
    assert [intent.known for intent in fitted.intents_] == [True] * 4 + [False] * 4
    for label, name in zip(fitted.labels_, utterances.labels(), strict=True):
        assert name is None or fitted.classes_[label] == name


def test_labels_held_out_for_early_stopping_are_kept_too(make: Any, utterances: Toy) -> None:
    settings = {"pretrain": {"epochs": 1}, "m_step": {"epochs": 1}, "start": {"restarts": 1}}
    given = [name if name in utterances.names[:4] else None for name in utterances.truth]
    # Wrong on purpose, so that nothing but keeping them can explain the labels.
    given[:40] = [utterances.names[i % 4] for i in range(40)]
    model = make(preset="paper", settings=settings).fit(utterances.texts, given)
    for label, name in zip(model.labels_, given, strict=True):
        assert name is None or model.classes_[label] == name
    probabilities = model.predict_proba(utterances.texts)
    np.testing.assert_allclose(
        model.confidence_, probabilities[np.arange(300), model.labels_], atol=1e-4
    )


def test_score_is_a_share_of_the_labelled_rows(fitted: RoNID, utterances: Toy) -> None:
    score = fitted.score(utterances.texts, utterances.truth)
    assert 0.6 < score <= 1.0
    predicted = fitted.predict(utterances.texts)
    assert fitted.score(utterances.texts, predicted) == 1.0
    known = [name if name == "battery" else None for name in utterances.truth]
    rows = [i for i, name in enumerate(known) if name]
    counts = pd.Series(predicted[rows]).value_counts()
    assert fitted.score(utterances.texts, known) == pytest.approx(counts.max() / len(rows))


def test_score_needs_a_label(fitted: RoNID, utterances: Toy) -> None:
    with pytest.raises(UsageError, match="no row of y has a label"):
        fitted.score(utterances.texts, [None] * 300)
    with pytest.raises(DataError, match="299 labels for 300 texts"):
        fitted.score(utterances.texts, utterances.truth[1:])


def test_same_seed_gives_the_same_labels(make: Any, few_utterances: Toy) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    one, two = (make(6, random_state=5).fit(X, y) for _ in range(2))
    assert np.array_equal(one.labels_, two.labels_)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    other = make(6, random_state=6).fit(X, y)
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))
    seeds = [make(6, random_state=np.random.RandomState(3)).fit(X, y) for _ in range(2)]
    assert np.array_equal(seeds[0].labels_, seeds[1].labels_)


def test_save_and_load_predict_identically(fitted: RoNID, utterances: Toy, tmp_path: Path) -> None:
    folder = fitted.save(tmp_path / "model")
    loaded = RoNID.load(folder, device="cpu")
    assert np.array_equal(
        loaded.predict_proba(utterances.texts), fitted.predict_proba(utterances.texts)
    )
    assert np.array_equal(loaded.labels_, fitted.labels_)
    assert np.array_equal(loaded.confidence_, fitted.confidence_)
    assert loaded.intents_ == fitted.intents_
    assert np.array_equal(loaded.classes_, fitted.classes_)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == ALLOWED


def test_loaded_model_can_be_fitted_again_the_same_way(
    make: Any, few_utterances: Toy, tmp_path: Path
) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    model = make(6, random_state=3).fit(X, y)
    loaded = RoNID.load(model.save(tmp_path / "model"), device="cpu")
    assert np.array_equal(loaded.fit(X, y).predict_proba(X), model.predict_proba(X))


def test_clone_and_parameters(make: Any) -> None:
    model = make(5, random_state=2)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert set(model.get_params()) == {
        "n_intents",
        "encoder",
        "preset",
        "settings",
        "random_state",
        "device",
        "exact",
    }
    model.set_params(n_intents=7, preset="paper")
    assert (model.n_intents, model.preset, copy.n_intents) == (7, "paper", 5)
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)


def test_constructor_only_stores() -> None:
    model = RoNID(n_intents=-3, encoder="/no/such/folder", preset="no such preset")
    assert "RoNID" in repr(model)
    with pytest.raises(UsageError, match="no preset"):
        model.fit(["a", "b"])


def test_automatic_preset_without_a_gpu_is_fast_and_says_so(make: Any, few_utterances: Toy) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    with pytest.warns(RonidWarning) as told:
        found = make(6, preset="auto").fit(X, y)
    assert [str(warning.message) for warning in told] == [WITHOUT_GPU]
    assert told[0].filename == __file__  # it points at the line of the user
    assert found.model_.config.preset == "fast"
    assert np.array_equal(found.labels_, make(6, preset="fast").fit(X, y).labels_)


def test_automatic_preset_with_given_embeddings_is_fast_without_a_word(
    make: Any, few_utterances: Toy
) -> None:
    X = np.random.default_rng(0).normal(size=(60, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RonidWarning)
        found = make(6, preset="auto").fit(X, few_utterances.labels())
    assert found.model_.config.preset == "fast"


def test_automatic_preset_is_the_default_of_the_constructor() -> None:
    assert RoNID().preset == "auto"


def test_named_preset_and_a_loaded_model_need_no_word(
    make: Any, few_utterances: Toy, tmp_path: Path
) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    with pytest.warns(RonidWarning):
        model = make(6, preset="auto").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RonidWarning)
        loaded = RoNID.load(model.save(tmp_path / "model"), device="cpu")
        assert loaded.preset == "fast"
        again = loaded.fit(X, y)
    assert np.array_equal(again.labels_, model.labels_)


def test_works_in_a_pipeline(make: Any, few_utterances: Toy) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("intents", make(6))])
    upper = [text.upper() for text in few_utterances.texts]
    pipeline.fit(upper, few_utterances.labels())
    plain = make(6).fit(few_utterances.texts, few_utterances.labels())
    assert np.array_equal(pipeline.predict(upper), plain.predict(few_utterances.texts))
    assert pipeline.score(upper, few_utterances.truth) == plain.score(
        few_utterances.texts, few_utterances.truth
    )


@pytest.mark.parametrize(
    "grid",
    [
        {"n_intents": [6, 7]},
        {"settings": [{"m_step": {"epochs": 1, "alpha": a}} for a in (0.2, 0.8)]},
    ],
)
def test_works_in_a_grid_search(make: Any, few_utterances: Toy, grid: dict[str, Any]) -> None:
    X, y = np.array(few_utterances.texts, object), np.array(few_utterances.truth, object)
    search = GridSearchCV(make(6), grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_ in [{next(iter(grid)): v} for v in next(iter(grid.values()))]
    assert 0 <= search.best_score_ <= 1
    assert search.predict(X[:3]).shape == (3,)


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "pandas": pd.Series,
    "pandas with another index": lambda x: pd.Series(x, index=range(100, 100 + len(x))),
    "numpy object": lambda x: np.array(x, dtype=object),
    "polars": lambda x: pl.Series(x, strict=False),
}


@pytest.mark.parametrize("container", list(CONTAINERS))
def test_texts_and_labels_in_any_container(make: Any, few_utterances: Toy, container: str) -> None:
    wrap = CONTAINERS[container]
    X, y = few_utterances.texts, few_utterances.labels()
    expected = make(6).fit(X, y)
    found = make(6).fit(wrap(X), wrap(y))
    assert np.array_equal(found.labels_, expected.labels_)
    assert np.array_equal(found.predict(wrap(X)), expected.predict(X))
    assert found.score(wrap(X), wrap(few_utterances.truth)) == expected.score(
        X, few_utterances.truth
    )


def test_texts_as_the_one_column_of_a_frame(make: Any, few_utterances: Toy) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    expected = make(6).fit(X, y).labels_
    for frame in (pd.DataFrame({"text": X}), pl.DataFrame({"text": X}), np.array(X)[:, None]):
        assert np.array_equal(make(6).fit(frame, y).labels_, expected)


def test_labels_as_the_one_column_of_a_frame(
    make: Any, fitted: RoNID, utterances: Toy, few_utterances: Toy
) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    expected = make(6).fit(X, y).labels_
    for frame in (pd.DataFrame({"a": y}), pl.DataFrame({"a": y}), np.array(y, object)[:, None]):
        assert np.array_equal(make(6).fit(X, frame).labels_, expected)
    truth = pd.DataFrame({"a": utterances.truth})
    score = fitted.score(utterances.texts, utterances.truth)
    assert fitted.score(utterances.texts, truth) == score


@pytest.mark.parametrize("missing", [None, "", "  ", -1, float("nan"), np.nan, pd.NA])
def test_every_way_to_say_unlabelled(make: Any, few_utterances: Toy, missing: Any) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    expected = make(6).fit(X, y)
    found = make(6).fit(X, [missing if name is None else name for name in y])
    assert np.array_equal(found.labels_, expected.labels_)
    assert np.array_equal(found.classes_, expected.classes_)


def test_numbers_as_labels_become_names(make: Any, few_utterances: Toy) -> None:
    y = np.where(few_utterances.classes < 3, few_utterances.classes, -1)
    model = make(6).fit(few_utterances.texts, y)
    assert model.classes_[:3].tolist() == ["0", "1", "2"]
    assert not any(intent.known for intent in model.intents_[3:])


def test_without_labels_everything_is_discovered(make: Any, few_utterances: Toy) -> None:
    model = make(6).fit(few_utterances.texts)
    assert not any(intent.known for intent in model.intents_)
    assert np.array_equal(make(6).fit_predict(few_utterances.texts), model.labels_)


def test_fit_predict_uses_the_labels(make: Any, few_utterances: Toy) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    for model in (make(6), IntentDiscovery(**make(6).get_params())):
        found = model.fit_predict(X, y)
        assert np.array_equal(found, model.labels_)
        assert sum(intent.known for intent in model.intents_) == 4
        for label, name in zip(found, y, strict=True):
            assert name is None or model.classes_[label] == name


def test_matrix_of_embeddings(make: Any, utterances: Toy, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(8, 12))[utterances.classes] + rng.normal(size=(300, 12)) / 3) * 5
    y = utterances.labels()
    model = make(encoder="unused").fit(X, y)
    assert model.score(X, utterances.truth) > 0.8
    assert model.transform(X[:4]).shape == (4, 12)
    for frame in (pd.DataFrame(X), pl.DataFrame(X)):
        assert np.array_equal(model.predict(frame), model.predict(X))
    loaded = RoNID.load(model.save(tmp_path / "model"), device="cpu")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(UsageError, match=r"expected \(rows, 12\) as in fit"):
        model.predict(X[:, :5])
    with pytest.raises(UsageError, match="give embeddings, not texts"):
        model.predict(["refund please"])


def test_matrix_where_texts_were_fitted_is_refused(fitted: RoNID) -> None:
    with pytest.raises(UsageError, match="give texts, not embeddings"):
        fitted.predict(np.zeros((3, 32)))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("one string", "X is one string; give a list of utterances"),
        (["fine", None], r"X\[1\] is None, of type NoneType, not a text"),
        (["fine", float("nan")], r"X\[1\] is nan, of type float, not a text"),
        (
            [[0.1, 0.2], [0.3, 0.4]],
            r"X\[0\] is \[0.1, 0.2\], of type list, not a text; .* an \(n, d\) array",
        ),
        ([b"bytes"], r"X\[0\] is b.bytes., of type bytes, not a text"),
        (np.zeros((2, 2, 2)), r"X has shape \(2, 2, 2\)"),
        (np.array([["a", "b"]], object), r"X has shape \(1, 2\)"),
    ],
)
def test_what_is_no_text_is_refused(fitted: RoNID, X: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fitted.predict(X)
    with pytest.raises(UsageError, match=message):
        clone(fitted).fit(X)


def test_unusable_problems_are_refused(make: Any, few_utterances: Toy) -> None:
    X, y = few_utterances.texts, few_utterances.labels()
    with pytest.raises(UsageError, match="4 are labelled already"):
        make(3).fit(X, y)
    with pytest.raises(UsageError, match="there are only 60 utterances"):
        make(61).fit(X, y)
    with pytest.raises(DataError, match="59 labels for 60 texts"):
        make(6).fit(X, y[1:])
    with pytest.raises(DataError, match="1 label for 60 texts"):
        make(6).fit(X, ["refund"])
    with pytest.raises(DataError, match=r"labels have shape \(60, 2\); give one column"):
        make(6).fit(X, pd.DataFrame({"a": y, "b": y}))
    with pytest.raises(UsageError, match="unknown setting 'm_step.alfa'"):
        make(6, settings={"m_step": {"alfa": 1.0}}).fit(X, y)
    with pytest.raises(UsageError, match="the seed is -1"):
        make(6, random_state=-1).fit(X, y)


@pytest.mark.parametrize("verb", ["predict", "predict_proba", "transform"])
def test_unfitted_model_says_so(verb: str) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        getattr(RoNID(), verb)(["a"])


def test_unfitted_model_has_no_score_and_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        RoNID().score(["a"], ["b"])
    with pytest.raises(NotFittedError):
        RoNID().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


class TestIntentDiscovery:
    """The same front door for every method."""

    def test_any_method_fits_predicts_saves_and_loads(
        self, tiny: TinyEncoder, few_utterances: Toy, tmp_path: Path
    ) -> None:
        settings = {"restarts": 3, "encoder": {"max_length_tokens": 20}}
        model = IntentDiscovery(
            6, method="kmeans", encoder=tiny("bert"), device="cpu", settings=settings
        )
        model.fit(few_utterances.texts, few_utterances.labels())
        model.save(tmp_path / "model")
        loaded = IntentDiscovery.load(tmp_path / "model", device="cpu")
        assert loaded.get_params() == model.get_params() | {"preset": "published"}
        texts = few_utterances.texts[:5]
        assert loaded.predict(texts).tolist() == model.predict(texts).tolist()
        assert loaded.predict_proba(texts).sum(axis=1) == pytest.approx(1.0)

    def test_ronid_is_the_method_unless_told(self, few_utterances: Toy) -> None:
        assert IntentDiscovery().method == "ronid"
        assert RoNID().method == "ronid"
        assert "method" not in RoNID().get_params()
        assert clone(IntentDiscovery(3, method="kmeans")).method == "kmeans"

    def test_unknown_method_is_refused(self, few_utterances: Toy) -> None:
        with pytest.raises(ConfigError, match="no method 'kmeens'; did you mean 'kmeans'"):
            IntentDiscovery(3, method="kmeens").fit(few_utterances.texts)

    def test_settings_of_another_method_are_refused(self, few_utterances: Toy) -> None:
        model = IntentDiscovery(3, method="kmeans", settings={"m_step": {"alpha": 0.5}})
        with pytest.raises(ConfigError, match="unknown setting 'm_step'"):
            model.fit(few_utterances.texts)

    def test_what_is_no_name_or_no_section_is_refused_in_one_line(
        self, few_utterances: Toy
    ) -> None:
        wrong: Any = None
        with pytest.raises(ConfigError, match="method is None; give the name of one: kmeans"):
            IntentDiscovery(3, method=wrong).fit(few_utterances.texts)
        wrong = "alpha=1"
        with pytest.raises(UsageError, match="settings are 'alpha=1'; give them by section"):
            IntentDiscovery(3, method="kmeans", settings=wrong).fit(few_utterances.texts)

    @pytest.mark.parametrize("name", ["method", "preset"])
    def test_method_and_preset_are_no_settings(self, few_utterances: Toy, name: str) -> None:
        model = IntentDiscovery(3, method="kmeans", settings={name: "gcd"})
        with pytest.raises(UsageError, match=f"settings name a {name}; give it as {name}="):
            model.fit(few_utterances.texts)

    def test_ronid_reads_counts_of_words(self, few_utterances: Toy, tmp_path: Path) -> None:
        model = RoNID(6, encoder="tfidf", preset="fast", settings=QUICK, device="cpu")
        model.fit(few_utterances.texts, few_utterances.labels()).save(tmp_path / "model")
        texts = few_utterances.texts[:5]
        loaded = RoNID.load(tmp_path / "model", device="cpu")
        assert loaded.predict(texts).tolist() == model.predict(texts).tolist()

    def test_agglomerative_never_clusters_fewer_rows_than_intents(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        settings = {"most_rows": 2}
        model = IntentDiscovery(
            6, method="agglomerative", encoder=tiny("bert"), settings=settings, device="cpu"
        )
        with pytest.warns(RonidWarning, match="a random 6 of them are clustered"):
            model.fit(few_utterances.texts)
        assert len(model.classes_) == 6
