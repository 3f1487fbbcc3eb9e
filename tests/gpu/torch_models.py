"""Models of sgtc-model in plain PyTorch: functions from weights by name and feeds to the loss.

Sizes follow from the weights' shapes; what they do not tell is in `options`, which are those of
sgtc-model. Needs torch alone, of any version that has scaled_dot_product_attention.
"""

import math

import torch
from torch.nn import functional

ROTATION = {"llama": (500000.0, 32.0), "llama-1b": (500000.0, 32.0), "llama-7b": (10000.0, 1.0),
            "llama-8b": (500000.0, 1.0), "llama-70b": (500000.0, 1.0)}


def linear(w, name, x):
    return functional.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def norm(w, name, x, epsilon):
    scale = w[name + ".weight"]
    return functional.layer_norm(x, scale.shape, scale, w[name + ".bias"], epsilon)


def count(w, prefix):
    """How many layers prefix0, prefix1, … there are."""
    return 1 + max(int(name[len(prefix):].split(".")[0]) for name in w if name.startswith(prefix))


def attention(q, k, v, heads, kv_heads=None, **options):
    """On tensors [batch, seq, heads·depth]."""
    kv_heads = kv_heads or heads
    q, k, v = (x.unflatten(-1, (h, -1)).transpose(1, 2)
               for x, h in ((q, heads), (k, kv_heads), (v, kv_heads)))
    turn = options.pop("turn", None)
    if turn:
        q, k = turn(q), turn(k)
    if kv_heads != heads:
        k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in (k, v))
    mixed = functional.scaled_dot_product_attention(q, k, v, **options)
    return mixed.transpose(1, 2).flatten(2)


def token_loss(logits, labels):
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def gpt2(w, feeds, heads, **_):
    def conv1d(name, x):  # the checkpoints' weights are [inputs, outputs]
        return torch.addmm(w[name + ".bias"], x.flatten(0, 1), w[name + ".weight"]).unflatten(
            0, x.shape[:2])

    ids = feeds["input_ids"]
    x = w["wte.weight"][ids] + w["wpe.weight"][:ids.shape[1]]
    for i in range(count(w, "h.")):
        h = f"h.{i}."
        q, k, v = conv1d(h + "attn.c_attn", norm(w, h + "ln_1", x, 1e-5)).chunk(3, -1)
        x = x + conv1d(h + "attn.c_proj", attention(q, k, v, heads, is_causal=True))
        hidden = conv1d(h + "mlp.c_fc", norm(w, h + "ln_2", x, 1e-5))
        x = x + conv1d(h + "mlp.c_proj", functional.gelu(hidden, approximate="tanh"))
    x = norm(w, "ln_f", x, 1e-5)
    return token_loss(functional.linear(x, w["wte.weight"]), feeds["labels"])


def rotation(seq, depth, base, factor, like):
    """cos and sin [seq, depth]; slow pairs turn slower by the factor, as in Llama 3.1."""
    rates = base ** (-torch.arange(0, depth, 2, dtype=torch.float64) / depth)
    turns = 8192 * rates / (2 * math.pi)
    kept = ((turns - 1) / 3).clamp(0, 1)
    rates = (rates * (kept + (1 - kept) / factor)).float()
    angles = torch.outer(torch.arange(seq).float(), rates).repeat(1, 2)
    return angles.cos().to(like), angles.sin().to(like)


def llama(w, feeds, heads, kv_heads, rope, **_):
    def rms(name, x):
        scaled = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        return w[name + ".weight"] * scaled

    def turn(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    ids = feeds["input_ids"]
    embedding = w["model.embed_tokens.weight"]
    x = embedding[ids]
    cos, sin = rotation(ids.shape[1], x.shape[-1] // heads, *rope, x)
    for i in range(count(w, "model.layers.")):
        layer = f"model.layers.{i}."
        y = rms(layer + "input_layernorm", x)
        q, k, v = (linear(w, f"{layer}self_attn.{part}_proj", y) for part in "qkv")
        mixed = attention(q, k, v, heads, kv_heads, turn=turn, is_causal=True)
        x = x + linear(w, layer + "self_attn.o_proj", mixed)
        y = rms(layer + "post_attention_layernorm", x)
        gate = functional.silu(linear(w, layer + "mlp.gate_proj", y))
        x = x + linear(w, layer + "mlp.down_proj", gate * linear(w, layer + "mlp.up_proj", y))
    head = w.get("lm_head.weight", embedding)
    return token_loss(functional.linear(rms("model.norm", x), head), feeds["labels"])


def bert(w, feeds, heads, **_):
    ids, name = feeds["input_ids"], "bert.embeddings."
    x = (w[name + "word_embeddings.weight"][ids] +
         w[name + "token_type_embeddings.weight"][feeds["token_type_ids"]] +
         w[name + "position_embeddings.weight"][:ids.shape[1]])
    x = norm(w, name + "LayerNorm", x, 1e-12)
    seen = feeds["attention_mask"].bool()[:, None, None, :]
    for i in range(count(w, "bert.encoder.layer.")):
        layer = f"bert.encoder.layer.{i}."
        q, k, v = (linear(w, f"{layer}attention.self.{part}", x)
                   for part in ("query", "key", "value"))
        mixed = attention(q, k, v, heads, attn_mask=seen)
        x = norm(w, layer + "attention.output.LayerNorm",
                 x + linear(w, layer + "attention.output.dense", mixed), 1e-12)
        hidden = functional.gelu(linear(w, layer + "intermediate.dense", x))
        x = norm(w, layer + "output.LayerNorm", x + linear(w, layer + "output.dense", hidden),
                 1e-12)
    if "classifier.weight" in w:
        pooled = torch.tanh(linear(w, "bert.pooler.dense", x[:, 0]))
        return functional.cross_entropy(linear(w, "classifier", pooled), feeds["labels"])
    name = "cls.predictions."
    x = norm(w, name + "transform.LayerNorm",
             functional.gelu(linear(w, name + "transform.dense", x)), 1e-12)
    logits = functional.linear(x, w["bert.embeddings.word_embeddings.weight"], w[name + "bias"])
    return token_loss(logits, feeds["labels"])


def vit(w, feeds, heads, **_):
    name = "vit.embeddings."
    projection = w[name + "patch_embeddings.projection.weight"]
    patches = functional.conv2d(feeds["x"], projection,
                                w[name + "patch_embeddings.projection.bias"],
                                stride=projection.shape[2:]).flatten(2).transpose(1, 2)
    token = w[name + "cls_token"].expand(len(patches), -1, -1)
    x = torch.cat((token, patches.to(token.dtype)), 1) + w[name + "position_embeddings"]
    for i in range(count(w, "vit.encoder.layer.")):
        layer = f"vit.encoder.layer.{i}."
        y = norm(w, layer + "layernorm_before", x, 1e-12)
        q, k, v = (linear(w, f"{layer}attention.attention.{part}", y)
                   for part in ("query", "key", "value"))
        x = x + linear(w, layer + "attention.output.dense", attention(q, k, v, heads))
        hidden = functional.gelu(
            linear(w, layer + "intermediate.dense", norm(w, layer + "layernorm_after", x, 1e-12)))
        x = x + linear(w, layer + "output.dense", hidden)
    logits = linear(w, "classifier", norm(w, "vit.layernorm", x, 1e-12)[:, 0])
    return functional.cross_entropy(logits, feeds["labels"])


def mlp(w, feeds):
    x = feeds["x"]
    for i in range(count(w, "fc.")):
        x = functional.relu(linear(w, f"fc.{i}", x))
    return functional.cross_entropy(linear(w, "logits", x), feeds["labels"])


def batch_norm(w, name, x):
    return functional.batch_norm(x, w[name + ".running_mean"], w[name + ".running_var"],
                                 w[name + ".weight"], w[name + ".bias"], training=True)


def cnn(w, feeds):
    x = feeds["x"]
    for i in range(count(w, "block.")):
        block = f"block.{i}."
        x = functional.conv2d(x, w[block + "conv.weight"], padding=1)
        x = functional.max_pool2d(functional.relu(batch_norm(w, block + "bn", x)), 2)
    return functional.cross_entropy(linear(w, "logits", x.flatten(1)), feeds["labels"])


def resnet(w, feeds):
    def normalized(prefix, number, x, stride=1):
        weight = w[f"{prefix}conv{number}.weight"]
        x = functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        return batch_norm(w, f"{prefix}bn{number}", x)

    x = functional.relu(normalized("", 1, feeds["x"], stride=2))
    x = functional.max_pool2d(x, 3, 2, 1)
    for stage in range(1, 1 + count_stages(w)):
        for i in range(count(w, f"layer{stage}.")):
            block = f"layer{stage}.{i}."
            stride = 2 if stage > 1 and i == 0 else 1
            if block + "conv3.weight" in w:
                y = functional.relu(normalized(block, 1, x))
                y = functional.relu(normalized(block, 2, y, stride))
                y = normalized(block, 3, y)
            else:
                y = functional.relu(normalized(block, 1, x, stride))
                y = normalized(block, 2, y)
            if block + "downsample.0.weight" in w:
                x = functional.conv2d(x, w[block + "downsample.0.weight"], stride=stride)
                x = batch_norm(w, block + "downsample.1", x)
            x = functional.relu(x + y)
    return functional.cross_entropy(linear(w, "fc", x.mean((2, 3))), feeds["labels"])


def count_stages(w):
    """How many layer1.…, layer2.…, … there are."""
    return next(i for i in range(1, len(w)) if f"layer{i + 1}.0.conv1.weight" not in w)


def loss_of(command, options):
    """The loss of a model of sgtc-model as a function of weights and feeds; None: not written here.

    `options` maps options of sgtc-model to values; it needs --heads, and --kv-heads for Llama.
    """
    family = command.split("-")[0].rstrip("0123456789")
    function = {"mlp": mlp, "cnn": cnn, "resnet": resnet}.get(family)
    if function is not None:
        return function
    function = {"gpt": gpt2, "llama": llama, "bert": bert, "vit": vit}.get(family)
    if function is None:
        return None
    sizes = {"heads": int(options["--heads"])}
    if function is llama:
        sizes |= {"kv_heads": int(options["--kv-heads"]), "rope": ROTATION[command]}
    return lambda weights, feeds: function(weights, feeds, **sizes)
