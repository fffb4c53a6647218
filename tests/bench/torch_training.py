"""The quickstart's training step as one would write it in PyTorch: the model of core/model, AdamW, and quantile
balancing from a histogram of required biases. Only for speed: initial values and tokens are others."""
import math


def training(torch, scenario):
    """A function that trains one step. Experts run one by one, or all on all tokens, whichever is faster here."""
    nn, functional = torch.nn, torch.nn.functional
    model, tokens, run = scenario["model"], scenario["tokens"], scenario["training"]
    d, latent, experts, top_k = (model[name] for name in ("hidden", "latent", "routed_experts", "top_k"))
    inner, shared_inner = model["expert_inner"], model["shared_inner"]
    vocabulary, length = tokens["vocabulary"], tokens["sequence_length"]
    bins = 1000

    class RmsNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.gain

    def capped(x, cap):
        return cap * torch.tanh(x / cap)

    def situ(gate, up):
        return capped(gate, 4.0) * torch.sigmoid(gate) * capped(up, 25.0)

    def weight(*shape):
        return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-1]))

    class Moe(nn.Module):
        one_by_one = True

        def __init__(self):
            super().__init__()
            self.router = weight(experts, d)
            self.down, self.up, self.norm = weight(latent, d), weight(d, latent), RmsNorm(latent)
            self.w1, self.w3 = weight(experts, inner, latent), weight(experts, inner, latent)
            self.w2 = weight(experts, latent, inner)
            self.s1, self.s3, self.s2 = weight(shared_inner, d), weight(shared_inner, d), weight(d, shared_inner)
            self.register_buffer("bias", torch.zeros(experts))
            self.register_buffer("counts", torch.zeros(experts * bins, dtype=torch.int64))
            self.register_buffer("loads", torch.zeros(experts, dtype=torch.int64))

        def forward(self, x):
            scores = torch.sigmoid(x @ self.router.t())
            with torch.no_grad():
                top = torch.topk(scores + self.bias, top_k + 1, dim=1)
                chosen = top.indices[:, :top_k]
                self.observe(scores, top.values[:, top_k], chosen)
            weights = scores.gather(1, chosen)
            weights = weights / (weights.sum(1, keepdim=True) + 1e-20)
            z = x @ self.down.t()
            routed = self.experts_one_by_one(z, chosen, weights) if self.one_by_one \
                else self.experts_at_once(z, chosen, weights)
            shared = situ(x @ self.s1.t(), x @ self.s3.t()) @ self.s2.t()
            return shared + self.norm(routed) @ self.up.t()

        def experts_one_by_one(self, z, chosen, weights):
            out = torch.zeros_like(z)
            for j in range(experts):
                token, slot = (chosen == j).nonzero(as_tuple=True)
                if len(token) == 0:
                    continue
                rows = z[token]
                hidden = situ(rows @ self.w1[j].t(), rows @ self.w3[j].t())
                out = out.index_add(0, token, hidden @ self.w2[j].t() * weights[token, slot, None])
            return out

        def experts_at_once(self, z, chosen, weights):
            dense = torch.zeros(len(z), experts).scatter(1, chosen, weights)
            hidden = situ(torch.einsum("tl,eil->eti", z, self.w1), torch.einsum("tl,eil->eti", z, self.w3))
            return torch.einsum("eti,eli,te->tl", hidden, self.w2, dense)

        def range(self):
            return float(self.bias.min()) - 1.0, float(self.bias.max()) + 1.0

        def observe(self, scores, cutoffs, chosen):
            low, high = self.range()
            places = ((cutoffs[:, None] - scores - low) * (bins / (high - low))).floor().clamp_(0, bins - 1).long()
            places += torch.arange(experts)[None, :] * bins
            self.counts += torch.bincount(places.reshape(-1), minlength=experts * bins)
            self.loads += torch.bincount(chosen.reshape(-1), minlength=experts)

        def balance(self):
            low, high = self.range()
            counts = self.counts.view(experts, bins)
            rank = counts[0].sum() * top_k / experts
            found = (counts.cumsum(1) > rank).int().argmax(1)
            bias = low + (found + 0.5) * (high - low) / bins
            self.bias = bias - bias.mean()
            self.counts.zero_()
            self.loads.zero_()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = weight(vocabulary, d)
            self.norms = nn.ModuleList(RmsNorm(d) for _ in range(model["layers"]))
            self.moes = nn.ModuleList(Moe() for _ in range(model["layers"]))
            self.norm, self.output = RmsNorm(d), weight(vocabulary, d)

        def forward(self, inputs):
            x = functional.embedding(inputs, self.embedding) + model["embedding_offset"]
            for norm, moe in zip(self.norms, self.moes):
                x = x + moe(norm(x))
            return self.norm(x) @ self.output.t()

    network = Model()
    optimizer = torch.optim.AdamW(network.parameters(), lr=run["optimizer"]["learning_rate"], weight_decay=0.0)
    rows = run["sequences"] * length

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(run["micro_batches"]):
            ids = torch.randint(vocabulary, (rows + 1,))
            loss = functional.cross_entropy(network(ids[:-1]), ids[1:]) / run["micro_batches"]
            loss.backward()
        optimizer.step()
        with torch.no_grad():
            for moe in network.moes:
                moe.balance()

    def way(one_by_one):
        def train(steps):
            Moe.one_by_one = one_by_one
            for _ in range(steps):
                step()
        return train

    return way(True), way(False)
