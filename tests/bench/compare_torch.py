#!/usr/bin/python3
"""The same work in PyTorch and in Ballast, in turn, and how many times faster Ballast is.

    compare_torch.py WORKER BALLAST [--rounds N] [--threads 1,2] [--only route,histogram,exact,gate,train,...]

Each round runs one and then the other, each three times and for a tenth of a second or longer, in one process group,
on the same values and with the same number of threads; figures are medians over the rounds, with the least and the
greatest. PyTorch is tuned: memory is kept and huge pages are on, its number of threads is set, and of several ways to
write a task in PyTorch the fastest is taken; `reference`, `trainer` and `megatron` are the same as others write it: the
histogram in the reference of TransformerEngine's tests (#3395) and in torchtitan's router (#4577), the exact update in
Megatron-LM's (#5349), one operation of theirs for one here. OpenBLAS is told to use its AVX-512 kernel where the
processor has one, since it does not know every processor by name. Where PyTorch's code writes dense outputs, so does
Ballast. A histogram is there for the biases that come of it, so Ballast may count only the bins that can decide
(core/balancers/windowed_histogram.h), where PyTorch's code counts all of them.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from torch_training import training

SHAPES = [(65536, 896, 16), (65536, 256, 8), (65536, 64, 6), (262144, 8, 2)]
GATES = [(d, e) for d in (1024, 7168) for e in (896, 256, 64, 8)]
GATE_TOKENS = 4096
TWENTY = dict.fromkeys((896, 256, 64, 8), 20)
GOALS = {"route": {896: 20, 256: 20, 64: 15, 8: 20}, "histogram": TWENTY, "reference": TWENTY, "trainer": TWENTY,
         "exact": TWENTY, "megatron": TWENTY, "gate": {896: 0.9, 256: 0.9, 64: 1.3, 8: 2.0}, "train": 10}
#: What the worker calls a task, where it is not the same.
WORKER_TASKS = {"histogram": "dense", "reference": "dense", "trainer": "dense", "megatron": "exact"}
BINS = 1000


def tuned():
    """Starts this program again in an environment in which PyTorch is at its best."""
    if os.environ.get("BALLAST_COMPARE") == "1":
        return
    tunables = "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"
    environment = dict(os.environ, BALLAST_COMPARE="1", GLIBC_TUNABLES=tunables)
    with open("/proc/cpuinfo") as info:
        if "avx512f" in info.read():
            environment["OPENBLAS_CORETYPE"] = "SkylakeX"
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


class Worker:
    """The program that does Ballast's part, a line for a task."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def seconds(self, line):
        return float(self.ask(line))


def load():
    """Ticks that the machine's processors were busy."""
    with open("/proc/stat") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4]


def own(pids):
    """Of these, ticks of the given processes and of their ended children."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += sum(int(ticks) for ticks in fields[11:15])
    return total


class Rounds:
    """Times two ways in turn, and notes how much of the machine was others' at the time."""

    def __init__(self, rounds, pids):
        self.rounds, self.pids = rounds, pids

    def __call__(self, theirs, ours):
        times = []
        for _ in range(self.rounds):
            machine, mine, begin = load(), own(self.pids), time.perf_counter()
            pair = (rested(theirs), rested(ours))
            wall = time.perf_counter() - begin
            foreign = (load() - machine - own(self.pids) + mine) / os.sysconf("SC_CLK_TCK") / wall / os.cpu_count()
            times.append((*pair, max(foreign, 0.0)))
        return times


def use_threads(torch, threads):
    """PyTorch's own and those of its matrix products, which are another library's."""
    torch.set_num_threads(threads)
    try:
        ctypes.CDLL("libopenblas.so.0").openblas_set_num_threads(threads)
    except OSError:
        pass  # another BLAS, which follows OpenMP


def rested(work):
    """PyTorch's threads wait for more work by spinning for a while, on the processor that the next one is to use."""
    time.sleep(0.05)
    return work()


def settled(work):
    """The median time of work that tells its time, thrice and again for a while, as the worker does it: the first runs
    find caches, the processor's clock and the places of threads as the other side left them."""
    times = []
    while sum(times) < 0.1 or len(times) < 3:
        times.append(work())
    return sorted(times)[len(times) // 2]


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fastest(*ways):
    """The one of several ways to do the same that takes the least time."""
    return min(ways, key=lambda way: min(timed(way) for _ in range(2)))


class TorchRouting:
    """Routing and balancing as training code in PyTorch writes it."""

    def __init__(self, torch, logits, biases, top_k):
        self.torch, self.logits, self.biases, self.k = torch, logits, biases, top_k
        self.tokens, self.experts = logits.shape
        self.scores = torch.sigmoid(logits)
        self.column = fastest(self.column_topk, self.column_kth, self.column_sort)
        self.count = fastest(self.count_bincount, self.count_scatter)

    def choose(self):
        torch = self.torch
        scores = torch.sigmoid(self.logits)
        top = torch.topk(scores + self.biases, self.k + 1, dim=1)
        indices = top.indices[:, :self.k]
        weights = scores.gather(1, indices)
        return scores, top.values[:, self.k], indices, weights / (weights.sum(1, keepdim=True) + 1e-20)

    def route(self):
        _, _, indices, weights = self.choose()
        self.loads = self.torch.bincount(indices.reshape(-1), minlength=self.experts)
        return indices, weights

    # The exact dual update: of every expert the (q + 1)-th largest of score - cutoff, q = tokens * k / experts.
    def position(self):
        return self.tokens * self.k // self.experts

    def residual(self):
        cutoffs = self.torch.topk(self.scores + self.biases, self.k + 1, dim=1).values[:, self.k]
        return self.scores - cutoffs[:, None]

    def column_topk(self):
        return self.torch.topk(self.residual(), self.position() + 1, dim=0).values[-1]

    def column_kth(self):
        residual = self.residual().t().contiguous()
        return self.torch.kthvalue(residual, self.tokens - self.position(), dim=1).values

    def column_sort(self):
        return self.torch.sort(self.residual().t().contiguous(), dim=1, descending=True).values[:, self.position()]

    def exact(self):
        estimate = -self.column()
        return estimate - estimate.mean()

    def megatron(self):
        """Choices and the exact update from scores that are there already, by two calls of topk."""
        top = (self.scores + self.biases).topk(self.k + 1, dim=1)
        margins = self.scores - top.values[:, -1:]
        return top.indices[:, :-1], margins.topk(self.position() + 1, dim=0).values[-1].contiguous()

    # The histogram of required biases, in bins over the range that the biases can need.
    def range(self):
        return self.biases.min() - 1.0, self.biases.max() + 1.0

    def reference(self):
        """The one of equal cutoff scores that is left out is the last; every step makes a new tensor."""
        torch = self.torch
        scores = torch.sigmoid(self.logits)
        values, found = torch.topk(scores + self.biases, self.k + 1, dim=1)
        cutoffs = values.min(dim=1).values
        left_out = found.masked_fill(values != cutoffs[:, None], -1).max(dim=1).values
        indices = found[found != left_out[:, None]].reshape(-1, self.k)
        weights = scores.gather(1, indices)
        weights = weights / (weights.sum(1, keepdim=True) + 1e-20)
        dense = torch.zeros_like(scores).scatter(1, indices, weights)
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(1, indices, True)
        low, high = self.range()
        bins = torch.floor((cutoffs[:, None] - scores - low) * (BINS / (high - low))).long().clamp_(0, BINS - 1)
        places = (bins + torch.arange(self.experts) * BINS).reshape(-1)
        counts = torch.bincount(places, minlength=self.experts * BINS).view(self.experts, BINS).int()
        return torch.zeros_like(counts).add_(counts), dense, chosen

    def trainer(self):
        """Counts are added to expert by expert, from a transposed view; weights stay `[tokens, k]`."""
        torch = self.torch
        scores, cutoffs, indices, weights = self.choose()
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, indices, True)
        low, high = self.range()
        bins = torch.floor((cutoffs[:, None] - scores - low) / ((high - low) / BINS)).long().clamp_(0, BINS - 1).t()
        counts = torch.zeros(self.experts, BINS, dtype=torch.int32)
        return counts.scatter_add_(1, bins, torch.ones_like(bins, dtype=torch.int32)), weights, chosen

    def bins(self):
        torch = self.torch
        scores, cutoffs, indices, weights = self.choose()
        dense = torch.zeros_like(scores).scatter(1, indices, weights)
        chosen = torch.zeros(scores.shape, dtype=torch.bool).scatter(1, indices, True)
        low, high = (float(end) for end in self.range())
        bins = ((cutoffs[:, None] - scores - low) * (BINS / (high - low))).floor().clamp_(0, BINS - 1).long()
        bins += torch.arange(self.experts)[None, :] * BINS
        return bins.reshape(-1), dense, chosen

    def count_bincount(self):
        bins, dense, chosen = self.bins()
        return self.torch.bincount(bins, minlength=self.experts * BINS), dense, chosen

    def count_scatter(self):
        bins, dense, chosen = self.bins()
        counts = self.torch.zeros(self.experts * BINS, dtype=self.torch.int64)
        return counts.scatter_add_(0, bins, self.torch.ones_like(bins)), dense, chosen

    def histogram(self):
        counts = self.count()[0].view(self.experts, BINS)
        below = counts.cumsum(1)
        return (below > self.position()).int().argmax(1)


class Table:
    def __init__(self, rounds):
        print(f"medians of {rounds} rounds; ratio: least - greatest; * others used over 12 % of the processors")
        print(f"{'task':10} {'shape':>16} {'thr':>3} {'PyTorch':>9} {'Ballast':>9} {'ratio':>7}  {'spread':<15} goal")

    def row(self, task, shape, threads, unit, per, times, goal):
        quiet = [t for t in times if t[2] <= 0.12]
        used = quiet if len(quiet) >= 3 else times
        ratios = sorted(theirs / ours for theirs, ours, _ in used)
        ratio = statistics.median(ratios)
        theirs, ours = (statistics.median(t[i] for t in used) * per for i in (0, 1))
        mark = " " if used is quiet else "*"
        verdict = "" if ratio >= goal else "  missed"
        print(f"{task:10} {shape:>16} {threads:>3} {theirs:>9.3g} {ours:>9.3g} {ratio:>6.1f}x{mark} "
              f"{f'{ratios[0]:.1f} - {ratios[-1]:.1f}':<15} {goal}{verdict}   {unit}", flush=True)


def compare_routing(torch, worker, rounds, table, arguments):
    for shape in SHAPES:
        tasks = [task for task in ("route", "histogram", "reference", "trainer", "exact", "megatron")
                 if task in arguments.only]
        if not tasks:
            return
        tokens, experts, top_k = shape
        generator = torch.Generator().manual_seed(1)
        logits = torch.randn(tokens, experts, generator=generator)
        biases = torch.linspace(-0.2, 0.2, experts)
        with tempfile.NamedTemporaryFile() as file:
            file.write(logits.numpy().tobytes() + biases.numpy().tobytes())
            file.flush()
            if worker.ask(f"batch {file.name} {tokens} {experts} {top_k}") != "ok":
                sys.exit("compare_torch: the worker cannot read the batch")
        for threads in arguments.threads:
            use_threads(torch, threads)
            routing = TorchRouting(torch, logits, biases, top_k)
            check(torch, routing, worker, threads)
            for task in tasks:
                ours = WORKER_TASKS.get(task, task)
                times = rounds(lambda: settled(lambda: timed(getattr(routing, task))), lambda: worker.seconds(f"{ours} {threads}"))
                table.row(task, f"{tokens},{experts},{top_k}", threads, "ns/te", 1e9 / tokens / experts, times,
                          GOALS[task][experts])


def check(torch, routing, worker, threads):
    """Both do the same: loads agree but for choices that the last bit of a sigmoid decides, biases nearly."""
    routing.route()
    worker.ask(f"route {threads}")
    ours = torch.tensor([int(word) for word in worker.ask("loads").split()])
    apart = int((ours - routing.loads).abs().sum())
    if apart > 1e-4 * int(ours.sum()):
        sys.exit(f"compare_torch: loads differ by {apart} of {int(ours.sum())} assignments")
    worker.ask(f"exact {threads}")
    biases = torch.tensor([float(word) for word in worker.ask("biases").split()])
    apart = float((biases - routing.exact()).abs().max())
    if apart > 1e-3:
        sys.exit(f"compare_torch: exact biases differ by {apart}")


def compare_gate(torch, worker, rounds, table, arguments):
    for hidden, experts in GATES:
        x, w = torch.randn(GATE_TOKENS, hidden), torch.randn(experts, hidden)
        for threads in arguments.threads:
            use_threads(torch, threads)
            torch.mm(x, w.t())
            worker.ask(f"gate {GATE_TOKENS} {hidden} {experts} {threads}")
            times = rounds(lambda: settled(lambda: timed(lambda: torch.mm(x, w.t()))),
                           lambda: worker.seconds(f"gate {GATE_TOKENS} {hidden} {experts} {threads}"))
            table.row("gate", f"{GATE_TOKENS},{hidden},{experts}", threads, "ms", 1e3, times, GOALS["gate"][experts])


def compare_training(torch, rounds, table, arguments):
    """Whole steps of the quickstart's model; of Ballast the difference between a long and a short run."""
    with open(os.path.join(os.path.dirname(__file__), "../../scenarios/quickstart.json")) as file:
        scenario = json.load(file)
    del scenario["variants"]
    scenario["balancer"] = {"kind": "quantile"}
    scenario["training"].update(evaluate_every=0, log_every=0, checkpoint_every=0)
    few, many = 50, 1050

    def ours(threads):
        times = []
        for steps in (few, many):
            scenario["training"]["steps"] = steps
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(scenario, file)
                file.flush()
                run = [arguments.ballast, "run", file.name, "--threads", str(threads), "--json"]
                times.append(timed(lambda: subprocess.run(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
        return (times[1] - times[0]) / (many - few)

    for threads in arguments.threads:
        use_threads(torch, threads)
        ways = training(torch, scenario)
        for way in ways:
            way(2)
        train = min(ways, key=lambda way: timed(lambda: way(3)))
        times = rounds(lambda: settled(lambda: timed(lambda: train(10))) / 10, lambda: ours(threads))
        table.row("train", "quickstart", threads, "ms", 1e3, times, GOALS["train"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("worker")
    parser.add_argument("ballast")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(GOALS))
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("compare_torch: PyTorch is missing (Debian: apt-get install python3-torch); nothing was compared")
        return
    tuned()
    worker = Worker(arguments.worker)
    rounds = Rounds(arguments.rounds, [os.getpid(), worker.process.pid])
    fma, read, increments = (float(word) for word in worker.ask("limits").split())
    print(f"PyTorch {torch.__version__}, OpenBLAS as {os.environ.get('OPENBLAS_CORETYPE', 'it chooses')}; limits of one "
          f"thread:\n{fma / 1e9:.0f} GFLOP/s of fused multiply-adds, {read / 1e9:.0f} GB/s read, "
          f"{1e9 / increments:.2f} ns for each increment of a counter")
    table = Table(arguments.rounds)
    compare_routing(torch, worker, rounds, table, arguments)
    if "gate" in arguments.only:
        compare_gate(torch, worker, rounds, table, arguments)
    if "train" in arguments.only:
        compare_training(torch, rounds, table, arguments)
    fma, read, increments = (float(word) for word in worker.ask("limits").split())
    print(f"limits again: {fma / 1e9:.0f} GFLOP/s, {read / 1e9:.0f} GB/s, {1e9 / increments:.2f} ns")


if __name__ == "__main__":
    main()
