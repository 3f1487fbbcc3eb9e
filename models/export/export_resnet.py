"""Exports a ResNet of torchvision, with its loss, as an ONNX training graph.

    export_resnet.py resnet18 --classes 10 --size 64 --batch 32 -o resnet18.onnx

The inputs are x [batch, 3, size, size] and labels [batch]. The TorchScript exporter is used: it
keeps BatchNormalization in training mode. Needs torch and torchvision.
"""

import argparse

import torch
import torchvision

from training_graph import export_training_graph


class ClassificationLoss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        return torch.nn.functional.cross_entropy(self.model(x), labels)


def main():
    names = [name for name in torchvision.models.list_models() if "resne" in name]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=names)
    parser.add_argument("-o", dest="output", required=True, help="ONNX file to write")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    model = torchvision.models.get_model(arguments.model, num_classes=arguments.classes)
    inputs = {"x": torch.randn(arguments.batch, 3, arguments.size, arguments.size),
              "labels": torch.randint(arguments.classes, (arguments.batch,))}
    export_training_graph(ClassificationLoss(model), inputs, arguments.output, "torchscript")


if __name__ == "__main__":
    main()
