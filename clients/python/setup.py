"""Refuses to build a package without the generated calls."""

from pathlib import Path

from setuptools import setup

if not (Path(__file__).parent / "src/guardian/_generated/client.py").exists():
    raise SystemExit("run clients/python/generate.sh first: it makes the calls under the package")
setup()
