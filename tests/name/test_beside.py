import numpy as np

from ronid.name.beside import name_beside
from ronid.name.intents import name_intents
from ronid.types import Intent
from tests.helpers.finished_run import SHOP, make_discovery


def test_known_intents_may_stand_anywhere_and_kept_names_stay() -> None:
    groups = list(SHOP.values())
    texts, discovery = make_discovery(groups)
    examples = [tuple(group[:2]) for group in groups]
    kept = {1: Intent(1, "Lost!", False, 0, 0.0, 0.0, 0.0, named_by="user", description="mine")}
    found = name_beside(texts, discovery, {3: "pause_it"}, kept, examples)
    assert [intent.index for intent in found] == [0, 1, 2, 3]
    assert [intent.known for intent in found] == [False, False, False, True]
    assert (found[3].name, found[1].name, found[1].description) == ("pause_it", "Lost!", "mine")
    assert [intent.size for intent in found] == [len(group) for group in groups]
    assert [intent.exemplars for intent in found] == examples
    assert {near.name for intent in found for near in intent.nearest} == {"pause_it"}
    assert len({intent.name.lower() for intent in found}) == 4


def test_descriptions_of_people_and_models_stay_and_others_are_made_anew() -> None:
    groups = list(SHOP.values())
    texts, discovery = make_discovery(groups)
    makers = {0: "user", 1: "model:small", 2: "keyphrases"}
    kept = {
        k: Intent(k, f"name_{k}", False, 0, 0.0, 0.0, 0.0, named_by=by, description="People want.")
        for k, by in makers.items()
    }
    found = name_beside(texts, discovery, {}, kept, [tuple(group[:2]) for group in groups])
    assert [intent.description for intent in found[:2]] == ["People want."] * 2
    assert found[1].named_by == "model:small"
    assert found[2].description not in ("", "People want.")


def test_with_known_intents_first_it_is_name_intents() -> None:
    groups = list(SHOP.values())
    texts, discovery = make_discovery(groups, ("track_order",))
    plain = name_intents(texts, discovery)
    again = name_beside(
        texts, discovery, {0: "track_order"}, {}, [intent.exemplars for intent in plain]
    )
    assert again == plain


def test_a_new_name_gives_way_to_one_that_is_kept() -> None:
    groups = list(SHOP.values())
    texts, discovery = make_discovery(groups)
    names = [intent.name for intent in name_intents(texts, discovery)]
    kept = {0: Intent(0, names[2], False, 0, 0.0, 0.0, 0.0)}
    found = name_beside(texts, discovery, {}, kept, [()] * 4)
    assert found[0].name == names[2]
    assert len(np.unique([intent.name for intent in found])) == 4


def test_a_new_name_is_told_apart_from_a_kept_one_of_the_same_words_in_other_forms() -> None:
    groups = [
        ["kids on bikes", "bikes with a seat", "bikes for a child", "bikes"],
        ["my bike is stuck", "stuck bike", *["the bike"] * 6],
        list(SHOP.values())[2],
    ]
    texts, discovery = make_discovery(groups)
    kept = {0: Intent(0, "Bikes", False, 0, 0.0, 0.0, 0.0, named_by="keyphrases")}
    found = name_beside(texts, discovery, {}, kept, [()] * 3)
    assert found[0].name == "Bikes"
    assert found[1].name in {"bike_stuck", "stuck_bike"}
