"""Exports a model's `forward` as a program of ATen operators."""

import contextlib
import re
import warnings as python_warnings

import torch

from tilepilot_export.advice import untraceable
from tilepilot_export.collection import no_collection
from tilepilot_export.errors import ExportError, first_line, line_in
from tilepilot_export.kept import Form, as_after, full_name, goes_on, watched
from tilepilot_export.recorded import recorded_contiguous, recorded_data
from tilepilot_export.resolved import resolved, without_value_checks


def traced(path, model, inputs):
    """(exported program, tensors that forward assigns, attributes that it changes)"""
    with no_collection(), contextlib.suppress(ImportError):
        import torch.export._trace  # where the first export spends most of its time, if it is not loaded yet
    with python_warnings.catch_warnings(record=True) as caught:
        python_warnings.simplefilter("always")
        try:
            with (torch.no_grad(), recorded_contiguous(), recorded_data(), without_value_checks(),
                  watched(model) as kept):
                program = resolved(torch.export.export(model, tuple(inputs), strict=False))
        except ExportError:
            raise
        except Exception as error:
            raise export_failure(path, error) from error
    assigned = {name for warning in caught if "assigned during export" in str(warning.message)
                for name in re.findall(r"self\.([\w.\[\]]+)", str(warning.message)) if "_flat_weights" not in name}
    return program, assigned, kept.changed


def made_buffers(model, names, changed):
    """Registers tensors in attributes of these full names as buffers, if `forward` leaves each with the form that it
    finds it in: those are the state of a recurrence. Returns whether it did."""
    modules = dict(model.named_modules())
    found = []
    for name in names:
        path, _, attribute = name.rpartition(".")
        module = modules.get(path)
        tensor = vars(module).get(attribute) if module is not None else None
        after = changed.get((path, attribute))
        if not isinstance(tensor, torch.Tensor) or not isinstance(after, Form) or not after.is_like(tensor):
            return False
        found.append((module, attribute, tensor))
    for module, attribute, tensor in found:
        delattr(module, attribute)
        module.register_buffer(attribute, tensor)
    return bool(found)


def export_program(path, model, inputs, warnings):
    """(exported program, names of attributes that have become buffers of `model`, as its next call reads them)"""
    program, assigned, changed = traced(path, model, inputs)
    constants = {spec.target for spec in program.graph_signature.input_specs if spec.kind.name == "CONSTANT_TENSOR"}
    read = sorted(assigned & constants)
    buffers = []
    if read and made_buffers(model, read, changed):
        buffers, read = read, []
        warnings += [f"`forward` changes `self.{name}`, which its next call reads: it is taken for a buffer, and a "
                    "program has to keep it as the model does" for name in buffers]
        program, assigned, changed = traced(path, model, inputs)
    names = sorted(assigned | {full_name(*key) for key in changed})
    if changed and not read:
        with as_after(model, changed):
            again = traced(path, model, inputs)[0]
        if again.graph_module.code != program.graph_module.code and goes_on(model, inputs):
            read = sorted(full_name(*key) for key in changed)
    if read:
        raise ExportError("keeps_state", f"`forward` changes `self.{read[0]}`, which is no buffer, and its next call "
                          "computes something else", hint="keep it in a buffer (`register_buffer`), as a tensor that "
                          "`forward` changes in place")
    warnings += [f"`forward` assigns `self.{name}`, which is not a buffer: each call is taken as the first"
                 for name in names]
    return program, buffers


def export_failure(path, error):
    text = str(error)
    line = line_in(path, error)
    if not line:
        frames = re.findall(r'File "(.+?)", line (\d+)', text)
        line = next((int(number) for file, number in reversed(frames) if file == path), 0)
    name = type(error).__name__
    known = untraceable(error)
    if known:
        return ExportError("data_dependent", f"the model cannot be exported: {known[0]}", line, known[1])
    if "data-dependent" in text or "Unbacked" in text or "GuardOnDataDependent" in name:
        message = "the model cannot be exported: a branch, a loop or a size depends on tensor values"
        hint = "use `torch.where`, masks or fixed sizes instead of Python control flow on tensor values"
        return ExportError("data_dependent", message, line, hint)
    op = re.search(r"(aten[.:]+[\w.]+|torch\.ops\.[\w.]+)", text)
    subject = f"at `{op.group(1)}`: " if op else ""
    return ExportError("export_failed", f"the model cannot be exported: {subject}`{name}`: {first_line(error)}", line,
                       "check that `Model(*get_init_inputs())(*get_inputs())` runs under `torch.no_grad()`; "
                       "`torch.export` must be able to trace it")
