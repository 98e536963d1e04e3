"""What is answered instead of doing it, as exceptions."""

from __future__ import annotations

from typing import Any

import httpx

from ._generated.models import Fault, Problem

# too many requests, or the service is away; the last two are a gateway's
BUSY = {429, 503, 502, 504}


class Refused(Exception):
    """The service refused, or failed. The text has the problem, its faults and its remedies."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        lines = [f"{problem.title}: {problem.detail}"]
        lines += [f"  {fault.pointer}: {fault.detail}" for fault in self.faults]
        lines += [f"  remedy: {remedy.get('words') or remedy.get('title')}" for remedy in self.remedies]
        super().__init__("\n".join(lines))

    # an exception is pickled by its arguments, and this one is made of a problem
    def __reduce__(self) -> tuple[type[Refused], tuple[Problem]]:
        return type(self), (self.problem,)

    @property
    def title(self) -> str:
        return self.problem.title

    @property
    def detail(self) -> str:
        return self.problem.detail

    @property
    def status(self) -> int:
        """The status of HTTP; 0 where this package refuses."""
        return self.problem.status

    @property
    def type(self) -> str:
        """The name in the catalogue of problems, such as `invalid-specification`."""
        return self.problem.type_.rsplit("/", 1)[-1]

    @property
    def faults(self) -> list[Fault]:
        """The faults of the specification, each with a JSON pointer into the document."""
        return self.problem.errors or []

    @property
    def remedies(self) -> list[dict[str, Any]]:
        """What ends it: calls with `words`, or patches of the document with a `title`."""
        calls: list[dict[str, Any]] = self.problem.additional_properties.get("remedies", [])
        return calls + [remedy.to_dict() for fault in self.faults for remedy in fault.remedies or []]


class Unavailable(Refused):
    """The service is busy or away, or the job still runs: the same call may succeed later, and makes nothing twice."""


class NotEnforced(Refused):
    """The release claims, or would claim, less of its people than `enforced`, and it was not accepted."""


class Held(Refused):
    """The release waits for approval by another key: until then this one sees that it does, and nothing of it."""


class Damaged(Refused):
    """A part is not what the manifest says."""


def local(type_: str, title: str, detail: str, status: int = 0) -> Problem:
    """A problem of this side."""
    return Problem(type_=type_, title=title, detail=detail, status=status, instance="about:blank")


def refusal(response: httpx.Response) -> Refused:
    """The exception for an answer that is no success."""
    try:
        problem = Problem.from_dict(response.json())
    except (ValueError, KeyError, TypeError, AttributeError):
        # not from the service: a gateway, say
        problem = local("unknown", f"status {response.status_code}", response.reason_phrase, response.status_code)
    # 409 with Retry-After: the first request with this key still runs
    again = response.status_code in BUSY or (response.status_code == 409 and "Retry-After" in response.headers)
    return Unavailable(problem) if again else Refused(problem)
