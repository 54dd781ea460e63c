"""`python -m livememfs`: the same as the command `livememfs`."""

from livememfs.cli.main import main

if __name__ == "__main__":
    main()
