"""The command `livememfs`, and `python -m livememfs`.

A hook is answered without the parser: that alone takes longer to load than a hook may take.
"""

import sys


def main() -> None:
    """Run the command that the arguments name."""
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == 3 and not sys.argv[2].startswith("-"):
        from livememfs.mirror.client import hook

        hook(sys.argv[2])
        return
    from livememfs.cli.main import main as whole

    whole()


if __name__ == "__main__":
    main()
