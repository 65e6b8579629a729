"""Function words of a dozen languages, and which of them utterances are in.

Articles, pronouns, prepositions, auxiliaries, question words and polite words are in every
utterance and name no intent. A word counts only in texts of its own language: the German "die" and
"was" leave English alone. Languages without a table are named by what their intents do not share.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from ronid.name.words import ENGLISH, Language, tokens

LEAST_SHARE = 0.2
"""Least share of the function words of a language among the words of texts that are in it."""
LEAST_SEEN = 3
READ = 50
"""Utterances of an intent that are enough to tell its language, roughly."""

# Determiners, which are skipped; links, which stand inside a phrase only; words that end a phrase;
# negations, which are no phrase of their own.
_TABLES = {
    "german": (
        """der die das den dem des ein eine einen einem einer eines kein keine keinen mein meine
        meinen meinem meiner dein deine deinen ihr ihre ihren ihrem ihrer sein seine seinen unser
        unsere unseren euer eure dieser diese dieses diesen diesem""",
        "",
        """ich du er sie es wir man mich mir dich dir ihn ihm uns euch ihnen sich wer was wann wo
        wie warum wieso weshalb woher wohin welche welcher welches welchen und oder aber wenn
        weil dass ob als denn also doch nur noch schon sehr auch so da dann hier dort jetzt nun
        immer nie mal bitte danke hallo hi guten tag in im an am auf aus bei beim mit nach von vom
        vor zu zum zur über unter für um durch gegen ohne seit bis bin bist ist sind seid war
        waren wäre sein gewesen habe hab hast hat haben hatte hätte hätten wird werde wirst
        werden wurde wurden worden kann kannst können könnte könnten könnt muss müssen soll
        sollte will wollen möchte möchten würde würden darf dürfen mag gibt geht gehen etwas
        alles mehr viel wieder gerade eigentlich ja nein""",
        "nicht",
    ),
    "french": (
        """le la les l un une mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce cet
        cette ces""",
        "de du des d",
        """je j tu il elle on nous vous ils elles me m te t se s moi toi lui eux y en qui que qu
        quoi quand où comment pourquoi combien quel quelle quels quelles et ou mais si car donc
        ni parce est es suis sont sommes êtes était étais être été ai as a avons avez ont avait
        avoir eu fait faire peux peut pouvez pouvons peuvent pourrais pourrait pourriez pouvoir
        dois doit devez devrais veux veut voulez voudrais voudrait aimerais souhaite vais va
        allez à au aux dans sur sous avec sans pour par chez vers depuis entre après avant ne n
        plus très trop bien aussi encore déjà toujours jamais tout tous toute toutes rien ça cela
        c merci bonjour salut bonsoir svp plaît stp oui non alors comme ici là""",
        "pas",
    ),
    "spanish": (
        """el la los las lo un una unos unas mi mis tu tus su sus nuestro nuestra nuestros este esta
        esto estos estas ese esa eso""",
        "de del",
        """yo tú usted él ella nosotros ellos ellas ustedes me te se nos le les qué quién cuándo
        dónde cómo cuánto cuánta cuántos cuál cuáles que quien cuando donde como cual y e o u
        pero si porque pues ni por para con sin en a al desde hasta sobre entre según es soy eres
        son somos era ser fue sido está estoy estás están estar estaba hay ha he has han hemos
        había haber hago hace hacer puedo puede puedes pueden podemos poder podría podrías
        podrían debo debe tengo tiene tienes tienen tener quiero quiere quieres quisiera querría
        necesito necesita gustaría voy va van ir muy más ya también todavía aún siempre nunca
        todo todos toda todas algo nada así aquí ahí hola gracias favor buenos buenas sí""",
        "no",
    ),
    "italian": (
        """il lo la i gli le l un uno una mio mia miei mie tuo tua suo sua nostro nostra vostro
        vostra questo questa questi queste quel quella quello""",
        "di del della dello dei degli delle dell d",
        """io tu lui lei noi voi loro mi ti ci vi si me te ne chi che cosa quando dove come perché
        quanto quanta quanti quale quali cui e ed o ma se anche da dal dalla dai a al alla allo
        ai alle in nel nella nei su sul sulla con per tra fra senza è sono sei siamo siete era
        essere stato stata stati ho hai ha abbiamo avete hanno avevo aveva avere fare faccio fa
        fatto posso puoi può possiamo potete possono potrei potrebbe poter potere devo deve
        dovrei voglio vuole vorrei vorrebbe bisogno vado va più molto già ancora sempre mai tutto
        tutti tutta qui là poi così c ciao salve buongiorno buonasera grazie prego favore
        cortesia sì""",
        "non",
    ),
    "portuguese": (
        """o a os as um uma uns umas meu minha meus minhas teu tua seu sua seus suas nosso nossa
        este esta isto esse essa isso aquele""",
        "de do da dos das",
        """eu tu você vocês ele ela nós eles elas me te se nos lhe quem que quê quando onde como
        porque quanto quanta quantos qual quais por para pra com sem em no na nos nas num numa ao
        à aos pelo pela até desde sobre entre é sou és são somos era ser foi sido está estou
        estão estar estava há tem tenho têm ter tinha faço faz fazer posso pode podes podem poder
        poderia devo deve quero quer queria gostaria preciso precisa consigo vou vai ir e ou mas
        se pois nem sim muito mais já também ainda sempre nunca tudo todo todos toda algo nada
        aqui ali oi olá obrigado obrigada favor bom boa""",
        "não",
    ),
    "dutch": (
        "de het een mijn m jouw je uw zijn haar ons onze hun deze dit die dat geen",
        "van",
        """ik jij u hij zij ze wij we jullie me mij jou hem hen zich wie wat wanneer waar hoe waarom
        hoeveel welke welk en of maar als want dus dan toch ook nog al wel nooit altijd heel erg
        zeer meer in op aan bij met naar voor over onder uit door tegen zonder tot te om tussen
        sinds is ben bent was waren wordt word worden werd geweest heb hebt heeft hebben had
        hadden kan kun kunt kunnen kon zou zouden moet moeten mag mogen wil wilt willen wilde zal
        zullen gaat ga gaan doe doet doen graag alstublieft alsjeblieft aub svp bedankt dank
        hallo hoi goedemorgen goedemiddag ja nee er hier daar nu iets niets alles alle""",
        "niet",
    ),
    "swedish": (
        """en ett den det de min mitt mina din ditt dina sin sitt sina vår vårt våra er ert era
        denna detta dessa ingen inget""",
        "",
        """jag du han hon vi ni dem mig dig sig oss man vem vad när var hur varför vilken vilket
        vilka och eller men om att som så för eftersom då nu här där i på av till från med utan
        hos vid under över efter före innan mellan är var vara varit har hade ha haft kan kunde
        ska skulle skall vill ville måste får fick få bör blir blev bli gör göra går gå behöver
        aldrig alltid också redan bara mycket mer än alla allt något någon några tack snälla hej
        hejsan ja nej gärna""",
        "inte",
    ),
    "danish and norwegian": (
        """en et ei den det de min mit mitt mine din dit ditt dine sin sit sitt sine vores vår våre
        deres denne dette disse ingen""",
        "",
        """jeg du han hun vi i dere dem mig meg dig deg sig seg os oss man hvem hvad hva hvornår når
        hvor hvordan hvorfor hvilken hvilket hvilke og eller men om at som så for fordi da nu nå
        her der på af av til fra med uden uten hos ved under over efter etter før mellem mellom
        er var være vært været har havde hadde have ha haft kan kunne skal skulle vil ville må
        måtte får fik fikk få bør bliver blir blev ble blive bli gør gjør gøre gjøre går gå
        aldrig aldri altid alltid også allerede bare meget mye mere mer alle alt noget noe nogen
        noen tak takk hej hei ja nej nei gerne gjerne venligst""",
        "ikke",
    ),
    "polish": (
        """mój moja moje mojego mojej moją mojemu swój swoje swoją swojego nasz nasza nasze wasz ten
        ta to tego tej tę te tym żaden""",
        "",
        """ja ty on ona ono my wy oni mnie mi ciebie ci go jej jego ich nam nas się siebie kto co
        kiedy gdzie skąd jak dlaczego czemu ile który która które jaki jaka jakie i a oraz lub
        albo ale czy jeśli gdy bo że żeby aby więc w we na z ze do od dla po pod nad przed przez
        przy za o u bez jest jestem są był była było być będzie będę mam masz ma mamy mają mieć
        mogę może można możesz możecie móc chcę chce chciałbym chciałabym muszę trzeba powinien
        proszę prosze dziękuję dobry witam cześć hej tak już jeszcze też także tylko bardzo
        więcej zawsze nigdy wszystko nic coś tu tam teraz""",
        "nie",
    ),
    "russian": (
        """мой моя моё мое мои моего моей мою моему моих свой свою своего наш наша ваш ваша этот эта
        это эти этого этой эту тот та""",
        "",
        """я ты он она оно мы вы они меня мне тебя тебе его ему её ее нас нам вас вам их им себя кто
        что когда где куда откуда как почему зачем сколько какой какая какие который и а но или
        если то чтобы потому ли же бы в во на с со к ко от до из за по под над при через для о об
        без у есть был была было были быть будет буду могу может можно можете можем нужно надо
        хочу хочет хотел хотела хотелось должен нет да уже ещё еще тоже также только очень более
        всегда никогда всё все ничего тут там здесь сейчас пожалуйста спасибо привет здравствуйте
        добрый""",
        "не",
    ),
    "turkish": (
        "bir bu şu o benim senin onun bizim sizin onların",
        "",
        """ben sen biz siz onlar bana sana ona bize size onlara beni seni onu bizi sizi kim ne neden
        niye niçin nasıl nerede nereye nereden hangi hangisi kaç zaman ve veya ya da de ki ama
        fakat eğer çünkü ise için ile gibi kadar göre sonra önce beri doğru var mı mi mu mü
        mıyım miyim musunuz mısınız misiniz mıdır midir olur olarak olan oldu olmuş olabilir
        oluyor olmak ediyorum ederim eder etmek edebilir edebilirim miyiz yapabilirim istiyorum
        isterim istiyoruz lazım gerek gerekiyor lütfen teşekkürler teşekkür merhaba selam evet
        hayır çok daha en hâlâ artık şimdi burada orada her hep hiç şey bazı tüm bütün""",
        "değil yok",
    ),
    "arabic": (
        "هذا هذه ذلك تلك هؤلاء",
        "",
        """أنا أنت أنتم نحن هو هي هم لي لك له لها لنا لكم لدي لديك عندي عندك عندنا من إلى في
        على عن مع بعد قبل بين حتى منذ عند خلال بدون دون حول ضد كل بعض أي أيضا فقط جدا أكثر ما
        ماذا متى أين كيف لماذا لم لن كم هل الذي التي الذين أو أم و ثم لكن إذا لو لأن أن إن
        كان كانت يكون تكون كنت قد سوف أريد نريد تريد يريد أود أرغب أحتاج يمكن يمكنني
        يمكنك ممكن أستطيع يجب ينبغي هناك هنا الآن شكرا مرحبا أهلا السلام عليكم فضلك
        رجاءً الرجاء نعم كلا ايش شو وش ليش وين ابي ابغى عايز عاوز إزاي فين ليه""",
        "لا ليس غير",
    ),
    "hindi": (
        """यह ये वह वो इस उस इन उन मेरा मेरी मेरे अपना अपनी अपने आपका आपकी आपके तुम्हारा हमारा हमारी हमारे
        एक""",
        "का की के",
        """मैं मुझे मुझको हम हमें आप आपको तुम तुम्हें उसे उसको उन्हें उसका किसी कोई कुछ को से में पर तक
        लिए साथ बाद पहले और या लेकिन अगर तो कि क्योंकि जो जब क्या कौन कब कहाँ कहां कैसे क्यों कितना
        कितने कितनी किस है हैं हूँ हूं हो था थी थे होगा होता होती होते रहा रही रहे गया गई गए करना
        करने करूँ करूं करें करो कर सकता सकती सकते चाहता चाहती चाहिए चाहते दें दो दीजिए कृपया धन्यवाद
        नमस्ते हाँ हां जी ही भी अब अभी यहाँ यहां वहाँ बहुत ज्यादा सब सभी ने""",
        "नहीं न मत",
    ),
}


def _language(*table: str) -> Language:
    determiners, links, stops, negations = map(_both_spellings, table)
    # Without its accent the French "là" is an article, which ends no phrase.
    return Language(determiners, links, stops - determiners - links - negations, negations)


def _both_spellings(words: str) -> frozenset[str]:
    """Return words with and without accents: people write "cómo" and "como"."""
    plain = unicodedata.normalize("NFKD", words)
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return frozenset(words.split()) | frozenset(bare.split())


LANGUAGES = {name: _language(*table) for name, table in _TABLES.items()}
"""What is known about the words of every language but English."""


def choose_languages(groups: Sequence[Sequence[str]]) -> list[Language | None]:
    """Say which language the utterances of every intent are in.

    Args:
        groups: The utterances of each intent.

    Returns:
        The language of each intent's function words, else that of all utterances together; None
        where these are too few in any language that there is a table of.
    """
    counts = [
        Counter(word for text in group[:: 1 + len(group) // READ] for word in tokens(text))
        for group in groups
    ]
    whole: Counter[str] = Counter()
    for each in counts:
        whole.update(each)
    common = _spoken(whole)
    return [_spoken(each) or common for each in counts]


def _spoken(counts: Counter[str]) -> Language | None:
    """Return the language with most function words among words, if they are many."""

    def seen(language: Language) -> int:
        return sum(count for word, count in counts.items() if language.is_function_word(word))

    # The first of equals wins: words that English has, too, speak for no other language.
    best = max(_all(), key=seen)
    return best if seen(best) >= max(LEAST_SEEN, LEAST_SHARE * counts.total()) else None


def _all() -> Iterable[Language]:
    return ENGLISH, *LANGUAGES.values()
