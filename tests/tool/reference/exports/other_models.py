"""Small models of tables, graphs and fields with their losses, to be exported.

Every function returns a module whose result is the loss and a dict of its example inputs.
"""

import torch

from language_models import Loss, functional

ROWS = 6


class Recommender(torch.nn.Module):
    """DLRM: bags of ids of each feature, numbers, and the products of all pairs of vectors."""

    def __init__(self, width=8, sizes=(20, 11, 7)):
        super().__init__()
        self.bags = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(size, width, mode=mode)
            for size, mode in zip(sizes, ("sum", "mean", "sum")))
        self.numbers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(),
                                           torch.nn.Linear(16, width), torch.nn.ReLU())
        self.top = torch.nn.Sequential(torch.nn.Linear(width + 6, 16), torch.nn.ReLU(),
                                       torch.nn.Linear(16, 1))

    def forward(self, numbers, ids):
        dense = self.numbers(numbers)
        vectors = [dense] + [bag(ids[:, i]) for i, bag in enumerate(self.bags)]
        stacked = torch.stack(vectors, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        rows, columns = torch.tril_indices(4, 4, offset=-1)
        return self.top(torch.cat([dense, products[:, rows, columns]], 1)).squeeze(1)


def recommender():
    def loss(m, numbers, ids, clicked):
        probability = torch.sigmoid(m(numbers, ids))
        return functional.binary_cross_entropy(probability, clicked)
    return Loss(Recommender(), loss), {
        "numbers": torch.rand(ROWS, 4), "ids": torch.randint(7, (ROWS, 3, 2)),
        "clicked": torch.randint(2, (ROWS,)).float()}


class GraphNetwork(torch.nn.Module):
    """Messages along edges, added, averaged and maximised at their targets; edges that vary."""

    def __init__(self, width=8):
        super().__init__()
        self.embed = torch.nn.Linear(3, width)
        self.messages = torch.nn.ModuleList(torch.nn.Linear(2 * width, width) for _ in range(2))
        self.updates = torch.nn.ModuleList(torch.nn.Linear(3 * width, width) for _ in range(2))
        self.head = torch.nn.Linear(width, 2)

    def forward(self, nodes, edges, graph_of_node):
        x = self.embed(nodes)
        source, target = edges
        for message, update in zip(self.messages, self.updates):
            m = functional.elu(message(torch.cat([x[source], x[target]], -1)))
            total = torch.zeros_like(x).index_add(0, target, m)
            degree = torch.zeros_like(x[:, 0]).scatter_add(0, target, torch.ones_like(m[:, 0]))
            mean = total / degree.clamp(min=1).unsqueeze(-1)
            largest = torch.zeros_like(x).scatter_reduce(
                0, target.unsqueeze(-1).expand_as(m), m, "amax", include_self=True)
            x = x + torch.tanh(update(torch.cat([x, mean, largest], -1)))
        pooled = torch.zeros(3, x.shape[1], dtype=x.dtype).index_add(0, graph_of_node, x)
        return self.head(pooled)


def graph_network():
    def loss(m, nodes, edges, graph_of_node, labels):
        return functional.multi_margin_loss(m(nodes, edges, graph_of_node), labels)
    return Loss(GraphNetwork(), loss), {
        "nodes": torch.randn(9, 3), "edges": torch.randint(9, (2, 20)),
        "graph_of_node": torch.arange(9) // 3, "labels": torch.tensor([0, 1, 0])}


class GraphAttention(torch.nn.Module):
    """A softmax over the edges of each node, by index_put and a gather of its sums."""

    def __init__(self, width=8):
        super().__init__()
        self.value = torch.nn.Linear(3, width)
        self.score = torch.nn.Parameter(torch.randn(2 * width) * 0.3)
        self.slope = torch.nn.PReLU()
        self.head = torch.nn.Linear(width, 1)

    def forward(self, nodes, edges):
        v = self.value(nodes)
        source, target = edges
        e = self.slope(torch.cat([v[source], v[target]], -1) @ self.score)
        e = torch.exp(e - e.detach().max())
        total = torch.full_like(v[:, 0], 1e-6).index_put((target,), e, accumulate=True)
        weight = e / total.index_select(0, target)
        out = torch.zeros_like(v).index_put((target,), weight.unsqueeze(-1) * v[source],
                                            accumulate=True)
        return self.head(functional.softsign(out)).squeeze(-1)


def graph_attention():
    def loss(m, nodes, edges, targets):
        return functional.huber_loss(m(nodes, edges), targets, delta=0.7)
    return Loss(GraphAttention(), loss), {
        "nodes": torch.randn(9, 3), "edges": torch.randint(9, (2, 20)),
        "targets": torch.randn(9)}


class Experts(torch.nn.Module):
    """A mixture whose tokens go to the best two of four experts, all of which are computed."""

    def __init__(self, width=8, experts=4):
        super().__init__()
        self.router = torch.nn.Linear(width, experts, bias=False)
        self.up = torch.nn.Parameter(torch.randn(experts, width, 12) * 0.3)
        self.down = torch.nn.Parameter(torch.randn(experts, 12, width) * 0.3)

    def forward(self, x):
        scores = self.router(x)
        best, chosen = scores.topk(2, dim=-1)
        gates = torch.zeros_like(scores).scatter(-1, chosen, best.softmax(-1))
        hidden = functional.gelu(torch.einsum("nd,edh->neh", x, self.up), approximate="tanh")
        y = torch.einsum("neh,ehd,ne->nd", hidden, self.down, gates)
        load = functional.one_hot(chosen, 4).sum(1).to(x.dtype).mean(0)
        return y, 4 * (load * scores.softmax(-1).mean(0)).sum()


def experts():
    def loss(m, x, y):
        found, balance = m(x)
        return functional.smooth_l1_loss(found, y) + 0.01 * balance
    return Loss(Experts(), loss), {"x": torch.randn(12, 8), "y": torch.randn(12, 8)}


class TemporalNetwork(torch.nn.Module):
    """Causal dilated convolutions with weight norm over a series, cumulative sums, quantiles."""

    def __init__(self):
        super().__init__()
        norm = torch.nn.utils.parametrizations.weight_norm
        self.first = norm(torch.nn.Conv1d(2, 8, 3))
        self.second = norm(torch.nn.Conv1d(8, 8, 3, dilation=2, groups=2))
        self.norm = torch.nn.InstanceNorm1d(8, affine=True)
        self.head = torch.nn.Conv1d(8, 3, 1)

    def forward(self, x):
        y = functional.glu(torch.cat([x, x.cumsum(-1)], 1).tile(1, 1, 1), dim=1)
        y = functional.mish(self.first(functional.pad(y, (2, 0))))
        y = self.norm(self.second(functional.pad(y, (4, 0), mode="replicate")))
        return self.head(functional.softplus(y))


def temporal_network():
    def loss(m, x, y):
        error = y - m(x)
        quantiles = torch.tensor([0.1, 0.5, 0.9], dtype=x.dtype)[:, None]
        return torch.maximum(quantiles * error, (quantiles - 1) * error).mean()
    return Loss(TemporalNetwork(), loss), {"x": torch.randn(ROWS, 2, 12),
                                           "y": torch.randn(ROWS, 1, 12)}


class RadianceField(torch.nn.Module):
    """Encoded positions, densities, and colours blended along rays."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(24, 16), torch.nn.Softplus(beta=2.0),
                                        torch.nn.Linear(16, 4))

    def forward(self, origins, directions):
        depth = torch.linspace(0.5, 2.0, 6, dtype=origins.dtype)
        points = origins[:, None] + directions[:, None] * depth[:, None]
        angles = points[..., None] * 2.0 ** torch.arange(4, dtype=points.dtype)
        encoded = torch.stack([angles.sin(), angles.cos()], -1).flatten(2)
        colour, density = self.body(encoded).split([3, 1], -1)
        opacity = 1 - torch.exp(-functional.relu(density.squeeze(-1)) * 0.3)
        passed = torch.log(1 - opacity + 1e-6).cumsum(1).exp().roll(1, 1)
        first = torch.zeros(6, dtype=torch.bool)
        first[0] = True
        passed = passed.masked_fill(first, 1.0)
        return ((opacity * passed)[..., None] * colour.sigmoid()).sum(1)


def radiance_field():
    def loss(m, origins, directions, colours):
        return (m(origins, directions) - colours).square().mean()
    return Loss(RadianceField(), loss), {
        "origins": torch.randn(ROWS, 3), "directions": functional.normalize(torch.randn(ROWS, 3)),
        "colours": torch.rand(ROWS, 3)}


class FourierOperator(torch.nn.Module):
    """A convolution by the transform of a signal: the lowest frequencies have weights."""

    def __init__(self, width=4, modes=3):
        super().__init__()
        self.lift = torch.nn.Linear(2, width)
        self.real = torch.nn.Parameter(torch.randn(width, width, modes) * 0.2)
        self.imaginary = torch.nn.Parameter(torch.randn(width, width, modes) * 0.2)
        self.local = torch.nn.Conv1d(width, width, 1)
        self.project = torch.nn.Linear(width, 1)
        self.modes = modes

    def forward(self, x):
        h = self.lift(x).transpose(1, 2)
        spectrum = torch.view_as_real(torch.fft.rfft(h))
        real, imaginary = spectrum[:, :, :self.modes].unbind(-1)
        mix = "bim,iom->bom"
        new_real = torch.einsum(mix, real, self.real) - torch.einsum(mix, imaginary, self.imaginary)
        new_imaginary = (torch.einsum(mix, real, self.imaginary) +
                         torch.einsum(mix, imaginary, self.real))
        mixed = torch.stack([new_real, new_imaginary], -1)
        padded = functional.pad(mixed, (0, 0, 0, h.shape[-1] // 2 + 1 - self.modes))
        back = torch.fft.irfft(torch.view_as_complex(padded), n=h.shape[-1])
        return self.project(functional.gelu(back + self.local(h)).transpose(1, 2))


def fourier_operator():
    def loss(m, x, y):
        difference = torch.linalg.vector_norm(m(x) - y, dim=(1, 2))
        return (difference / torch.linalg.vector_norm(y, dim=(1, 2))).mean()
    return Loss(FourierOperator(), loss), {"x": torch.randn(ROWS, 12, 2),
                                           "y": torch.randn(ROWS, 12, 1)}


def metric_learning():
    """Distances of all pairs, the hardest of each anchor, and the largest margin."""
    class Embedder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Hardswish(),
                                            torch.nn.LayerNorm(16), torch.nn.Linear(16, 5))

        def forward(self, x):
            return functional.normalize(self.body(x), dim=-1)

    def loss(m, x, labels):
        e = m(x)
        distances = torch.cdist(e, e + 1e-3)
        same = labels[:, None] == labels[None, :]
        near = distances.masked_fill(~same, -torch.inf).amax(1)
        far = distances.masked_fill(same, torch.inf).amin(1)
        cosine = functional.cosine_similarity(e[0::2], e[1::2])
        return functional.relu(near - far + 0.5).mean() + 0.1 * cosine.logsumexp(0)
    return Loss(Embedder(), loss), {"x": torch.randn(8, 6),
                                    "labels": torch.tensor([0, 1, 0, 1, 2, 2, 0, 1])}


MODELS = [recommender, graph_network, graph_attention, experts, temporal_network, radiance_field,
          fourier_operator, metric_learning]
