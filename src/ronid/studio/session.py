"""Who somebody is, in a signed cookie; and the password that lets them in."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections import deque
from dataclasses import dataclass, field

LASTS_S = 30 * 24 * 3600
_TRIES, _PER_S = 10, 60.0


@dataclass(frozen=True)
class Door:
    """What it takes to come in.

    Args:
        run: Fingerprint of the run; cookies of other runs do not count.
        password: The password or token, None where everybody on this machine may come in.
        tries: When wrong passwords were tried.
    """

    run: str
    password: str | None = None
    tries: deque[float] = field(default_factory=deque)

    @property
    def cookie(self) -> str:
        """Name of the cookie; ports of one host share cookies, so the run is in it."""
        return f"ronid_{self.run[:8]}"

    def _key(self) -> bytes:
        # From the password: a restart of the server lets nobody out, another password everybody.
        return hashlib.sha256(f"ronid studio\0{self.run}\0{self.password or ''}".encode()).digest()

    def opens_to(self, password: str) -> bool:
        """Return whether a password is right; takes as long for any other."""
        if self.password is None:
            return True
        return secrets.compare_digest(password.encode(), self.password.encode())

    def too_many_tries(self) -> bool:
        """Return whether somebody is guessing."""
        now = time.monotonic()
        while self.tries and now - self.tries[0] > _PER_S:
            self.tries.popleft()
        return len(self.tries) >= _TRIES

    def tried(self) -> None:
        """Count a wrong password."""
        self.tries.append(time.monotonic())

    def issue(self, who: str) -> str:
        """Return the value of a cookie that says who somebody is."""
        told = json.dumps({"who": who, "until": int(time.time()) + LASTS_S}).encode()
        body = base64.urlsafe_b64encode(told).decode()
        return f"{body}.{self._sign(body)}"

    def _sign(self, body: str) -> str:
        return hmac.new(self._key(), body.encode(), hashlib.sha256).hexdigest()

    def who(self, cookie: str | None) -> str | None:
        """Return who a cookie says somebody is, None if it is not one of ours."""
        body, _, signature = (cookie or "").partition(".")
        if not body or not body.isascii() or not signature.isascii():
            return None
        if not secrets.compare_digest(signature, self._sign(body)):
            return None
        told = json.loads(base64.urlsafe_b64decode(body))
        return str(told["who"]) if told["until"] > time.time() else None
