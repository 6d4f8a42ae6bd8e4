"""`ModelNew` of a loaded program: its kernels where it was verified, its reference model everywhere else."""

import dataclasses
import functools
import json
import re

import torch
from torch import nn
from torch.autograd import forward_ad

from tilepilot.errors import ArgumentError, TilePilotError, warn
from tilepilot.targets import target_of_gpu

# Layers that compute something else in training than in evaluation.
_BY_MODE = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd, nn.modules.instancenorm._InstanceNorm,
            nn.RReLU)


class NotVerified(TilePilotError, RuntimeError):
    """A call that the program was not verified for, where the reference must not or cannot stand in."""


@dataclasses.dataclass
class Obstacle:
    """Why the kernels are not for a call."""

    kind: str
    why: str


@dataclasses.dataclass
class Verification:
    """What a program was verified against. It is read when the first call comes."""

    path: str
    text: str
    strict: bool
    evidence: object
    told: set = dataclasses.field(default_factory=set)
    gpu_targets: dict = dataclasses.field(default_factory=dict)  # by number of the GPU, as they were asked for

    @functools.cached_property
    def module(self):
        from tilepilot.loading import reference_module
        module = reference_module(self.evidence)
        for wanted in ("Model", "get_inputs"):
            if not hasattr(module, wanted):
                raise NotVerified(f"the model `{self.evidence.model[0]}` of `{self.path}` has no `{wanted}`")
        return module

    def gpu_target(self, number):
        if number not in self.gpu_targets:
            self.gpu_targets[number] = target_of_gpu(number)
        return self.gpu_targets[number]

    def __post_init__(self):
        certificate = json.loads(self.evidence.certificate or "{}")
        self.target = certificate.get("verdict", {}).get("target", "cpu")
        self.device_type = "cuda" if self.target.startswith("cuda") else "cpu"
        # Shape and dtype of each tensor, as the certificate says; empty: it does not.
        self.certified_inputs = [(tuple(row["shape"]), getattr(torch, row["dtype"], None))
                                 for row in certificate.get("reference", {}).get("inputs", [])]

    @functools.cached_property
    def model_inputs(self):
        """What the inputs look like that the model makes. Where they can be made without memory, they are."""
        with torch.random.fork_rng(devices=[]):
            try:
                with torch.device("meta"):
                    made = self.module.get_inputs()
            except (RuntimeError, NotImplementedError, TypeError, ValueError):
                made = self.module.get_inputs()
        return [_kind(value) for value in made]

    @functools.cached_property
    def model_reads_mode(self):
        """Whether the model's `forward` asks for the mode itself, as for torch.nn.functional.dropout."""
        return re.search(r"\.training\b", self.evidence.model[1]) is not None

    def fall_back(self, obstacle):
        """Raises, or says once for each kind of obstacle that the reference runs."""
        message = f"`{self.path}` was not verified for this call: {obstacle.why}"
        if self.strict:
            raise NotVerified(message)
        if obstacle.kind not in self.told:
            self.told.add(obstacle.kind)
            message += "; the reference model runs instead"
            if torch.compiler.is_dynamo_compiling():
                from torch._dynamo.comptime import comptime  # which takes seconds to import, but is there now
                comptime(_warn_while_tracing)
            else:
                warn(message)


def _warn_while_tracing(context):
    """In Dynamo's trace, where a call of `warn` would break the graph."""
    warn(context.get_local("message").as_python_constant())


def _make_reference_while_tracing(context):
    context.get_local("self")._i_will_not_complain_if_bc_breaks_VariableTracker().value._make_reference()


def _kind(value):
    """What must be equal between a verified input and a call's."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_kind, value))
    return value


def _described(kind):
    if isinstance(kind, tuple) and len(kind) == 2 and isinstance(kind[1], torch.dtype):
        return f"{str(kind[1]).removeprefix('torch.')} {tuple(kind[0])}"
    return repr(kind)


def _tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _fits(value, expected, device_type):
    """Whether a tensor is as the certificate says. This is asked before every call."""
    shape, dtype = expected
    return (isinstance(value, torch.Tensor) and value.shape == shape and value.dtype is dtype
            and value.is_contiguous() and value.device.type == device_type)


def _input_obstacle(verification, args, kwargs):
    """What of the inputs is none that the program was verified for; None: nothing."""
    if kwargs:
        return Obstacle("names", "its inputs are given by name")
    certified = verification.certified_inputs
    device_type = verification.device_type
    if certified and len(args) == len(certified) and all(_fits(value, expected, device_type)
                                                         for value, expected in zip(args, certified)):
        return _gpu_obstacle(verification, args)
    only_tensors = all(isinstance(value, torch.Tensor) for value in args)
    wanted = (only_tensors and certified) or verification.model_inputs
    if len(args) != len(wanted):
        return Obstacle("count", f"it has {len(args)} inputs, and not {len(wanted)}")
    for position, (value, expected) in enumerate(zip(args, wanted)):
        if (kind := _kind(value)) != expected:
            # In Dynamo's trace sizes may have no values yet.
            given = "" if torch.compiler.is_dynamo_compiling() else f"{_described(kind)}, and "
            return Obstacle("input", f"input {position} is {given}not {_described(expected)}")
    for tensor in _tensors(args):
        if tensor.device.type != device_type:
            return Obstacle("device", f"it was verified on `{verification.target}`, and an input is on "
                                      f"`{tensor.device}`")
        if not tensor.is_contiguous():
            return Obstacle("strides", "an input is not contiguous")
    return _gpu_obstacle(verification, args)


def _gpu_obstacle(verification, args):
    """On another kind of GPU the kernels are other code than what was verified."""
    if verification.device_type != "cuda":
        return None
    for number in {tensor.device.index for tensor in _tensors(args)}:
        if verification.gpu_target(number) != verification.target:
            return Obstacle("target", f"it was verified on `{verification.target}`, and an input is on a GPU that runs "
                                      f"the code of `{verification.gpu_target(number)}`")
    return None


def _has_layers_by_mode(model):
    return any(isinstance(layer, _BY_MODE) or isinstance(layer, (nn.RNNBase, nn.MultiheadAttention)) and layer.dropout > 0
               for layer in model.modules())


def _is_transformed():
    """Whether torch differentiates or maps a function by the rules of its operators, of which kernels have none."""
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


def _weight(model, name):
    """What a model has under the name of a weight: with a parametrization, what this computes."""
    for part in name.split("."):
        model = getattr(model, part, None)
    return model if isinstance(model, torch.Tensor) else None


def _weight_obstacle(model, verification):
    """What of the weights is other than when the model was made."""
    for name, dtype in model._tilepilot_dtypes.items():
        weight = _weight(model, name)
        if weight is None:
            continue
        if weight.dtype is not dtype:
            return Obstacle("weights", f"its weight `{name}` is {str(weight.dtype).removeprefix('torch.')}, and not "
                                       f"{str(dtype).removeprefix('torch.')}")
        if not weight.is_contiguous():
            return Obstacle("weights", f"its weight `{name}` is not contiguous")
        if weight.device.type != verification.device_type:
            return Obstacle("weights", f"it was verified on `{verification.target}`, and its weight `{name}` is on "
                                       f"`{weight.device}`")
    return None


def _obstacle(model, verification, args, kwargs):
    """Why the kernels are not for this call; None: they are."""
    if verification.target.split(":")[0] not in ("cpu", "cuda"):
        return Obstacle("target", f"it was verified on `{verification.target}`, and kernels run on a device here")
    if torch.is_autocast_enabled(verification.device_type):
        return Obstacle("autocast", "autocast is on")
    if not model.training and model._differs_by_mode():
        return Obstacle("mode", "the model is in evaluation mode, and was verified in training mode")
    if not torch.compiler.is_compiling() and _is_transformed():
        return Obstacle("transformed", "a transformation of torch.func or gradients in forward mode need its operators")
    return _input_obstacle(verification, args, kwargs)


class _WithReferenceGradient(torch.autograd.Function):
    """Kernels forward; backward through the reference, which runs again for it."""

    @staticmethod
    def forward(context, model, names, count, *tensors):
        context.model, context.names, context.count = model, names, count
        context.save_for_backward(*tensors)
        return model._with_kernels(*tensors[:count])

    @staticmethod
    def backward(context, *gradients):
        again = torch.is_grad_enabled()  # the gradient is to be differentiated, too
        # Views: what one saved tensor computes of another is not the reference's to differentiate.
        tensors = [tensor.view_as(tensor) if again and tensor.requires_grad
                   else tensor.detach().requires_grad_(tensor.requires_grad) for tensor in context.saved_tensors]
        with torch.enable_grad():
            inputs, parameters = tensors[:context.count], tensors[context.count:]
            outputs = context.model._with_reference(inputs, {}, dict(zip(context.names, parameters)))
        outputs = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
        wanted = [tensor for tensor in tensors if tensor.requires_grad]
        pairs = [(output, gradient) for output, gradient in zip(outputs, gradients)
                 if gradient is not None and output.requires_grad]
        found = iter(torch.autograd.grad([output for output, _ in pairs], wanted, [gradient for _, gradient in pairs],
                                         allow_unused=True, create_graph=again))
        return (None, None, None, *(next(found) if tensor.requires_grad else None for tensor in tensors))


def verified_class(made, verification):
    """`ModelNew` that decides for each call."""

    class ModelNew(made):
        __doc__ = made.__doc__

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._tilepilot_made_with = args, kwargs
            self._tilepilot_dtypes = {name: weight.dtype
                                      for name, weight in (*self.named_parameters(), *self.named_buffers())}

        def forward(self, *args, **kwargs):
            obstacle = _obstacle(self, verification, args, kwargs)
            if obstacle is None and torch.compiler.is_compiling():
                obstacle = _weight_obstacle(self, verification)  # no kernel is there yet that refuses them
            if obstacle is not None:
                verification.fall_back(obstacle)
                return self._with_reference(args, kwargs)
            try:
                if torch.is_grad_enabled() and self._wants_gradient(args):
                    return self._with_gradient(args)
                return super().forward(*args)
            except ArgumentError:
                obstacle = _weight_obstacle(self, verification)
                if obstacle is None:
                    raise
                verification.fall_back(obstacle)
                return self._with_reference(args, kwargs)

        def _differs_by_mode(self):
            """Asked for in evaluation mode: a program may have no layers for what its model has some for."""
            known = self.__dict__.get("_has_modes")
            if known is None:
                known = (_has_layers_by_mode(self) or verification.model_reads_mode
                         or _has_layers_by_mode(self._reference()))
                self.__dict__["_has_modes"] = known
            return known

        def _with_kernels(self, *args):
            return super().forward(*args)

        def _wants_gradient(self, args):
            return any(tensor.requires_grad for tensor in (*_tensors(args), *self.parameters()))

        def _with_gradient(self, args):
            by_reference = (torch.compiler.is_compiling() or any(True for _ in self.buffers())
                            or not all(isinstance(value, torch.Tensor) for value in args))
            if by_reference:
                return self._with_reference(args, {})
            named = {name: _weight(self, name) for name, _ in self._reference().named_parameters()}
            return _WithReferenceGradient.apply(self, tuple(named), len(args), *args, *named.values())

        def _reference(self):
            if torch.compiler.is_dynamo_compiling():
                from torch._dynamo.comptime import comptime
                comptime(_make_reference_while_tracing)
            else:
                self._make_reference()
            return self._reference_model.train(self.training)

        def _make_reference(self):
            if "_reference_model" in self.__dict__:
                return
            args, kwargs = self._tilepilot_made_with
            with torch.random.fork_rng(devices=[]), torch._C._DisableFuncTorch():
                reference = verification.module.Model(*args, **kwargs)
            self._check_weights(reference)
            self.__dict__["_reference_model"] = reference  # no child: its weights are not this model's

        def _check_weights(self, reference):
            for name, weight in reference.state_dict().items():
                own = _weight(self, name)
                if own is None or own.shape != weight.shape:
                    raise NotVerified(f"`{verification.path}` keeps no weight like `{name}` of its reference, which "
                                      "therefore cannot stand in for it")

        def _with_reference(self, args, kwargs, parameters=None):
            reference = self._reference()
            names = [name for name, _ in (*reference.named_parameters(), *reference.named_buffers())]
            own = {name: _weight(self, name) for name in names} | (parameters or {})
            return torch.func.functional_call(reference, {name: own[name] for name in names if own[name] is not None},
                                              tuple(args), kwargs)

        def __getstate__(self):
            state = self.__dict__.copy()
            state.pop("_reference_model", None)
            return state

        def __reduce_ex__(self, protocol):
            if type(self) is not ModelNew:  # a class that was derived from it, which has a module of its own
                return super().__reduce_ex__(protocol)
            from tilepilot.loading import restored
            origin = verification.path, verification.text, verification.strict, verification.evidence
            return restored, origin, self.__getstate__()

    # Dynamo compiles one code a few times only: each program has its own.
    ModelNew.forward.__code__ = ModelNew.forward.__code__.replace()
    ModelNew.__module__, ModelNew.__qualname__ = made.__module__, made.__qualname__
    return ModelNew
