"""Sends requests again as long as that can help."""

from __future__ import annotations

import logging
import random
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from ._problems import Refused, Unavailable, local, refusal

log = logging.getLogger("guardian")


class RepeatingTransport(httpx.BaseTransport):
    """Repeats requests, and raises what is refused. All requests of this package can be repeated: they read, or have a key."""

    def __init__(self, inner: httpx.BaseTransport, tries: int, patience: float) -> None:
        self._inner, self._tries, self._patience = inner, tries, patience

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        # a body that is a stream could be sent once
        request.read()
        until = time.monotonic() + self._patience
        attempt = 1
        while True:
            answer, pause = self._send(request)
            if isinstance(answer, httpx.Response):
                return answer
            if pause is None:
                pause = min(2.0**attempt, 60.0) * random.uniform(0.25, 0.5)
            last = attempt >= self._tries or time.monotonic() + pause > until
            if last or not isinstance(answer, Unavailable):
                raise answer
            log.warning("%s %s: %s; again in %.1f s", request.method, request.url.path, answer.title, pause)
            time.sleep(pause)
            attempt += 1

    def _send(self, request: httpx.Request) -> tuple[httpx.Response | Refused, float | None]:
        """A success, or what is raised for the answer and the pause that it asks for."""
        try:
            response = self._inner.handle_request(request)
            # an answer may also be lost within
            response.read()
        except httpx.UnsupportedProtocol:
            raise
        except httpx.TransportError as error:
            detail = f"{request.method} {request.url}: {error or type(error).__name__}"
            return Unavailable(local("no-answer", "the service did not answer", detail)), None
        return (response, None) if response.is_success else (refusal(response), retry_after(response))

    def close(self) -> None:
        self._inner.close()


def retry_after(response: httpx.Response) -> float | None:
    """The seconds of Retry-After, which is a number or a date."""
    text = response.headers.get("Retry-After", "")
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        return max((parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
