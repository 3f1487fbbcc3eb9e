"""Exports a PyTorch module whose result is its loss as an ONNX training graph.

    from training_graph import export_training_graph
    export_training_graph(module, {"x": x, "labels": labels}, "model.onnx")

PyTorch has two exporters, and neither serves every model:
- `torchscript` traces the module in training mode. It refuses some newer models, such as GPT-2 of
  transformers 5.
- `dynamo` (torch.export) takes nearly all models, but turns BatchNormalization into its inference
  form, which could not be trained as written. It is refused here for modules with batch norm.
Needs torch and onnxscript.
"""

import warnings

import torch
from onnxscript import optimizer

SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"


def has_batch_norm(module):
    return any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in module.modules())


def check_loss(module, inputs):
    with torch.no_grad():
        loss = module(*inputs.values())
    if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
        found = list(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise ValueError(f"the module must return its loss as a scalar tensor, found {found}")


def export_torchscript(module, inputs, path, opset):
    torch.onnx.export(
        module, tuple(inputs.values()), path, input_names=list(inputs), output_names=["loss"],
        opset_version=opset or 17, training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False, dynamo=False)


def fold_shapes(model):
    """Folds what no parameter goes into.

    The exporter's own optimizer also folds parameters into constants and merges parameters that
    begin equal, such as biases of zeros: they would not be trained, or as one.
    """
    def should_fold(node):
        parameters = any(value is not None and value.is_initializer() and
                         value.dtype is not None and value.dtype.is_floating_point()
                         for value in node.inputs)
        return False if parameters else None

    optimizer.fold_constants(model, onnx_shape_inference=True, should_fold=should_fold)
    optimizer.remove_unused_nodes(model)


def forget_tied_names(model, module):
    """Leaves out of the exporter's record of parameters the second names of tied ones.

    Of a tensor with two names, such as GPT-2's embedding and output, the file holds one; a reader
    of the record would take the other for a parameter that was lost.
    """
    parameters = dict(module.named_parameters(remove_duplicate=False))
    held = {id(parameters[name]) for name in model.graph.initializers if name in parameters}
    tied = [f"target='{name}'" for name, parameter in parameters.items()
            if name not in model.graph.initializers and id(parameter) in held]
    properties = model.graph.metadata_props
    properties[SIGNATURE] = "\n".join(line for line in properties[SIGNATURE].splitlines()
                                      if not any(name in line for name in tied))


def export_dynamo(module, inputs, path, opset):
    if has_batch_norm(module):
        raise ValueError("the torch.export exporter freezes batch norm; use exporter='torchscript'")
    program = torch.onnx.export(
        module, tuple(inputs.values()), input_names=list(inputs), output_names=["loss"],
        opset_version=opset or 18, dynamo=True, optimize=False, verbose=False)
    fold_shapes(program.model)
    forget_tied_names(program.model, module)
    program.save(path, external_data=False)


def export_training_graph(module, inputs, path, exporter="auto", opset=None):
    """Writes `module`, in training mode and with its weights, to `path`.

    `inputs` maps the names of the graph's inputs to example tensors, in the order of the module's
    parameters; their shapes become the graph's, the first dimension is that of the micro-batch.
    `exporter` is torchscript, dynamo, or auto: torchscript for modules with batch norm, else
    dynamo.
    """
    module.train()
    check_loss(module, inputs)
    if exporter == "auto":
        exporter = "torchscript" if has_batch_norm(module) else "dynamo"
    exporters = {"torchscript": export_torchscript, "dynamo": export_dynamo}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both exporters advise against the training mode
        exporters[exporter](module, inputs, path, opset)
