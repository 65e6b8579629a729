from itertools import combinations

import pytest

from ronid.name import name_intents
from ronid.name.function_words import LANGUAGES, choose_languages
from ronid.name.words import ENGLISH, spans
from tests.helpers.finished_run import make_discovery

BANK = {
    "german": {
        "karte_verloren": ["Ich habe meine Karte verloren", "Wie melde ich: Karte verloren?"],
        "passwort_ändern": ["Wie kann ich mein Passwort ändern?", "Ich möchte das Passwort ändern"],
    },
    "french": {
        "annuler_commande": ["Je voudrais annuler ma commande", "Comment annuler une commande ?"],
        "mot_de_passe": ["J'ai oublié mon mot de passe", "Quel est mon mot de passe ?"],
    },
    "spanish": {
        "cancelar_pedido": ["Quiero cancelar mi pedido", "¿Cómo puedo cancelar el pedido?"],
        "tarjeta_de_crédito": ["¿Dónde está mi tarjeta de crédito?", "Mi tarjeta de crédito no va"],
    },
    "italian": {
        "bloccare_carta": ["Vorrei bloccare la mia carta", "Come posso bloccare la carta?"],
        "cambiare_indirizzo": ["Devo cambiare il mio indirizzo", "Posso cambiare indirizzo?"],
    },
    "portuguese": {
        "cancelar_pedido": ["Quero cancelar o meu pedido", "Como posso cancelar o pedido?"],
        "cartão_de_crédito": ["Onde está o meu cartão de crédito?", "É um cartão de crédito"],
    },
    "dutch": {
        "bestelling_annuleren": [
            "Ik wil mijn bestelling annuleren",
            "Kan ik een bestelling annuleren?",
        ],
        "wachtwoord_wijzigen": [
            "Hoe kan ik mijn wachtwoord wijzigen?",
            "Ik wil het wachtwoord wijzigen",
        ],
    },
    "swedish": {
        "avbryta_beställning": [
            "Jag vill avbryta min beställning",
            "Hur kan jag avbryta en beställning?",
        ],
        "byta_lösenord": ["Hur kan jag byta mitt lösenord?", "Jag behöver byta lösenord"],
    },
    "danish and norwegian": {
        "ændre_adgangskode": [
            "Hvordan kan jeg ændre min adgangskode?",
            "Jeg vil ændre adgangskode",
        ],
        "spærre_kort": ["Jeg skal spærre mit kort", "Hvordan kan jeg spærre et kort?"],
    },
    "polish": {
        "anulować_zamówienie": ["Jak mogę anulować moje zamówienie?", "Chcę anulować zamówienie"],
        "zmienić_hasło": ["Gdzie mogę zmienić hasło?", "Chcę zmienić moje hasło, proszę"],
    },
    "russian": {
        "отменить_заказ": ["Как я могу отменить мой заказ?", "Я хочу отменить заказ"],
        "сменить_пароль": ["Где мне сменить пароль?", "Я хочу сменить мой пароль"],
    },
    "turkish": {
        "siparişi_iptal": ["Siparişi iptal etmek istiyorum", "Siparişi nasıl iptal ederim?"],
        "şifre_değiştirme": ["Şifre değiştirme nasıl olur?", "Bana şifre değiştirme lazım"],
    },
    "arabic": {
        "إلغاء_الاشتراك": ["أريد إلغاء الاشتراك من فضلك", "كيف يمكنني إلغاء الاشتراك؟"],
        "تغيير_العنوان": ["أين يمكن تغيير العنوان؟", "اريد تغيير العنوان"],
    },
    "hindi": {
        "कार्ड_बंद": ["मैं अपना कार्ड बंद करना चाहता हूँ", "कार्ड कैसे बंद करें?"],
        "पासवर्ड_बदलना": ["मुझे पासवर्ड बदलना है", "पासवर्ड बदलना कैसे है?"],
    },
}
ENGLISH_TEXTS = ["the dice die fast", "die was the hat", "no, do not cancel me", "a war on bad art"]


def name(*groups: list[str]) -> list[str]:
    return [intent.name for intent in name_intents(*make_discovery(groups))]


@pytest.mark.parametrize("language", BANK)
def test_function_words_of_a_language_are_in_no_name(language: str) -> None:
    groups = [texts * 2 for texts in BANK[language].values()]
    assert choose_languages(groups) == [LANGUAGES[language]] * len(groups)
    assert name(*groups) == list(BANK[language])


def test_words_of_other_languages_leave_english_alone() -> None:
    assert choose_languages([ENGLISH_TEXTS]) == [ENGLISH]
    assert name(["roll the die", "I roll a die", "the die"], ["wear a hat", "my hat"]) == [
        "roll_die",
        "wear_hat",
    ]
    assert spans("die was", LANGUAGES["german"]) == []


def test_every_intent_has_its_own_language_and_one_that_shows_none_that_of_all() -> None:
    german, french = (list(BANK[key].values()) for key in ("german", "french"))
    found = choose_languages([german[0], french[0], german[1], ["Karte"], []])
    wanted = ["german", "french", "german", "german", "german"]
    assert found == [LANGUAGES[each] for each in wanted]


def test_texts_without_function_words_have_no_language() -> None:
    assert choose_languages([["visa", "mastercard"], ["我的信用卡丢了"], []]) == [None] * 3


def test_what_all_intents_of_an_unknown_language_share_names_none() -> None:
    # "kérem" is polite; half of all say it, and its two words stand in a phrase of their own.
    about = ["kártya", "jelszó", "rendelés", "csomag", "számla"]
    groups = [[word, f"{word}, kérem szépen", f"{word}, kérem szépen"] for word in about]
    assert name(*groups) == about


def test_no_word_has_two_roles_in_a_language() -> None:
    for language in LANGUAGES.values():
        roles = (language.determiners, language.links, language.stops, language.negations)
        assert all(language.is_function_word(word) for role in roles for word in role)
        for one, other in combinations(roles, 2):
            assert not one & other
