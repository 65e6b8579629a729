"""Names by a language model behind a chat endpoint of the OpenAI kind, where the user asks for it.

Nothing here runs unless the user names an endpoint: the exemplars and keyphrases of the new
intents leave the machine. An answer that is late, malformed or missing costs that intent its new
name and nothing else: it keeps the one it has. Whoever asks is told every request before it goes.
"""

import json
import time
import unicodedata
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from ronid.errors import UsageError
from ronid.name.intents import BY_MODEL
from ronid.name.slug import is_name, slug
from ronid.name.taken import Taken
from ronid.progress import Progress, Silent
from ronid.types import Intent

ENDPOINT = "/chat/completions"
LONGEST_DESCRIPTION = 160
MOST_WORDS = 6
LONGEST_ANSWER_BYTES = 1 << 20
MOST_IN_A_ROW = 3
"""Failures in a row after which the rest is not asked: an endpoint that is down stays down."""
TEXT_PARTS = ("text", "output_text")
"""Types of the parts of an answer that hold what the model said."""
PASSING_STATUS = frozenset({408, 425, 429})
"""HTTP answers below 500 that another try may change."""
REFUSED_STATUS = frozenset({301, 302, 303, 307, 308, 401, 402, 403, 404, 405})
"""HTTP answers that are about the endpoint or the key, not about the one intent asked for."""
NO_KEY_STATUS, NO_RIGHT_STATUS = 401, 403
"""Those of them that the key decides: whether there is a good one, and what it may do."""

Keep = Callable[[str, Mapping[str, Any]], None]
"""Told the address and the body of every request, each try of it, before it is sent."""

INSTRUCTION = """\
You name intents of a dialogue system. An intent is what people want when they write to it.
Answer with one JSON object and nothing else: {"name": "...", "description": "..."}
name: two to four words in lower case joined by underscores, a verb and its object where there is
one, such as report_lost_card; in the language of the utterances; none of the names already taken.
description: one sentence of at most 20 words that says what people want."""


@dataclass(frozen=True)
class Namer:
    """A chat endpoint to ask for names.

    Args:
        url: Base address such as http://localhost:8000/v1, or the whole address of the endpoint.
        model: Name of the model, as the endpoint knows it.
        key: Sent as bearer token, or None.
        timeout_s: Longest wait for one answer.
        tries: How often one intent is asked for.
        pause_s: Wait before the second try; doubled before each further one.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    tries: int = 3
    pause_s: float = 1.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise UsageError(
                f"namer '{self.url}' is not an address; give one such as http://localhost:8000/v1"
            )
        if not self.model.strip():
            raise UsageError("the namer's model has no name; give one with --namer-model")

    @property
    def endpoint(self) -> str:
        """The address that is asked."""
        base = self.url.rstrip("/")
        return base if base.endswith(ENDPOINT) else base + ENDPOINT

    @property
    def address(self) -> str:
        """The endpoint as it may be shown and kept: without a password or a key in the address."""
        parts = urlsplit(self.endpoint)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}"


@dataclass(frozen=True)
class ModelNames:
    """What came of asking.

    Args:
        intents: All intents, with new names where there was an answer.
        asked: New intents that were to be named.
        failures: Why intents got no name, with counts.
        earlier: How many of these keep a name that a model gave them before.
        advice: What to do about the failures, where that is known.
    """

    intents: tuple[Intent, ...]
    asked: int
    failures: Mapping[str, int]
    earlier: int = 0
    advice: str = ""

    @property
    def unanswered(self) -> int:
        """How many were to be named and got no usable answer."""
        return sum(self.failures.values())

    def summary(self) -> str:
        """Say in one line how many were named, why others were not, and what to do next."""
        failed = self.unanswered
        line = f"named {self.asked - failed} of {self.asked} new intents by the model"
        if not failed:
            return line
        reasons = ", ".join(f"{reason} ({count})" for reason, count in self.failures.items())
        line = f"{line}; {failed} not: {reasons}"
        if self.earlier:
            line += f"; kept the name a model gave before: {self.earlier}"
        if failed > self.earlier:
            line += f"; named without a model: {failed - self.earlier}"
        return f"{line}; {self.advice}" if self.advice else line


def to_name(intents: Sequence[Intent]) -> list[Intent]:
    """Return the intents a namer may name: the new ones that the user did not name."""
    return [each for each in intents if not each.known and each.named_by != "user" and each.size]


def prompt(intent: Intent, intents: Sequence[Intent]) -> str:
    """Return what is sent about one intent, word for word, below `INSTRUCTION`.

    Args:
        intent: The intent to name.
        intents: All intents as they are called by now; the names of the others are taken.
    """
    taken = ", ".join(other.name for other in intents if other.index != intent.index)
    examples = "\n".join(f"- {json.dumps(text, ensure_ascii=False)}" for text in intent.exemplars)
    return (
        f"Utterances of the intent:\n{examples}\n\n"
        f"Keyphrases: {', '.join(intent.keyphrases)}\n\n"
        f"Names already taken: {taken}"
    )


def request_body(model: str | None, text: str) -> dict[str, Any]:
    """Return what goes to the endpoint about one intent.

    Args:
        model: Name of the model; None where it is not chosen yet.
        text: The `prompt` of the intent.
    """
    messages = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": text}]
    return {"model": model, "messages": messages, "temperature": 0}


def spell_out(intents: Sequence[Intent]) -> list[str]:
    """Return the messages of every request as people read them.

    The first is what is sent, word for word. In the others the names that a model gives on the
    way take the place of those that the intents have now.

    Args:
        intents: All intents, as `name_by_model` gets them.
    """
    wanted = to_name(intents)
    heads = [f"--- request {place} of {len(wanted)}" for place in range(1, len(wanted) + 1)]
    return [
        f"{head}, system:\n{INSTRUCTION}\n{head}, user:\n{prompt(intent, intents)}\n"
        for head, intent in zip(heads, wanted, strict=True)
    ]


def name_by_model(
    intents: Sequence[Intent],
    namer: Namer,
    progress: Progress | None = None,
    keep: Keep = lambda *_: None,
) -> ModelNames:
    """Ask a language model for the names and descriptions of the new intents.

    Args:
        intents: All intents of a discovery, named already.
        namer: Whom to ask.
        progress: Told about each answer.
        keep: Told about each request before it is sent.

    Returns:
        The intents in the same order. Known intents and those the user named are untouched.
    """
    progress = progress or Silent()
    wanted = to_name(intents)
    answers: dict[int, _Answer] = {}
    current = {intent.index: intent for intent in intents}
    failures: Counter[str] = Counter()
    in_a_row, given_up, advice = 0, "", ""
    progress.begin("name", len(wanted))
    for intent in wanted:
        if given_up:
            failures[given_up] += 1
        else:
            try:
                answer = _ask(namer, prompt(intent, list(current.values())), keep)
                answers[intent.index] = answer
                # What the model has just called one intent is taken for those that follow.
                current[intent.index] = replace(intent, name=answer.name)
                in_a_row = 0
            except _FailedError as failure:
                failures[str(failure)] += 1
                advice = failure.advice or advice
                in_a_row += 1
                if failure.refused:
                    given_up = "not asked after that"
                elif in_a_row == MOST_IN_A_ROW:
                    given_up = f"not asked after {in_a_row} failures in a row"
        progress.advance()
    progress.end()
    unanswered = [intent for intent in wanted if intent.index not in answers]
    earlier = sum(intent.named_by.startswith(BY_MODEL) for intent in unanswered)
    renamed = _renamed(intents, answers, namer.model)
    return ModelNames(renamed, len(wanted), dict(failures), earlier, advice)


@dataclass(frozen=True)
class _Answer:
    name: str
    description: str


class _FailedError(Exception):
    """Why there is no answer, whether to try again, and whether others need not be asked for."""

    def __init__(
        self, reason: str, *, final: bool = False, refused: bool = False, advice: str = ""
    ) -> None:
        super().__init__(reason)
        self.final, self.refused, self.advice = final, refused, advice


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Utterances and key go to the address the user gave and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _renamed(
    intents: Sequence[Intent], answers: Mapping[int, _Answer], model: str
) -> tuple[Intent, ...]:
    """Give every answered intent its name; names that stay have precedence."""
    taken = Taken(each.name for each in intents if each.index not in answers)
    renamed = []
    for intent in intents:
        answer = answers.get(intent.index)
        if answer is None:
            renamed.append(intent)
            continue
        name = taken.take(answer.name)
        description = answer.description or intent.description
        renamed.append(
            replace(intent, name=name, description=description, named_by=f"{BY_MODEL}{model}")
        )
    return tuple(renamed)


def _ask(namer: Namer, text: str, keep: Keep) -> _Answer:
    """Ask until there is a usable answer, or no try is left."""
    for tried in range(namer.tries):
        if tried:
            time.sleep(namer.pause_s * 2 ** (tried - 1))
        try:
            return _parse(_post(namer, text, keep))
        except _FailedError as failure:
            if failure.final or tried == namer.tries - 1:
                raise
    raise AssertionError("a namer tries at least once")


def _post(namer: Namer, text: str, keep: Keep) -> bytes:
    """Send one request and return the body of the answer."""
    body = request_body(namer.model, text)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if namer.key:
        headers["Authorization"] = f"Bearer {namer.key}"
    request = urllib.request.Request(
        namer.endpoint, data=json.dumps(body).encode("ascii"), headers=headers, method="POST"
    )
    opener = urllib.request.build_opener(_NoRedirect)
    keep(namer.address, body)
    deadline = time.monotonic() + namer.timeout_s
    try:
        with opener.open(request, timeout=namer.timeout_s) as answer:
            return _read(answer, deadline)
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(error.code, with_key=bool(namer.key)) from None
    except TimeoutError:
        raise _FailedError("no answer in time") from None
    except urllib.error.URLError as error:
        late = isinstance(error.reason, TimeoutError)
        raise _FailedError("no answer in time" if late else "no connection") from None
    except (OSError, HTTPException):
        raise _FailedError("connection lost") from None


def _refusal(status: int, *, with_key: bool) -> _FailedError:
    """Return what an answer means that is an error of HTTP."""
    reason, advice = f"HTTP {status}", ""
    if status == NO_KEY_STATUS:
        reason += ": the server refused the key" if with_key else ": the server wants a key"
        advice = f"set RONID_NAMER_KEY{' to a key that the server takes' if with_key else ''}"
    elif status == NO_RIGHT_STATUS:
        reason += ": the server allows no access"
        advice = "set RONID_NAMER_KEY to a key that may use this model"
    final = status < 500 and status not in PASSING_STATUS
    return _FailedError(reason, final=final, refused=status in REFUSED_STATUS, advice=advice)


def _read(answer: Any, deadline: float) -> bytes:
    """Read a body; a timeout of the socket alone would let one byte a minute go on for ever."""
    parts = bytearray()
    while part := answer.read1(1 << 16):
        parts += part
        if time.monotonic() > deadline:
            raise _FailedError("no answer in time")
        if len(parts) > LONGEST_ANSWER_BYTES:
            raise _FailedError("answer too long")
    return bytes(parts)


def _parse(body: bytes) -> _Answer:
    """Find name and description in an answer, whatever stands around the JSON object."""
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise _FailedError("malformed answer") from None
    # Models think aloud before they answer: what counts is what they said last.
    said = list(_objects(_text_of(content)))
    if not said:
        raise _FailedError("malformed answer")
    legal, description = slug(said[-1]["name"]), said[-1].get("description")
    if not is_name(legal) or legal.count("_") >= MOST_WORDS:
        raise _FailedError("unusable name")
    # A name is worth having without its description; the intent then keeps the one it has.
    return _Answer(legal, _one_line(description) if isinstance(description, str) else "")


def _text_of(content: Any) -> str:
    """Return what was said, as one text or in parts; "" where there is nothing to read."""
    if isinstance(content, str):
        return content
    listed = content if isinstance(content, list) else []
    parts = [each for each in listed if isinstance(each, dict)]
    texts = [each.get("text") for each in parts if each.get("type") in TEXT_PARTS]
    return "".join(text for text in texts if isinstance(text, str))


def _objects(content: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text that have a name, in order; of nested ones the outer."""
    decoder, start = json.JSONDecoder(), content.find("{")
    while start >= 0:
        stop = start + 1
        try:
            values, end = decoder.raw_decode(content, start)
        except (ValueError, RecursionError):
            pass
        else:
            if isinstance(values.get("name"), str):
                yield values
                stop = end
        start = content.find("{", stop)


def _one_line(text: str) -> str:
    """Return printable text without line breaks, cut between words where it is too long."""
    kept = (" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    line = " ".join("".join(kept).split())
    if len(line) <= LONGEST_DESCRIPTION:
        return line
    return (line[:LONGEST_DESCRIPTION].rpartition(" ")[0] or line[:LONGEST_DESCRIPTION]) + "\u2026"
