"""The command `tigon`. `serve` is told apart before anything else is imported: a client is waiting."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command in `sys.argv`; the exit status is 0, 1 (it failed) or 2 (it was called wrongly)."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        from tigon.protocol.start import serve

        return serve(arguments[1:])
    from tigon.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
