"""The start of the server: what it imports, what it writes to stdout, and where it finds its workspace."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from mcp import Client
from stdio_session import Session, connected, text_of

NEVER = {"torch", "triton", "numpy", "typer", "rich", "jinja2", "libcst", "matplotlib"}
"""Torch by design; the rest because a client waits for the start."""


def test_serve_imports_nothing_heavy() -> None:
    served = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tigon", "serve"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert served.returncode == 0, served.stderr[-500:]
    modules = {line.rpartition("|")[2].strip() for line in served.stderr.splitlines()}
    assert "tigon.protocol.server" in modules, "the import times were not read"
    assert not NEVER & {name.partition(".")[0] for name in modules}


def test_a_server_outside_a_workspace_says_what_to_do(outside: Session) -> None:
    text = outside.refused("task_status")
    assert text.startswith("gate workspace: ")
    assert "is not a Liger checkout" in text and "tigon init" in text


BAD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("run_verify", {}, "`task_id`: field required"),
    ("run_verify", {"task_id": "t", "device": "tpu"}, "'auto', 'cpu' or 'cuda', not 'tpu'"),
    ("run_verify", {"task": "t"}, "no argument 'task'. Next: its arguments are: task_id, device, gates."),
    ("classify_tier", {"source": "f", "inputs": [{"name": "x", "size": [2]}]}, "`inputs.0.size`: "),
    ("get_reference", {"tier": 4}, "`tier`: "),
    ("emit_profile", {"workflow": "liger-kernel-dev", "profile": "{"}, "`profile`: "),
    ("no_such_tool", {}, "no_such_tool"),
]


@pytest.mark.parametrize(("tool", "arguments", "says"), BAD_CALLS)
def test_bad_arguments_are_refused_in_a_sentence(
    outside: Session, tool: str, arguments: dict[str, Any], says: str
) -> None:
    text = outside.refused(tool, **arguments)
    assert text.startswith("gate input: ") and " Next: " in text
    assert says in text
    assert "pydantic" not in text and "http" not in text and "Traceback" not in text and "\n" not in text


def test_a_long_wrong_value_is_not_repeated(outside: Session) -> None:
    text = outside.refused("run_verify", task_id="t", device="x" * 5_000)
    assert len(text) < 400


def test_refusals_can_be_read_by_programs_too(outside: Session) -> None:
    result = outside.call("task_status")
    assert result.is_error and result.structured_content is not None
    assert {"state", "next", "gate", "reason"} <= set(result.structured_content)
    assert result.structured_content["next"] in text_of(result)


@contextmanager
def listening(folder: Path) -> Iterator[str]:
    """A server over HTTP; yields its address. A free port is asked of the system first: 0 is not a port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "tigon", "serve", "--http", f"127.0.0.1:{port}"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if "running on" in line:
                break
        else:
            pytest.fail("the server ended before it listened")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_http_serves_both_eras(tmp_path: Path, portal: BlockingPortal) -> None:
    async def names(mode: str, url: str) -> set[str]:
        async with Client(url, mode=mode) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    with listening(tmp_path) as url:
        old = portal.call(names, "legacy", url)
        new = portal.call(names, "auto", url)
    assert "classify_tier" in old and old == new


@pytest.mark.parametrize("address", ["8931", "localhost:", "localhost:99999", "localhost:http"])
def test_a_wrong_address_is_said(address: str) -> None:
    served = subprocess.run(
        [sys.executable, "-m", "tigon", "serve", "--http", address],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert served.returncode == 2
    assert "is not HOST:PORT" in served.stderr and "Traceback" not in served.stderr


def workspace_at(folder: Path) -> Path:
    """The least that counts as one."""
    for name in ("ops/__init__.py", "transformers/__init__.py", "transformers/functional.py"):
        path = folder / "src" / "liger_kernel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def seen_root(portal: BlockingPortal, started_in: Path, **environment: str) -> str:
    """The folder that the server says it works in, or refuses to."""
    with connected(portal, started_in, "2025-11-25", **environment) as session:
        text = session.refused("task_status", task_id="no-such-task")
        found = re.search(r"gate workspace: (\S+) is not a Liger checkout", text)
        return found.group(1) if found else "a workspace"


def test_the_project_of_claude_code_counts_only_if_it_is_a_workspace(portal: BlockingPortal, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    checkout = workspace_at(tmp_path / "checkout")
    assert seen_root(portal, nowhere, CLAUDE_PROJECT_DIR=str(checkout)) == "a workspace"
    assert seen_root(portal, nowhere, CLAUDE_PROJECT_DIR=str(tmp_path)) == str(nowhere)
    assert seen_root(portal, checkout, CLAUDE_PROJECT_DIR=str(tmp_path)) == "a workspace"
    assert seen_root(portal, checkout / "src" / "liger_kernel", CLAUDE_PROJECT_DIR=str(tmp_path)) == "a workspace"
    assert (checkout / ".tigon").is_dir()


def raw_session(folder: Path, calls: list[dict[str, Any]]) -> Iterator[tuple[int, list[bytes]]]:
    """A server that was sent `calls` after its handshake: its process id and the lines of its stdout."""
    handshake = [
        {
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "tigon", "serve"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None and server.stdout is not None
    lines: list[bytes] = []
    try:
        for message in [*handshake, *calls]:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
            while "id" in message:
                lines.append(server.stdout.readline())
                assert lines[-1], "the server ended"
                if json.loads(lines[-1]).get("id") == message["id"]:
                    break
        yield server.pid, lines
    finally:
        server.stdin.close()
        lines += server.stdout.readlines()
        server.wait(timeout=30)


NOISY = """\
os, sys = __import__("os"), __import__("sys")
print("noise at import")
os.write(1, b"noise on the descriptor\\n")
sys.__stdout__.write("noise on the original stream\\n")

def noisy(x):
    print("noise in the call")
    os.system("echo noise of a child")
    return x * 2.0
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_jobs_stay_out_of_the_server(workspace: Path) -> None:
    """A reference that prints in every way is traced, and the server has no torch in its memory."""
    call = {
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "classify_tier",
            "arguments": {
                "source": NOISY,
                "entry": "noisy",
                "inputs": [{"name": "x", "shape": [4, 8]}],
            },
        },
    }
    for pid, lines in raw_session(workspace, [call]):
        maps = Path(f"/proc/{pid}/maps").read_text()
        answer = json.loads(lines[-1])["result"]
        assert not answer.get("isError"), answer
        assert answer["structuredContent"]["tier"] == 1
        assert "python" in maps and "libtorch" not in maps and "libtriton" not in maps
    assert len(lines) >= 2
    for line in lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
