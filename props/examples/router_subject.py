#!/usr/bin/env python3
"""A Mixture-of-Experts router, quantile balancer and load collector that speaks the subject protocol.

    ballast check --subject 'python3 router_subject.py'

Ballast writes one JSON object a line to stdin and reads one a line from stdout. Anything you print for
yourself goes to stderr. This file needs only Python's standard library: it is meant to be copied, and
its parts replaced by calls to your own code. With PyTorch, `Router.route` and `Balancer.observe` are
the two to replace first; adapting-pytorch.md goes through it.
"""

import hashlib
import json
import math
import sys
import traceback
from array import array

NAME = "plain Python example"
# What the file can do. Laws that need anything else are skipped, so leave out what you do not have.
CAPABILITIES = ["route", "balance", "collect", "metrics", "combine", "state", "mask", "recompute", "ranks"]


class Refused(Exception):
    """A request that cannot be carried out. Nothing has changed when it is raised."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def fp32(values):
    """Rounds every value to the nearest float32. Python computes in float64; as float32 results of
    single operations (+, -, *, /) on float32 operands, its rounded results are the right ones."""
    return array("f", values).tolist()


def decode(value):
    """A number of a request; JSON has none for NaN and the infinities, so they come as strings."""
    return float(value) if isinstance(value, str) else value


def encode(value):
    """A number of an answer."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def encode_rows(rows):
    return [[encode(value) for value in row] for row in rows]


# ---- Routing

def sigmoid(z):
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    power = math.exp(z)  # exp(-z) would overflow
    return power / (1.0 + power)


def softmax(row):
    if any(math.isnan(z) for z in row):
        return [math.nan] * len(row)
    largest = max(row)
    powers = [math.exp(z - largest) for z in row]
    total = math.fsum(powers)
    return [power / total for power in powers]


class Router:
    """From logits to choices and weights. Stateless; the biases belong to the balancer."""

    def __init__(self, model):
        self.experts = model["routed_experts"]
        self.top_k = model["top_k"]
        self.score = model["score"]
        self.renormalize = model["renormalize"]
        self.scale = decode(model["routed_scale"])

    def scores(self, logits):
        """The numbers that biases are added to."""
        if self.score == "sigmoid":
            return fp32(sigmoid(z) for z in logits)
        return fp32(softmax(logits)) if self.score == "softmax" else logits

    def route(self, logits, biases):
        """One token: its experts, best first; their weights; its raw scores; and its cutoff, the
        biased score of the best expert that was not chosen (None when all are)."""
        scores = self.scores(logits)
        biased = fp32(s + b for s, b in zip(scores, biases))
        # Larger first; equal values by index; a NaN after every number.
        order = sorted(range(self.experts), key=lambda j: (math.isnan(biased[j]), -biased[j], j))
        chosen = order[: self.top_k]
        cutoff = biased[order[self.top_k]] if self.top_k < self.experts else None
        return chosen, self.weights(logits, scores, chosen), scores, cutoff

    def weights(self, logits, scores, chosen):
        """Weights never see the biases: they help to choose an expert, not to mix its output in."""
        gates = fp32(softmax(logits)) if self.score == "logit" else scores
        weights = [gates[j] for j in chosen]
        if self.renormalize:
            total = sum(weights) + 1e-20
            weights = [w / total for w in weights]
        return fp32(w * self.scale for w in weights)


# ---- Balancing

class Balancer:
    """Quantile balancing of one layer. Between two updates it keeps, for every expert, how large its
    bias would have had to be for each token to just choose it: r = cutoff - score. The next bias is a
    quantile of those, minus the mean over experts."""

    def __init__(self, spec, experts, top_k):
        self.spec = spec
        self.experts = experts
        self.top_k = top_k
        self.biases = [0.0] * experts
        self.clear()

    def clear(self):
        """Forgets what was observed since the last update."""
        self.tokens = 0
        if self.spec["estimator"] == "exact":
            self.required = [[] for _ in range(self.experts)]  # r, of every token
        else:
            self.required = [{} for _ in range(self.experts)]  # counts of r, by bin

    def set_biases(self, biases):
        self.biases = fp32(biases)
        self.clear()

    def observe(self, scores, cutoff):
        """One token of a training forward. A token whose numbers are not finite tells nothing."""
        if self.spec["kind"] == "none" or cutoff is None:
            return
        required = fp32(cutoff - s for s in scores)
        if not all(map(math.isfinite, required)):
            return
        self.tokens += 1
        for j, r in enumerate(required):
            if self.spec["estimator"] == "exact":
                self.required[j].append(r)
            else:
                i = self.bin(r)
                self.required[j][i] = self.required[j].get(i, 0) + 1

    def covered(self):
        """What the histogram covers: with scores in [0, 1], r lies within 1 of the biases."""
        finite = [b for b in self.biases if math.isfinite(b)]
        low, high = fp32([min(finite) - 1.0, max(finite) + 1.0])
        return low, (high - low) / self.spec["bins"]

    def bin(self, r):
        low, width = self.covered()
        return min(max(math.floor((r - low) / width), 0), self.spec["bins"] - 1)

    def quantile(self, j):
        """With q = tokens * top_k / experts, the load of every expert under perfect balance:"""
        if self.spec["estimator"] == "exact":  # the (floor(q) + 1)-th smallest
            return sorted(self.required[j])[self.tokens * self.top_k // self.experts]
        # The first bin in which the count reaches ceil(q), and how far into it q lies.
        low, width = self.covered()
        q = self.tokens * self.top_k / self.experts
        rank = -(-self.tokens * self.top_k // self.experts)
        before = 0
        for i in sorted(self.required[j]):
            count = self.required[j][i]
            if before + count >= rank:
                return low + (i + min(max((q - before) / count, 0.0), 1.0)) * width
            before += count

    def update(self):
        """Replaces the biases. Without observations they stay as they are."""
        if self.tokens == 0:
            return
        estimate = [self.quantile(j) for j in range(self.experts)]
        mean = math.fsum(estimate) / self.experts
        centred = fp32(b - mean for b in estimate)
        if all(map(math.isfinite, centred)):
            self.biases = centred
        self.clear()

    def save(self):
        pending = [list(r) if isinstance(r, list) else sorted(r.items()) for r in self.required]
        return {"biases": [encode(b) for b in self.biases], "tokens": self.tokens, "pending": pending}

    def load(self, state):
        self.biases = [decode(b) for b in state["biases"]]
        self.tokens = state["tokens"]
        if self.spec["estimator"] == "exact":
            self.required = [list(r) for r in state["pending"]]
        else:
            self.required = [dict(r) for r in state["pending"]]


# ---- Counting loads

class Collector:
    """Counts what training forwards chose. One count an expert and layer; nothing when disabled."""

    def __init__(self, enabled, layers, experts):
        self.counts = [[0] * experts for _ in range(layers)] if enabled else []

    def count(self, layer, chosen):
        if self.counts:
            for j in chosen:
                self.counts[layer][j] += 1

    def snapshot(self, top_k, balancers):
        """What was counted since the last snapshot; then the counters, and only they, are zeroed."""
        record = {f"layers.{l}": self.layer(counts, top_k, balancers[l].biases)
                  for l, counts in enumerate(self.counts)}
        self.counts = [[0] * len(counts) for counts in self.counts]
        return record

    @staticmethod
    def layer(counts, top_k, biases):
        total = sum(counts)
        return {
            "expert_load_counts": counts,
            "tokens": total // top_k,
            "max_load_over_mean": max(counts) * len(counts) / total if total else None,
            "zero_load_experts": counts.count(0) if total else None,
            "biases": [b if math.isfinite(b) else None for b in biases],
        }


# ---- Metrics of a training call

def moe_metrics(layers):
    """Per layer first, then over layers; a layer without assignments says nothing. `fair` is the load
    of every expert under perfect balance, total / experts; with integers no rounding enters."""
    with_tokens, oversubscribed, max_violation, min_violation = [], [], [], []
    for counts in layers:
        if any(count < 0 for count in counts):
            raise Refused("invalid", "a load is negative")
        experts, total = len(counts), sum(counts)
        if total == 0:
            continue
        with_tokens.append(sum(count > 0 for count in counts) / experts)
        oversubscribed.append(sum(count * experts > total for count in counts) / experts)
        max_violation.append((max(counts) * experts - total) / total)
        min_violation.append((min(counts) * experts - total) / total)
    if not with_tokens:
        return {}
    mean = lambda values: sum(values) / len(values)
    return {
        "e_frac_with_tokens:mean": mean(with_tokens),
        "e_frac_oversubscribed:mean": mean(oversubscribed),
        "e_max_violation:mean": mean(max_violation),
        "e_max_violation:max": max(max_violation),
        "e_min_violation:mean": mean(min_violation),
    }


def weighted_mean(values, weights):
    if sum(weights) == 0:
        raise Refused("invalid", "a mean over chunks without any data")
    mean = sum(w * v for w, v in zip(weights, values)) / sum(weights)
    # Rounding must not carry it out of the values' range. (Comparisons with a NaN are false.)
    return mean if math.isnan(mean) else min(max(mean, min(values)), max(values))


def largest(values):
    return math.nan if any(map(math.isnan, values)) else max(values)


def smallest(values):
    return math.nan if any(map(math.isnan, values)) else min(values)


def hash_unordered(values):
    if not all(map(math.isfinite, values)):
        raise Refused("invalid", "only finite values have a hash")
    # Python's own hash of -1 is that of -2, so it would not tell those apart.
    text = repr(sorted(int(v) for v in values))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")  # exact in a double


def combine(chunks):
    """The metrics of a call from those of its chunks, each by the reduction its key ends in."""
    if not chunks:
        return {}
    weights = [chunk["data"] for chunk in chunks]
    combined = {}
    for key in chunks[0]["metrics"]:
        if key.count(":") != 1:
            raise Refused("invalid", f"{key}: a key is a name and a reduction, as in loss:mean")
        reduction = key.split(":")[1]
        if not all(key in chunk["metrics"] for chunk in chunks):
            continue
        values = [decode(chunk["metrics"][key]) for chunk in chunks]
        if reduction == "unique":
            for i, value in enumerate(values):
                combined[key if i == 0 else f"{key}_{i}"] = value
        elif reduction in REDUCTIONS:
            combined[key] = REDUCTIONS[reduction](values, weights)
    return combined


REDUCTIONS = {
    "mean": weighted_mean,
    "slack": lambda values, weights: largest(values) - weighted_mean(values, weights),
    "sum": lambda values, _: sum(values),
    "min": lambda values, _: smallest(values),
    "max": lambda values, _: largest(values),
    "hash_unordered": lambda values, _: hash_unordered(values),
}


# ---- The conversation

class Subject:
    """One method a request, named after its op. It returns what the answer says beside id and ok."""

    def hello(self, request):
        # on_overflow: what a skipped step does with what the balancer saw: "keep" or "discard".
        return {"name": NAME, "supports": CAPABILITIES, "on_overflow": "discard"}

    def open(self, request):
        model, balancer = request["model"], request["balancer"]
        if model["groups"] is not None:
            raise Refused("unsupported", "groups of experts")
        if balancer["kind"] == "sign":
            raise Refused("unsupported", "the balancer kind sign")
        if balancer["kind"] == "quantile" and model["top_k"] >= model["routed_experts"]:
            raise Refused("invalid", "quantile balancing needs top_k < routed_experts")
        self.ranks = request["ranks"]
        self.update_at = balancer["update"]
        self.active = None
        self.router = Router(model)
        self.balancers = [Balancer(balancer, self.router.experts, self.router.top_k)
                          for _ in range(model["layers"])]
        if request["biases"] is not None:
            self.set_biases(request)

    def forward(self, request):
        layer, logits, mask = request["layer"], request["logits"], request["mask"]
        if not 0 <= layer < len(self.balancers) or not 0 <= request["rank"] < self.ranks:
            raise Refused("invalid", "there is no such layer or rank")
        if any(len(row) != self.router.experts for row in logits):
            raise Refused("invalid", "a token has not one logit an expert")
        if mask is not None and len(mask) != len(logits):
            raise Refused("invalid", "the mask has not one entry a token")
        balancer = self.balancers[layer]
        training = request["mode"] == "train"  # neither evaluation nor a recomputed forward
        indices, weights, observed = [], [], []
        for token, row in enumerate(logits):
            chosen, weight, scores, cutoff = self.router.route(fp32(map(decode, row)), balancer.biases)
            indices.append(chosen)
            weights.append(weight)
            if training and (mask is None or mask[token]):
                observed.append((scores, cutoff, chosen))
        for scores, cutoff, chosen in observed:
            balancer.observe(scores, cutoff)
            if self.active is not None:
                self.active.count(layer, chosen)
        if training and self.update_at == "forward":
            balancer.update()  # for the next forward: this one is routed already
        return {"indices": indices, "weights": encode_rows(weights)}

    def step(self, request):
        for balancer in self.balancers:
            if request["applied"]:
                balancer.update()
            else:
                balancer.clear()
        return self.biases(request)

    def biases(self, request):
        return {"biases": encode_rows(balancer.biases for balancer in self.balancers)}

    def set_biases(self, request):
        rows = [[decode(b) for b in row] for row in request["biases"]]
        if len(rows) != len(self.balancers) or any(len(row) != self.router.experts for row in rows):
            raise Refused("invalid", "there is not one bias an expert and layer")
        for balancer, row in zip(self.balancers, rows):
            balancer.set_biases(row)

    def collector(self, request):
        action = request["action"]
        if action == "enter":
            if self.active is not None:
                raise Refused("already_active", "a collector is active; exit it first")
            enabled = request.get("enabled", True)
            self.active = Collector(enabled, len(self.balancers), self.router.experts)
        elif self.active is None:
            raise Refused("invalid", "no collector is active")
        elif action == "exit":
            self.active = None
        else:
            return {"layers": self.active.snapshot(self.router.top_k, self.balancers)}

    def metrics(self, request):
        return {"metrics": {key: encode(value) for key, value in moe_metrics(request["counts"]).items()}}

    def combine(self, request):
        return {"metrics": {key: encode(value) for key, value in combine(request["chunks"]).items()}}

    def save(self, request):
        # The collector is no part of it: what it counts belongs to the log, not to the model.
        return {"state": [balancer.save() for balancer in self.balancers]}

    def load(self, request):
        if len(request["state"]) != len(self.balancers):
            raise Refused("invalid", "the state is of another number of layers")
        for balancer, state in zip(self.balancers, request["state"]):
            balancer.load(state)

    def close(self, request):
        return {}


def answer(subject, request):
    op = request["op"]
    method = getattr(subject, op, None)
    try:
        if not callable(method):
            raise Refused("unsupported", f"the op {op}")
        return {"id": request["id"], "ok": True, **(method(request) or {})}
    except Refused as refused:
        error = {"code": refused.code, "message": str(refused)}
    except Exception as failure:  # a fault of this file; stderr is shown with the failing case
        traceback.print_exc()
        error = {"code": "internal", "message": repr(failure)}
    return {"id": request["id"], "ok": False, "error": error}


def main():
    subject = Subject()
    for line in sys.stdin:
        request = json.loads(line)
        # allow_nan=False: a NaN that slipped through would be no JSON.
        print(json.dumps(answer(subject, request), allow_nan=False), flush=True)
        if request["op"] == "close":
            break


if __name__ == "__main__":
    main()
