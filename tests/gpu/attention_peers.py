"""The attention of cuDNN and FlashAttention-2 through PyTorch, measured as gpu_attention_bench does."""

import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def seconds_per_start(start, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        start()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3 / count


def measure(batch, heads, sequence, size, causal, rounds=3):
    packed = torch.rand(batch, sequence, 3, heads, size, device="cuda") * 4 - 2
    q, k, v = (x.detach().requires_grad_() for x in packed.bfloat16().permute(2, 0, 3, 1, 4))
    gradient = (torch.rand(batch, heads, sequence, size, device="cuda") * 4 - 2).bfloat16()
    teraflop = (2e-12 if causal else 4e-12) * batch * heads * sequence * sequence * size
    backends = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention-2": SDPBackend.FLASH_ATTENTION}
    figures = {}
    for _ in range(rounds):
        for name, backend in backends.items():
            with sdpa_kernel(backend):
                forward = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal)
                output = forward()
                backward = lambda: torch.autograd.grad(output, (q, k, v), gradient,
                                                       retain_graph=True)
                record(figures, name, forward, teraflop)
                record(figures, name + " gradient", backward, 2.5 * teraflop)
    for name, (bursts, sustained) in figures.items():
        print(f"{batch} x {heads} x {sequence} x {size}{' causal' if causal else ''}  {name:26} "
              f"{statistics.median(bursts):5.0f} {statistics.median(sustained):5.0f}", flush=True)


def record(figures, name, start, teraflop):
    bursts, sustained = figures.setdefault(name, ([], []))
    start()
    torch.cuda.synchronize()
    time.sleep(0.02)
    first = seconds_per_start(start, 2)
    starts_in = lambda seconds: max(2, int(seconds / first))
    bursts.append(teraflop / seconds_per_start(start, starts_in(5e-3)))
    seconds_per_start(start, starts_in(50e-3))
    sustained.append(teraflop / seconds_per_start(start, starts_in(80e-3)))


measure(32, 12, 1024, 64, True)
measure(16, 16, 1024, 128, True)
measure(8, 12, 2048, 64, False)
