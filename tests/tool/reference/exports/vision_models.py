"""Small models of images and sound, of torchvision, transformers and torch.nn, with their losses.

Every function returns a module whose result is the loss and a dict of its example inputs.
"""

from functools import partial

import torch
import torchvision
import transformers

from language_models import Loss, functional

BATCH = 4
CLASSES = 5
kinds = torchvision.models


def classification(model, size=32, smoothing=0.0):
    def loss(m, x, labels):
        return functional.cross_entropy(m(x), labels, label_smoothing=smoothing)
    return Loss(model, loss), {"x": torch.randn(BATCH, 3, size, size),
                               "labels": torch.randint(CLASSES, (BATCH,))}


def mobilenet_v3():
    block = partial(kinds.mobilenetv3.InvertedResidualConfig, width_mult=1.0)
    settings = [block(8, 3, 8, 8, True, "RE", 2, 1), block(8, 5, 24, 12, True, "HS", 2, 1),
                block(12, 5, 24, 12, False, "HS", 1, 1)]
    return classification(kinds.MobileNetV3(settings, 32, num_classes=CLASSES, dropout=0.0))


def efficientnet():
    block = partial(kinds.efficientnet.MBConvConfig, width_mult=1.0, depth_mult=1.0)
    settings = [block(1, 3, 1, 8, 8, 1), block(4, 5, 2, 8, 12, 2)]
    return classification(kinds.EfficientNet(
        settings, dropout=0.0, stochastic_depth_prob=0.0, num_classes=CLASSES, last_channel=32))


def convnext():
    block = kinds.convnext.CNBlockConfig
    return classification(kinds.ConvNeXt([block(8, 16, 1), block(16, None, 2)],
                                         layer_scale=0.5, num_classes=CLASSES))


def swin():
    return classification(kinds.SwinTransformer(
        patch_size=[2, 2], embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=[4, 4],
        stochastic_depth_prob=0.0, num_classes=CLASSES, mlp_ratio=2.0), size=16)


def swin_v2():
    return classification(kinds.SwinTransformer(
        patch_size=[2, 2], embed_dim=8, depths=[2, 1], num_heads=[1, 2], window_size=[4, 4],
        stochastic_depth_prob=0.0, num_classes=CLASSES, mlp_ratio=2.0,
        block=kinds.swin_transformer.SwinTransformerBlockV2,
        downsample_layer=kinds.swin_transformer.PatchMergingV2), size=16,
        smoothing=0.1)


def shufflenet():
    return classification(kinds.ShuffleNetV2([1, 1, 1], [8, 8, 16, 16, 24], num_classes=CLASSES))


def densenet():
    return classification(kinds.DenseNet(growth_rate=4, block_config=(2, 2), num_init_features=8,
                                         bn_size=2, num_classes=CLASSES))


def deeplab():
    """Dilated convolutions, pooling to one pixel and back, bilinear enlargement, ignored pixels."""
    class Segmenter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.ReLU6(),
                torch.nn.Conv2d(8, 8, 3, stride=2, padding=1), torch.nn.LeakyReLU(0.1))
            self.head = torchvision.models.segmentation.deeplabv3.ASPP(8, [2, 3], 8)
            self.head.project[3].p = 0.0
            self.last = torch.nn.Conv2d(8, CLASSES, 1)

        def forward(self, x):
            y = self.last(self.head(self.stem(x)))
            return functional.interpolate(y, size=x.shape[-2:], mode="bilinear",
                                          align_corners=False)

    def loss(m, x, labels):
        return functional.cross_entropy(m(x), labels, ignore_index=255)
    labels = torch.randint(CLASSES, (BATCH, 16, 16))
    labels[0, :3] = 255
    return Loss(Segmenter(), loss), {"x": torch.randn(BATCH, 3, 16, 16), "labels": labels}


class DiffusionUnet(torch.nn.Module):
    """A denoiser: group norm, time embedding, attention in the middle, skips, nearest upsampling."""

    def __init__(self, width=8):
        super().__init__()
        self.width = width
        self.time = torch.nn.Sequential(torch.nn.Linear(width, 16), torch.nn.SiLU(),
                                        torch.nn.Linear(16, 2 * width))
        self.first = torch.nn.Conv2d(1, width, 3, padding=1)
        self.down = torch.nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.norm = torch.nn.GroupNorm(4, 2 * width)
        self.attention = torch.nn.MultiheadAttention(2 * width, 2, batch_first=True)
        self.up = torch.nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.smooth = torch.nn.Conv2d(2 * width, width, 3, padding=1, padding_mode="reflect")
        self.last = torch.nn.Conv2d(width, 1, 3, padding=1, padding_mode="circular")

    def forward(self, x, time):
        half = self.width // 2
        frequencies = torch.exp(-torch.arange(half) * (4.0 / half)).to(x.dtype)
        angles = time[:, None].to(x.dtype) * frequencies
        embedded = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        a = functional.silu(self.first(x))
        b = functional.silu(self.norm(self.down(a)) + embedded[:, :, None, None])
        flat = b.flatten(2).transpose(1, 2)
        attended, _ = self.attention(flat, flat, flat, need_weights=False)
        b = b + attended.transpose(1, 2).reshape(b.shape)
        wide = functional.interpolate(functional.avg_pool2d(b, 2), scale_factor=2, mode="nearest")
        c = functional.silu(self.smooth(torch.cat([self.up(b + wide), a], 1)))
        return self.last(c)


def diffusion_unet():
    def loss(m, x, noise, time):
        keep = torch.cos(time.to(x.dtype) * 0.1)[:, None, None, None]
        noisy = keep * x + torch.sqrt(1 - keep**2) * noise
        return functional.mse_loss(m(noisy, time), noise)
    return Loss(DiffusionUnet(), loss), {
        "x": torch.randn(BATCH, 1, 8, 8), "noise": torch.randn(BATCH, 1, 8, 8),
        "time": torch.randint(1, 10, (BATCH,))}


def whisper_encoder():
    config = transformers.WhisperConfig(
        vocab_size=53, num_mel_bins=6, d_model=16, encoder_layers=2, encoder_attention_heads=2,
        encoder_ffn_dim=24, max_source_positions=12, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, num_hidden_layers=2)
    encoder = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    model = torch.nn.ModuleDict({"encoder": encoder, "head": torch.nn.Linear(16, CLASSES)})

    def loss(m, features, labels):
        states = m["encoder"](features).last_hidden_state
        return functional.cross_entropy(m["head"](states.mean(1)), labels)
    return Loss(model, loss), {"features": torch.randn(BATCH, 6, 24),
                               "labels": torch.randint(CLASSES, (BATCH,))}


def clip():
    """Two towers, the end of the text found by its largest token, a symmetric contrastive loss."""
    tower = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
             "num_attention_heads": 2}
    model = transformers.CLIPModel(transformers.CLIPConfig(
        text_config={**tower, "vocab_size": 53, "max_position_embeddings": 8, "eos_token_id": 2,
                     "bos_token_id": 0, "pad_token_id": 1, "projection_dim": 8},
        vision_config={**tower, "image_size": 16, "patch_size": 8, "projection_dim": 8},
        projection_dim=8))

    def loss(m, input_ids, pixels):
        return m(input_ids=input_ids, pixel_values=pixels, return_loss=True).loss
    return Loss(model, loss), {"input_ids": torch.randint(3, 53, (BATCH, 8)),
                               "pixels": torch.randn(BATCH, 3, 16, 16)}


MODELS = [mobilenet_v3, efficientnet, convnext, swin, swin_v2, shufflenet, densenet, deeplab,
          diffusion_unet, whisper_encoder, clip]
