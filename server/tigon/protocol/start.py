"""`tigon serve`: its arguments, and a start that does not keep the client waiting.

Importing the SDK is nearly all of a server's start, and most of that is making some 500 pydantic models, of
which a session uses a few dozen. Three things make it a third shorter (benchmarks/startup.py): no garbage
collection meanwhile, since nothing of it is garbage; no look-up of pydantic plugins, of which there are
none here; and validators that are built when a model is first used (pydantic's `defer_build`).
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tigon.protocol.server import TigonServer

DEFAULT_HTTP_HOST = "127.0.0.1"
LOOPBACK = (DEFAULT_HTTP_HOST, "localhost", "::1")
"""Addresses that only this machine reaches. There is no login: a reference is code, and it is run."""


def serve(arguments: Sequence[str]) -> int:
    """Serve until the client hangs up; returns the exit status."""
    options = _parser().parse_args(arguments)
    server = _build_quickly(options.workspace)
    try:
        if options.http is None:
            server.run("stdio")
        else:
            host, port = options.http
            if host not in LOOPBACK:
                print(
                    f"tigon serve: whoever can reach {host}:{port} can run code on this machine as you.",
                    file=sys.stderr,
                )
            server.run("streamable-http", host=host, port=port)
    except KeyboardInterrupt:
        return 130
    except OSError as problem:
        print(f"tigon serve: {problem}. Next: give --http another port.", file=sys.stderr)
        return 1
    return 0


def _build_quickly(workspace_option: Path | None) -> TigonServer:
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True  # classes take it over when they are defined
    try:
        from tigon.protocol.server import build_server
    finally:
        del BaseModel.model_config["defer_build"]
    server = build_server(workspace_option)
    gc.enable()
    gc.freeze()  # what is alive now stays alive; later collections need not look at it
    return server


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tigon serve", description="The MCP server, over stdio by default.")
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="PATH",
        help="the Liger checkout to work in (default: $CLAUDE_PROJECT_DIR if that is one, else this folder)",
    )
    parser.add_argument(
        "--http",
        type=_host_and_port,
        metavar="HOST:PORT",
        help="serve streamable HTTP at http://HOST:PORT/mcp in place of stdio",
    )
    return parser


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, as in {DEFAULT_HTTP_HOST}:8931")
    return host.strip("[]") or DEFAULT_HTTP_HOST, int(port)
