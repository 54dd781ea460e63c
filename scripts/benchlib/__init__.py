"""Measurements: the same work on a plain folder and on mounts, side by side, with the requests it costs.

Owns everything behind `scripts/bench`. Refuses to print a figure that was not measured in the same run. Not part of the
package; imports of it only what any other program could use. Main thread only.
"""
