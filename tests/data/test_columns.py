import pytest

from ronid.data.columns import Table, Wanted, choose_columns
from ronid.errors import DataError


def choose(names: str, **wanted: str) -> dict[str, str]:
    table = Table(tuple(names.split(",")), lambda _: iter(()))
    columns = choose_columns(table, Wanted(**wanted), "calls.csv")
    return {role: table.names[position] for role, position in columns.positions.items()}


@pytest.mark.parametrize(
    ("names", "text", "label"),
    [
        ("id,query,text,intent", "text", "intent"),
        ("Label,Utterance", "Utterance", "Label"),
        ("userMessage,Intent Name", "userMessage", "Intent Name"),
        ("body,category,class", "body", "category"),
        ("query,truth", "query", None),
        ("anything", "anything", None),
    ],
)
def test_usual_names_are_guessed(names: str, text: str, label: str | None) -> None:
    expected = {"text": text} | ({"label": label} if label else {})
    assert choose(names) == expected


def test_two_columns_with_a_usual_word_are_no_guess() -> None:
    with pytest.raises(DataError, match="no column looks like text"):
        choose("user_message,agent_message,intent")


def test_named_columns_are_not_guessed_for_another_role() -> None:
    assert choose("text,label,x", truth="label") == {"text": "text", "truth": "label"}
    assert choose("a,text", text="a", id="text") == {"text": "a", "id": "text"}


@pytest.mark.parametrize(
    ("one", "other"),
    [("text", "label"), ("text", "truth"), ("text", "id"), ("label", "truth"), ("label", "id")],
)
def test_a_column_has_one_role(one: str, other: str) -> None:
    with pytest.raises(DataError) as refused:
        choose("text,intent,number", **{one: "intent", other: "intent"})
    assert str(refused.value) == (
        f"column 'intent' is asked for by both --{one} and --{other}; give each a column of its own"
    )


def test_guess_says_how_to_say_otherwise() -> None:
    table = Table(("text", "intent"), lambda _: iter(()))
    messages = choose_columns(table, Wanted(), "calls.csv").messages
    assert [message.split(";")[0] for message in messages] == [
        "column 'text' is read as the text",
        "column 'intent' is read as the label",
    ]
    assert "--text NAME" in messages[0]
    assert "--label NAME" in messages[1]


def test_many_columns_are_listed_in_part() -> None:
    with pytest.raises(DataError, match="'x19' and 10 more"):
        choose(",".join(f"x{i}" for i in range(30)))
