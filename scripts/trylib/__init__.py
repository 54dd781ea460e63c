"""Real agents' programs, each for a scripted day beside a real mount; everything behind `scripts/try-agents`.

Owns the table of what reached each program's model and what was observed. Not part of the package. Main thread only,
but for the model's endpoint, whose server has threads of its own.
"""
