"""The files of an approved profile: Liger's layout, formatted in the workspace's style."""

from __future__ import annotations

from tigon.workspace import exports
from tigon.workspace.layout import FUNCTIONAL, OPS_INIT, TRANSFORMERS_INIT, KernelPaths, Workspace
from tigon.workspace.render import KernelNames, render_benchmark, render_module, render_unit_test
from tigon.workspace.style import CannotFormat, format_source
from tigon.workspace.write import PlannedFile
from tigon_tools.schema.generate import GenerateResult
from tigon_tools.schema.reference import Reference


def plan_files(
    workspace: Workspace, names: KernelNames, generated: GenerateResult, reference: Reference
) -> list[PlannedFile]:
    """Four new files and three edited ones, in the order a reviewer reads them.

    Raises:
        CannotEdit: an existing file is not as expected, or has another thing of that name.
        CannotFormat: ruff is missing, or what was generated is not valid Python. Nothing is imported to find out.
    """
    facts = generated.facts
    paths = KernelPaths.of(names.operation_name)

    def new(path: str, text: str, *, complete: bool = True, optional: bool = False) -> PlannedFile:
        formatted = format_source(text, path, workspace.root)
        _check_compiles(path, formatted)
        return PlannedFile(path, formatted, False, complete, optional)

    return [
        new(paths.ops, generated.ops_source, complete=generated.complete),
        _edit(OPS_INIT, exports.add_ops_exports(workspace.read(OPS_INIT), names.operation_name, generated.exports)),
        new(paths.module, render_module(names, facts)),
        _edit(
            TRANSFORMERS_INIT,
            exports.add_module_export(workspace.read(TRANSFORMERS_INIT), names.operation_name, names.module_class),
        ),
        _edit(
            FUNCTIONAL,
            exports.add_functional(
                workspace.read(FUNCTIONAL),
                names.function_class,
                names.functional_name,
                generated.signature,
                generated.call_arguments,
            ),
        ),
        new(paths.test, render_unit_test(names, facts, reference), optional=True),
        new(paths.benchmark, render_benchmark(names, facts, reference), optional=True),
    ]


def _check_compiles(path: str, text: str) -> None:
    """What a formatter lets pass, as an argument that is named `self` beside the method's own."""
    try:
        compile(text, path, "exec", dont_inherit=True)
    except SyntaxError as problem:
        line = (problem.text or "").strip()
        raise CannotFormat(f"{path} would not be valid Python ({problem.msg}: `{line}`).") from None


def _edit(path: str, text: str) -> PlannedFile:
    return PlannedFile(path, text, edit=True)


def planned_paths(operation_name: str) -> tuple[str, ...]:
    """Every file a task may touch."""
    paths = KernelPaths.of(operation_name)
    return (paths.ops, OPS_INIT, paths.module, TRANSFORMERS_INIT, FUNCTIONAL, paths.test, paths.benchmark)
