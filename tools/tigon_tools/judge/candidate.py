"""The candidate's process: loads it, runs it on one case after another, hands tensors back.

What decides is never here: this process can be patched by what it runs. Allocations of the candidate
are guarded and poisoned, so that what it does not write, and what it writes outside, shows.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from tigon_tools.judge.allocations import Allocations
from tigon_tools.judge.channel import receive, send
from tigon_tools.judge.launches import Launches
from tigon_tools.judge.layouts import Guarded, guarded, without_repeats


@dataclass(frozen=True)
class Watched:
    """What is kept account of while the candidate runs."""

    allocations: Allocations
    launches: Launches


def load(candidate: str) -> Any:
    """ "file.py:name" or "package.module:name" as a callable; an autograd.Function by `.apply`, an nn.Module made.

    Raises:
        Whatever importing it raises; ValueError where there is no such thing.
    """
    place, _, name = candidate.rpartition(":")
    module = _module_of_file(Path(place).resolve()) if place.endswith(".py") else importlib.import_module(place)
    if not hasattr(module, name):
        raise ValueError(f"{place} has no {name}")
    found = getattr(module, name)
    if inspect.isclass(found) and issubclass(found, torch.autograd.Function):
        return found.apply
    if not callable(found):
        raise ValueError(f"{name} is a {type(found).__name__}, not a function, autograd.Function or nn.Module")
    return found


def _module_of_file(path: Path) -> Any:
    """Under its package name where it lies in one, so that what it imports is itself."""
    for entry in sys.path:
        root = Path(entry or ".").resolve()
        if root != path.parent and path.is_relative_to(root) and (path.parent / "__init__.py").exists():
            return importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
    spec = importlib.util.spec_from_file_location(f"tigon_candidate_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def serve(connection: Connection, candidate: str, workspace: str | None, device: str) -> None:
    """Load the candidate and run cases until the pipe closes; ends the process."""
    torch.set_num_threads(1)
    watched = Watched(Allocations(), Launches())
    try:
        if workspace is not None:
            from tigon_tools.gates.workspace_path import use_workspace

            use_workspace(workspace, device)
        elif device == "cpu" and importlib.util.find_spec("triton") is not None:
            from tigon_tools.interpreter.activation import activate

            activate()
        watched.allocations.install()
        watched.launches.install()
        function = load(candidate)
        send(connection, {"ready": True}, [])
    except BaseException as problem:
        send(connection, {"error": _told(problem)}, [])
        os._exit(0)
    kept: list[Guarded] = []
    while True:
        try:
            header, tensors = receive(connection)
        except (EOFError, OSError):
            os._exit(0)
        try:
            kept, answer, results = _run(function, header, tensors, kept, device, watched)
        except BaseException as problem:
            answer, results = {"error": _told(problem), "kind": type(problem).__name__}, []
        send(connection, answer, results)


def _told(problem: BaseException) -> str:
    text = str(problem).strip().splitlines()
    where = traceback.extract_tb(problem.__traceback__)
    own = [f for f in where if "tigon_tools" not in f.filename and "site-packages" not in f.filename] or where
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(problem).__name__}: {text[0] if text else ''}{place}"


def _run(
    function: Any,
    header: dict[str, Any],
    tensors: list[torch.Tensor],
    kept: list[Guarded],
    device: str,
    watched: Watched,
) -> tuple[list[Guarded], dict[str, Any], list[torch.Tensor]]:
    """One call forward and backward.

    The answer's tensors: outputs, gradients that exist, inputs as they are afterwards, upstream gradients likewise.
    """
    values = iter(tensors)
    placed = _place(header, values, kept, device)
    arguments, leaves = _arguments(header["inputs"], placed)
    allocations, launches = watched.allocations, watched.launches
    before = launches.count
    with allocations.active():
        outputs = _call(function, header["inputs"], arguments)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        outputs = [o for o in outputs if isinstance(o, torch.Tensor)]
        results = [o.detach().clone() for o in outputs]
        upstream = [_placed(d, next(values), device) for d in header["upstream"]]
        between = launches.count
        gradients = _gradients(outputs, leaves, upstream, header)
    answer = {
        "outputs": len(outputs),
        "gradients": [g is not None for g in gradients],
        "upstream": len(upstream),
        "outputs_change": [not _same(r, o) for r, o in zip(results, outputs, strict=True)],
        "overrun": [b.overrun() for b in (*placed, *upstream, *allocations.made)],
        "launches": (between - before, launches.count - between),
        "aliases": [any(_same_storage(o, b.tensor) for b in placed) for o in outputs],
    }
    results += [g for g in gradients if g is not None]
    results += [b.tensor for b in placed] + [b.tensor for b in upstream]
    return placed, answer, results


def _place(header: dict[str, Any], values: Iterator[torch.Tensor], kept: list[Guarded], device: str) -> list[Guarded]:
    """The tensor inputs in their layouts; with `reuse` in the memory of the call before."""
    placed: list[Guarded] = []
    for described in header["inputs"]:
        if described["kind"] == "scalar":
            continue
        value = next(values)
        if header["reuse"] and len(placed) < len(kept):
            block = kept[len(placed)]
            without_repeats(block.tensor.detach()).copy_(_once(value, block.tensor))
        else:
            block = _placed(described, value, device)
        placed.append(block)
    return placed


def _placed(described: dict[str, Any], value: torch.Tensor, device: str) -> Guarded:
    block = guarded(tuple(value.shape), tuple(described["stride"]), value.dtype, device, described.get("offset", 0))
    without_repeats(block.tensor).copy_(_once(value, block.tensor))
    return block


def _once(value: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The values that `target` keeps, which repeats those along stride 0."""
    for dim, stride in enumerate(target.stride()):
        if stride == 0 and target.shape[dim] > 1:
            value = value.narrow(dim, 0, 1)
    return value


def _arguments(inputs: list[dict[str, Any]], placed: list[Guarded]) -> tuple[list[Any], list[torch.Tensor]]:
    """Values in the order of the reference's arguments, and those of them that want a gradient."""
    blocks = iter(placed)
    arguments: list[Any] = []
    leaves = []
    for described in inputs:
        if described["kind"] == "scalar":
            arguments.append(described["value"])
            continue
        leaf = next(blocks).tensor.detach()
        if described["requires_grad"]:
            leaf.requires_grad_(True)
            leaves.append(leaf)
        arguments.append(leaf)
    return arguments, leaves


def _call(function: Any, inputs: list[dict[str, Any]], arguments: list[Any]) -> Any:
    """A function by position. An nn.Module by its constructor's settings, its own parameters, and the rest by position."""
    if not (isinstance(function, torch.nn.Module) or inspect.isclass(function)):
        return function(*arguments)
    named = [(d["name"], d["kind"], a) for d, a in zip(inputs, arguments, strict=True)]
    module: Any = function
    if inspect.isclass(function):
        constructor = inspect.signature(function).parameters
        module = function(**{name: a for name, kind, a in named if kind == "scalar" and name in constructor})
        named = [entry for entry in named if not (entry[1] == "scalar" and entry[0] in constructor)]
    own = [*dict(module.named_parameters()), *dict(module.named_buffers())]
    dotted = {name.replace(".", "_"): name for name in own}
    state = {dotted[name]: a for name, kind, a in named if kind in ("parameter", "buffer") and name in dotted}
    rest = tuple(a for name, kind, a in named if kind not in ("parameter", "buffer"))
    return torch.func.functional_call(module, state, rest)


def _gradients(
    outputs: list[torch.Tensor], leaves: list[torch.Tensor], upstream: list[Guarded], header: dict[str, Any]
) -> list[torch.Tensor | None]:
    if not leaves:
        return []
    pairs = []
    for described, block in zip(header["upstream"], upstream, strict=True):
        # Fewer outputs than the reference has are the judge's to report.
        if described["output"] < len(outputs) and outputs[described["output"]].requires_grad:
            pairs.append((outputs[described["output"]], block.tensor))
    if not pairs:
        return [None] * len(leaves)
    return list(torch.autograd.grad([o for o, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True))


def _same(before: torch.Tensor, after: torch.Tensor) -> bool:
    return bool(((before == after) | (before != before)).all())


def _same_storage(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.numel() > 0 and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


if __name__ == "__main__":
    descriptor, name, workspace, device = sys.argv[1:]
    serve(Connection(int(descriptor)), name, workspace or None, device)
