"""Text that an encoder has no words for is told; text that it reads well is not."""

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import ByteLevelBPETokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from ronid.encode.language import LOOKED_AT, badly_read, warn_of_language
from ronid.encode.weights import locate
from ronid.errors import RonidWarning

READ_WELL = {
    "english": [
        "where is my card", "i want to freeze my account please", "it's not working, i don't know",
        "can you tell me what the weather will be like in chicago tomorrow", "how do i reset a pin",
    ],
    "typos": [
        "wher is my cardd", "plz hlp me w/ my acct asap", "cn u tel me wat time it is",
        "omg my app keps crshing lol",
    ],
    "emoji": [
        "where is my card 😡😡😡", "thanks!!! 🙏🙏❤️", "😂😂 lol my app crashed 🔥🔥", "👍👍👍",
        "🚲🚲 bike broken 😢",
    ],
    "codes": ["error E-4402 again", "order 8837-AZX-19 is missing", "where is 1Z999AA10123456784"],
    "german": [
        "Wo ist meine Karte geblieben?", "Ich möchte mein Konto sperren lassen",
        "Warum funktioniert die Überweisung nicht?", "Fahrradverleihstation in der Nähe gesucht",
    ],
    "french": ["Où est ma carte bancaire ?", "Je voudrais bloquer mon compte s'il vous plaît"],
    "polish": ["Gdzie jest moja karta?", "Chciałbym zablokować swoje konto"],
    "turkish": ["Kartım nerede kaldı?", "Hesabımı dondurmak istiyorum lütfen"],
    "a name in another script": [*30 * ["please send it to my friend"], "my name is 张伟"],
}  # fmt: skip
BADLY = {
    "chinese": ["我的卡在哪里", "我想冻结我的账户", "为什么转账失败了", "请帮我重置密码"],
    "japanese": ["カードはどこですか", "口座を凍結したいです", "なぜ振込が失敗しましたか"],
    "korean": ["내 카드는 어디에 있나요", "계좌를 정지하고 싶어요", "왜 송금이 실패했나요"],
    "thai": ["บัตรของฉันอยู่ที่ไหน", "ฉันต้องการระงับบัญชีของฉัน"],
    "arabic": ["أين بطاقتي؟", "أريد تجميد حسابي من فضلك", "لماذا فشل التحويل؟"],
    "hebrew": ["איפה הכרטיס שלי?", "אני רוצה להקפיא את החשבון שלי"],
    "hindi": ["मेरा कार्ड कहाँ है?", "मैं अपना खाता बंद करना चाहता हूँ"],
    "russian": ["Где моя карта?", "Я хочу заблокировать свой счёт"],
    "greek": ["Πού είναι η κάρτα μου;", "Θέλω να παγώσω τον λογαριασμό μου"],
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(locate("all-MiniLM-L6-v2"))


def warned(texts: list[str], tokenizer: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_language(texts, SimpleNamespace(tokenizer=tokenizer))
    assert all(each.category is RonidWarning for each in found)
    return [str(each.message) for each in found]


@pytest.mark.parametrize("kind", READ_WELL)
def test_what_the_embedded_encoder_can_read_is_not_warned_of(kind: str, tokenizer: Any) -> None:
    assert warned(READ_WELL[kind], tokenizer) == []


@pytest.mark.parametrize("kind", BADLY)
def test_a_language_that_the_embedded_encoder_has_no_words_for_is_told(
    kind: str, tokenizer: Any
) -> None:
    (told,) = warned(BADLY[kind], tokenizer)
    share, rest = told.split("% ", 1)
    assert int(share) > 50
    assert rest.startswith("of the utterances are in a language that the encoder hardly knows: ")
    assert told.endswith("fit with one that knows it: --encoder")


def test_the_share_is_of_the_utterances(tokenizer: Any) -> None:
    mixed = [*READ_WELL["english"] * 3, *BADLY["chinese"][:3], "12345", "👍"]
    assert badly_read(mixed, tokenizer) == pytest.approx(3 / 18)  # without letters: no language
    (told,) = warned(mixed, tokenizer)
    assert told.startswith("17% of the utterances")


def test_a_few_letters_say_nothing(tokenizer: Any) -> None:
    assert warned(["Где?"], tokenizer) == []
    assert warned([*READ_WELL["english"], "qzx xqzv"], tokenizer) == []
    assert warned(["", "12345", "👍"], tokenizer) == []
    assert warned([], tokenizer) == []


SYMBOLS = ["😀😀", "🚀", "💔💔💔!", "🎉🎉", "👍?", "🍕🍕 ...", "🐶", "⚽⚽"]


def test_utterances_of_unknown_symbols_alone_are_told_with_their_number(tokenizer: Any) -> None:
    (told,) = warned(SYMBOLS * 9, tokenizer)
    assert told.startswith("72 of 72 utterances hold nothing that the encoder knows, ")
    assert told.endswith("leave them out, or fit with one that knows them: --encoder")
    (told,) = warned([*READ_WELL["english"] * 40, *SYMBOLS], tokenizer)
    assert told.startswith("8 of 208 utterances hold nothing")


def test_of_many_utterances_the_number_is_told_roughly(tokenizer: Any) -> None:
    texts = [*READ_WELL["english"] * 800, *SYMBOLS * 500]
    (told,) = warned(texts, tokenizer)
    assert told.startswith("about 4,000 of 8,000 utterances hold nothing")


def test_a_few_symbols_among_words_say_nothing(tokenizer: Any) -> None:
    assert warned([*READ_WELL["english"] * 200, *SYMBOLS], tokenizer) == []  # under a fiftieth
    assert warned([*READ_WELL["english"], *SYMBOLS[:4]], tokenizer) == []
    assert warned(["👍 5", "😀 ok", "🚲 2"] * 4, tokenizer) == []
    assert warned(["12345", "???", "5 + 5", "$ 20", "!!", "..."] * 4, tokenizer) == []


def test_letters_that_are_all_unknown_are_told_once(tokenizer: Any) -> None:
    (told,) = warned(["ᚠᚢᚦᚨᚱᚲ", "ᚷᚹᚺᚾᛁ"] * 20, tokenizer)
    assert "in a language that the encoder hardly knows" in told
    language, symbols = warned([*["ᚠᚢᚦᚨᚱᚲ", "ᚷᚹᚺᚾᛁ"] * 20, *SYMBOLS * 5], tokenizer)
    assert "in a language that the encoder hardly knows" in language
    assert symbols.startswith("40 of 80 utterances hold nothing")


def test_a_few_unknown_letters_each_are_told_too(tokenizer: Any) -> None:
    (told,) = warned([*READ_WELL["english"] * 4, *["ᚠ", "ᚢ", "ᚦ"] * 2], tokenizer)
    assert told.startswith("6 of 26 utterances hold nothing")


def test_a_sample_is_looked_at_and_its_utterances_are_cut() -> None:
    asked: list[list[str]] = []

    def tokenizer(texts: list[str], **_: Any) -> dict[str, list[Any]]:
        asked.append(texts)
        return {"input_ids": [[] for _ in texts], "offset_mapping": [[] for _ in texts]}

    tokenizer.is_fast, tokenizer.unk_token_id = True, 0  # type: ignore[attr-defined]
    badly_read([f"{i} {'a' * 10_000}" for i in range(12_345)], tokenizer)
    (texts,) = asked
    assert 0.9 * LOOKED_AT < len(texts) <= LOOKED_AT
    assert int(texts[-1].split()[0]) > 12_000  # from the whole file, not from its head
    assert max(map(len, texts)) < 1_000


def test_bytes_of_letters_are_letters_that_are_read_one_by_one() -> None:
    bytewise = ByteLevelBPETokenizer()
    bytewise.train_from_iterator(READ_WELL["english"], vocab_size=400, min_frequency=1)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise)
    assert badly_read(READ_WELL["english"], tokenizer) == 0
    assert badly_read(BADLY["russian"], tokenizer) == 1


def test_a_tokenizer_that_does_not_say_what_it_covers_is_not_judged() -> None:
    assert warned(BADLY["russian"], SimpleNamespace(is_fast=False)) == []
    warn_of_language(BADLY["russian"], SimpleNamespace())  # given vectors have no tokens at all
