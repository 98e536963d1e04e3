"""Publishes pandas and polars frames through a Guardian service."""

from ._client import Guardian, UploadOptions
from ._generated.models import Dataset, Fault, Job, Manifest, Plan, Problem, PublicReport, Suggestion
from ._problems import Damaged, Held, NotEnforced, Refused, Unavailable
from ._release import Release

__all__ = [
    "Damaged",
    "Dataset",
    "Fault",
    "Guardian",
    "Held",
    "Job",
    "Manifest",
    "NotEnforced",
    "Plan",
    "Problem",
    "PublicReport",
    "Refused",
    "Release",
    "Suggestion",
    "Unavailable",
    "UploadOptions",
]
