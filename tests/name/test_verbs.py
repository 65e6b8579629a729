import pytest

from ronid.name import name_intents
from ronid.name.verbs import SHARE, find_verbs
from tests.helpers.finished_run import make_discovery

RESET = [
    "how do I reset my factory settings",
    "reset to factory settings",
    "I want to reset the factory settings",
    "can you reset factory settings",
    "factory settings",
]
ALARM = ["set an alarm for six", "please set my alarm", "I need to set an alarm", "alarm at nine"]
SCORE = ["what is my credit score", "credit score", "my credit score please", "credit score now"]


def name(*groups: list[str], known: tuple[str, ...] = ()) -> list[str]:
    return [intent.name for intent in name_intents(*make_discovery(groups, known))]


def test_requests_give_names_of_verb_and_object() -> None:
    assert name(RESET, ALARM, SCORE) == ["reset_factory_settings", "set_alarm", "credit_score"]


@pytest.mark.parametrize(
    "request_",
    [
        "how do i cancel my order",
        "how to cancel my order",
        "can you please cancel my order",
        "could we cancel my order",
        "i'd like to cancel my order",
        "help me cancel my order",
        "Please cancel my order",
        "i cancel my order",
    ],
)
def test_openings_of_requests_show_the_verb(request_: str) -> None:
    verbs = find_verbs([[request_] * 3])[0]
    assert verbs.lead({"order"}) == "cancel"


def test_a_bare_noun_takes_the_verb_that_the_intent_asks_for_though_few_say_both() -> None:
    both = ["please delete my account", "can you delete this account"]
    asked = [*both, *["please delete everything", "can you delete my data"] * 3]
    account = asked + [f"account {word}" for word in ("mail", "profile", "name", "login") * 13]
    assert len(both) < SHARE * len(account) <= len(asked)
    other = [["gift card", "buy a gift card"] * 3, ["pause my plan", "plan on hold"] * 3]
    assert name(account, *other)[0] == "delete_account"


def test_what_is_told_leads_no_name_where_few_say_it() -> None:
    told = ["i bought a refund"] * 2 + ["i bought shoes"] * 2 + ["refund"] * 46
    assert find_verbs([told])[0].lead({"refund"}) is None


def test_a_noun_at_the_start_is_no_verb_unless_requests_show_it_is() -> None:
    assert find_verbs([["card order"] * 5])[0].lead({"order"}) is None
    shown = find_verbs([["cancel order"] * 5 + ["can i cancel my order"] * 3])[0]
    assert shown.lead({"order"}) == "cancel"


def test_a_verb_that_all_intents_share_names_none() -> None:
    groups = [[f"can you show my {word}"] * 4 for word in "abcdefghijklmnop"]
    assert find_verbs(groups)[0].lead({"a"}) is None


def test_a_verb_in_the_phrase_is_not_said_twice() -> None:
    verbs = find_verbs([["can you pause my membership", "pause it", "i want to pause the plan"]])[0]
    assert verbs.lead({"paus", "membership"}) is None


def test_a_name_that_says_less_than_a_known_one_is_told_apart() -> None:
    fee = ["top up fee", "fee for a top up", "top up fee please", "is there a top up fee"]
    limit = ["top up limit", "top up", "limit of a top up", "top up so much", "top up", "top up"]
    found = name(fee, limit, known=("top_up_fee",))
    assert found[1] not in {"top_up", "top_up_fee"}
    assert "limit" in found[1]
