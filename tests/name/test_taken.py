from ronid.name.taken import Taken, name_stems


def test_forms_and_order_of_words_do_not_make_a_name_another_one() -> None:
    assert name_stems("cancelled_orders") == name_stems("Order Cancel")
    assert name_stems("order") != name_stems("cancel_order")


def test_a_name_in_use_gets_a_number_and_the_next_one_another() -> None:
    taken = Taken(["Gift Card"])
    assert taken.has("gift_cards")
    assert not taken.has("gift")
    found = [taken.take(name) for name in ("gift_card", "cards_gift", "gift_card", "gift")]
    assert found == ["gift_card_2", "cards_gift_2", "gift_card_3", "gift"]
    assert all(taken.has(name) for name in found)
