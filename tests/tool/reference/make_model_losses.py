"""Trains the models of model_cases.py in PyTorch and writes their losses, model_losses.json.

The modules are those of transformers and torchvision, in double precision. Weights go in by name,
so it also checks that sgtc-model names them like the published checkpoints. SGTC_MODEL names
sgtc-model. The transformers of tests/gpu/torch_models.py must have the same losses. Needs torch,
transformers and torchvision.
"""

import json
import pathlib
import sys
import tempfile

import torch
import torchvision
import transformers

import model_cases

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "gpu"))
import torch_models  # noqa: E402

functional = torch.nn.functional
# transformers 5 renamed the layers of ViT; the published checkpoints keep the names on the left.
RENAMED = {"vit.encoder.layer": "vit.layers", "attention.attention.query": "attention.q_proj",
           "attention.attention.key": "attention.k_proj",
           "attention.attention.value": "attention.v_proj",
           "attention.output.dense": "attention.o_proj", "intermediate.dense": "mlp.fc1",
           "output.dense": "mlp.fc2"}
# In checkpoints, but not trained or another name of a tensor that is.
EXTRA = ("num_batches_tracked", "position_ids", "lm_head.weight", "cls.predictions.decoder.weight",
         "cls.predictions.decoder.bias")


def resnet(command, options):
    blocks = [int(count) for count in options["--blocks"].split(",")]
    kinds = torchvision.models.resnet
    bottleneck = command == "resnet50"
    module = kinds.ResNet(kinds.Bottleneck if bottleneck else kinds.BasicBlock,
                          (blocks + [1, 1])[:4], num_classes=options["--classes"])
    # torchvision's class has four stages of a width of 64: the first ones are made anew, narrower.
    width, channels = options["--width"], options.get("--channels", 3)
    module.inplanes = width
    module.conv1 = torch.nn.Conv2d(channels, width, 7, 2, 3, bias=False)
    module.bn1 = torch.nn.BatchNorm2d(width)
    for i in range(4):
        kind = kinds.Bottleneck if bottleneck else kinds.BasicBlock
        layer = torch.nn.Identity() if i >= len(blocks) else module._make_layer(
            kind, width * 2**i, blocks[i], stride=1 if i == 0 else 2)
        setattr(module, f"layer{i + 1}", layer)
    module.fc = torch.nn.Linear(module.inplanes, options["--classes"])
    return module, lambda m, f: functional.cross_entropy(m(f["x"]), f["labels"])


def sizes(options):
    return {"num_hidden_layers": options["--layers"], "hidden_size": options["--width"],
            "num_attention_heads": options["--heads"], "intermediate_size": options["--hidden"],
            "attn_implementation": "eager"}


def llama(command, options):
    tied = command == "llama"
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    if tied:
        rope = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0,
                "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192}
    module = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **sizes(options), vocab_size=options["--vocab"], rope_parameters=rope, rms_norm_eps=1e-5,
        num_key_value_heads=options["--kv-heads"], tie_word_embeddings=tied,
        max_position_embeddings=131072))

    def loss(m, feeds):
        logits = m(input_ids=feeds["input_ids"], use_cache=False).logits
        return functional.cross_entropy(logits.flatten(0, 1), feeds["labels"].flatten())
    return module, loss


def bert(command, options):
    rows = "--classes" in options
    kind = transformers.BertForSequenceClassification if rows else transformers.BertForMaskedLM
    module = kind(transformers.BertConfig(
        **sizes(options), vocab_size=options["--vocab"], hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, max_position_embeddings=options["--context"],
        num_labels=options.get("--classes", 2), pad_token_id=None))

    def loss(m, feeds):
        feeds = dict(feeds)
        labels = feeds.pop("labels")
        logits = m(**feeds).logits
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.flatten())
    return module, loss


def vit(command, options):
    module = transformers.ViTForImageClassification(transformers.ViTConfig(
        **sizes(options), image_size=options["--size"], patch_size=options["--patch"],
        num_channels=3, num_labels=options["--classes"], hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0))
    return module, lambda m, f: functional.cross_entropy(m(f["x"]).logits, f["labels"])


def renamed(name):
    if name.startswith("vit."):
        for old, new in RENAMED.items():
            name = name.replace(old, new)
    return name


def load(module, weights):
    result = module.load_state_dict({renamed(n): torch.from_numpy(w) for n, w in weights.items()},
                                    strict=False)
    assert not result.unexpected_keys, result.unexpected_keys
    lost = [name for name in result.missing_keys if not name.endswith(EXTRA)]
    assert not lost, lost


def train(name, parameters, loss_of):
    """Losses of the steps; `loss_of` takes nothing."""
    kind = torch.optim.SGD if name == "sgd" else torch.optim.AdamW
    optimizer = kind(parameters, **model_cases.OPTIMIZERS[name])
    losses = []
    for _ in range(model_cases.STEPS):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_of(case, folder):
    command, options, optimizer = model_cases.CASES[case]
    build = {"resnet": resnet, "resnet50": resnet, "llama": llama, "llama-7b": llama, "bert": bert,
             "vit": vit}[command]
    module, loss_of = build(command, options)
    path = folder / "model.onnx"
    model_cases.write_model(case, path)
    weights = model_cases.make_weights(model_cases.shapes_of(path))
    load(module, weights)
    module.double().train()
    feeds = {name: torch.from_numpy(value) for name, value in model_cases.make_feeds(case).items()}
    feeds = {name: f.double() if f.is_floating_point() else f for name, f in feeds.items()}
    losses = train(optimizer, module.parameters(), lambda: loss_of(module, feeds))
    plain = torch_models.loss_of(command, options)
    if plain:
        leaves = {n: torch.from_numpy(w).double().requires_grad_() for n, w in weights.items()}
        again = train(optimizer, leaves.values(), lambda: plain(leaves, feeds))
        worst = max(abs(a - b) for a, b in zip(losses, again))
        assert worst < 1e-6, (case, losses, again)
    print(f"{case}: {losses[0]:.6f} to {losses[-1]:.6f}", flush=True)
    return losses


def main():
    with tempfile.TemporaryDirectory() as folder:
        losses = {case: losses_of(case, pathlib.Path(folder)) for case in model_cases.CASES}
    target = pathlib.Path(__file__).parent / "model_losses.json"
    target.write_text(json.dumps(losses, indent=1) + "\n")


if __name__ == "__main__":
    main()
