"""Utterances and names that are hard to write down, and catalogues of them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from ronid.export.catalogue import Catalogue, build_catalogue

TEXTS = (
    "plain text", "[word](entity)", 'a [b]{"entity": "c"} d', 'x [y][{"entity": "z"}]', "- dash",
    "-dash", "# hash", "'single' \"double\"", "back\\slash \\n", "line\nbreak", "tab\tinside",
    "{slot} braces", "emoji 🎉 👩‍👩‍👧", "אני רוצה לבטל", "أريد \u202eإلغاء\u202c", "我的信用卡丢了",
    "curly ’quotes’ … —", "null", "yes", "key: value", "| pipe", "> fold", "\u2028separated",
    "next\x85line", "vertical\x0btab", "control\x01", "nul\0", "@at `tick`", "%percent",
    "!bang &amp; *star", "no\xa0break", "carriage\rreturn", "\ufeffmark", "]( odd ]{ ][", "${HOME}",
    "=1+1", "a,b;c", " around ", "\ufffd",
)  # fmt: skip
NAMES = (
    "plain", "yes", "取消订单", "a b", "a_b", "A_B", "faq/topic", "x" * 150, "restart", "None",
    "sys-thing", "..", "../up", "FallbackIntent", "Default Welcome Intent", "ünïcode näme",
    "रद्द करें", "__", "out_of_scope", "a\nb", "", "con: x", '"q"',
)  # fmt: skip

said = st.one_of(st.sampled_from(TEXTS), st.text(min_size=1)).filter(str.strip)
called = st.one_of(st.sampled_from(NAMES), st.text(max_size=140))


def catalogue(
    texts: Sequence[Sequence[str]], names: Sequence[str] | None = None, **columns: Any
) -> Catalogue:
    """Return accepted intents with these utterances each."""
    names = names or [f"intent_{i}" for i in range(len(texts))]
    intents = [
        {"id": f"i{i}", "name": name, "status": "accepted", "description": "what it is"}
        for i, name in enumerate(names)
    ]
    rows = {
        "text": [text for group in texts for text in group],
        "intent": [f"i{i}" for i, group in enumerate(texts) for _ in group],
    }
    return build_catalogue(intents, rows | columns)
