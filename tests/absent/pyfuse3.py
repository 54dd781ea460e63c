"""In place of the library, for whatever must work without it: with this folder first in PYTHONPATH it is not there."""

raise ModuleNotFoundError("No module named 'pyfuse3'", name="pyfuse3")
