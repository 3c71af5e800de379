#!/usr/bin/env python3
"""Times headlab beside PyTorch and JAX: the same layers and training steps, in turns, on the same threads.

    pip install torch jax
    python3 tests/benchmarks/peers.py                                      # all cases, half an hour
    python3 tests/benchmarks/peers.py --only toy,toy-2L-d64 --peers torch  # some of them

A figure is the median over rounds of each round's median; a ratio over 1 says that headlab is faster. The shapes
are those of `headlab bench`. "mha" is forward and backward of one attention layer with its projections; "train"
a whole step of a pre-norm GPT with a tied read-out: forward, backward, clip to norm 1, AdamW."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = os.path.join(HERE, "../../framework/command/bench_shapes.json")
PEERS = ("torch", "torch-compile", "jax")


def median_ms(step, seconds):
    for _ in range(3):
        step()
    times = []
    while sum(times) < seconds or len(times) < 5:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times)


class Torch:
    def __init__(self, threads, compiled):
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.torch, self.compiled = torch, compiled

    def prepared(self, module):
        return self.torch.compile(module) if self.compiled else module

    def layer(self, d, heads, causal):
        nn, functional = self.torch.nn, self.torch.nn.functional

        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

            def forward(self, x):
                b, t, _ = x.shape
                q, k, v = self.qkv(x).view(b, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
                z = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                return self.out(z.transpose(1, 2).reshape(b, t, d))

        return Attention()

    def mha(self, case):
        module = self.layer(case["d"], case["h"], case["causal"])
        run = self.prepared(module)
        x = self.torch.randn(case["B"], case["T"], case["d"], requires_grad=True)
        upstream = self.torch.randn(x.shape)

        def step():
            module.zero_grad(set_to_none=True)
            x.grad = None
            run(x).backward(upstream)

        return step

    def train(self, case):
        torch, nn, layer = self.torch, self.torch.nn, self.layer
        d, heads, vocabulary = case["d"], case["h"], case["V"]

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
                self.attention = layer(d, heads, True)
                self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))

            def forward(self, x):
                x = x + self.attention(self.norms[0](x))
                return x + self.mlp(self.norms[1](x))

        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.tokens, self.positions = nn.Embedding(vocabulary, d), nn.Embedding(case["T"], d)
                self.blocks = nn.Sequential(*[Block() for _ in range(case["L"])])
                self.norm = nn.LayerNorm(d)

            def forward(self, ids, targets):
                x = self.tokens(ids) + self.positions.weight
                logits = self.norm(self.blocks(x)) @ self.tokens.weight.T
                return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

        model = Decoder()
        run = self.prepared(model)
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
        ids, targets = torch.randint(0, vocabulary, (2, case["B"], case["T"]))

        def step():
            optimiser.zero_grad(set_to_none=True)
            run(ids, targets).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()

        return step


class Jax:
    def __init__(self, threads):
        # XLA takes its number of threads from the processors that it may use.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        import jax

        self.jax, self.np, self.key = jax, jax.numpy, jax.random.key(0)

    def normal(self, *shape):
        self.key, one = self.jax.random.split(self.key)
        return 0.02 * self.jax.random.normal(one, shape, self.np.float32)

    def linear(self, rows, columns):
        return {"w": self.normal(rows, columns), "b": self.np.zeros(columns)}

    def attend(self, p, x, heads, causal):
        np = self.np
        b, t, d = x.shape
        qkv = (x @ p["qkv"]["w"] + p["qkv"]["b"]).reshape(b, t, 3, heads, d // heads)
        q, k, v = np.moveaxis(qkv, 2, 0)
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(d // heads)
        if causal:
            scores = np.where(np.tril(np.ones((t, t), bool)), scores, -np.inf)
        z = np.einsum("bhqk,bkhd->bqhd", self.jax.nn.softmax(scores), v).reshape(b, t, d)
        return z @ p["out"]["w"] + p["out"]["b"]

    def layer(self, d):
        return {"qkv": self.linear(d, 3 * d), "out": self.linear(d, d)}

    def mha(self, case):
        p, heads, causal = self.layer(case["d"]), case["h"], case["causal"]
        x = self.normal(case["B"], case["T"], case["d"])
        upstream = self.normal(*x.shape)
        gradient = self.jax.jit(
            self.jax.grad(lambda p, x: (self.attend(p, x, heads, causal) * upstream).sum(), argnums=(0, 1)))
        return lambda: self.jax.block_until_ready(gradient(p, x))

    def train(self, case):
        jax, np, d = self.jax, self.np, case["d"]
        norm_of = lambda: {"gain": np.ones(d), "bias": np.zeros(d)}

        def norm(p, x):
            x = x - x.mean(-1, keepdims=True)
            return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["gain"] + p["bias"]

        block = lambda: {"attention": self.layer(d), "up": self.linear(d, 4 * d), "down": self.linear(4 * d, d),
                         "norms": [norm_of(), norm_of()]}
        p = {"tokens": self.normal(case["V"], d), "positions": self.normal(case["T"], d), "norm": norm_of(),
             "blocks": [block() for _ in range(case["L"])]}
        ids, targets = jax.random.randint(self.key, (2, case["B"], case["T"]), 0, case["V"])

        def loss(p):
            x = p["tokens"][ids] + p["positions"]
            for b in p["blocks"]:
                x = x + self.attend(b["attention"], norm(b["norms"][0], x), case["h"], True)
                hidden = jax.nn.gelu(norm(b["norms"][1], x) @ b["up"]["w"] + b["up"]["b"], approximate=True)
                x = x + hidden @ b["down"]["w"] + b["down"]["b"]
            logits = jax.nn.log_softmax(norm(p["norm"], x) @ p["tokens"].T)
            return -np.take_along_axis(logits, targets[..., None], -1).mean()

        @jax.jit
        def update(p, m, v, step):
            g = jax.grad(loss)(p)
            total = np.sqrt(sum((x * x).sum() for x in jax.tree.leaves(g)))
            g = jax.tree.map(lambda x: x * np.minimum(1, 1 / (total + 1e-6)), g)
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
            one, two = 1 - 0.9**step, 1 - 0.999**step
            move = lambda p, m, v: p * (1 - 1e-5) - 1e-3 * (m / one) / (np.sqrt(v / two) + 1e-8)
            return jax.tree.map(move, p, m, v), m, v

        zeros = lambda: jax.tree.map(np.zeros_like, p)
        state = [p, zeros(), zeros(), 0]

        def step():
            state[3] += 1
            state[:3] = jax.block_until_ready(update(*state[:3], float(state[3])))

        return step


def time_peer(peer, kind, case, threads, seconds):
    library = Jax(threads) if peer == "jax" else Torch(threads, peer == "torch-compile")
    print(median_ms(getattr(library, kind)(case), seconds))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headlab", default=os.path.join(HERE, "../../build/release/headlab"))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--only", help="names of cases, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement, at least")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    a = parser.parse_args()
    shapes = json.load(open(SHAPES))
    cases = [(kind, case) for kind in ("mha", "train") for case in shapes[kind]]
    names = [case["name"] for _, case in cases]
    if a.only:
        unknown = set(a.only.split(",")) - set(names)
        if unknown:
            parser.error(f"--only: there is no {', '.join(sorted(unknown))}; the cases are {', '.join(names)}")
        cases = [c for c in cases if c[1]["name"] in a.only.split(",")]
    if a.worker:
        return time_peer(a.worker, *cases[0], a.threads, a.seconds)
    peers = a.peers.split(",")
    if set(peers) - set(PEERS):
        parser.error(f"--peers: {a.peers} is not made of {', '.join(PEERS)}")

    print(f"{'case':22}{'headlab':>10}" + "".join(f"{peer:>16}{'ratio':>8}" for peer in peers) + "   (ms)")
    ratios = {peer: [] for peer in peers}
    for kind, case in cases:
        common = ["--only", case["name"], "--threads", str(a.threads)]
        times = {who: [] for who in ["headlab", *peers]}
        for _ in range(a.rounds):
            ours = run([a.headlab, "bench", "--json", "--kind", kind, "--min-time", str(a.seconds), *common])
            times["headlab"].append(json.loads(ours.splitlines()[-1])["ms"])
            for peer in peers:
                worker = [sys.executable, __file__, "--worker", peer, "--seconds", str(a.seconds), *common]
                times[peer].append(float(run(worker).splitlines()[-1]))
        median = {who: statistics.median(some) for who, some in times.items()}
        row = f"{kind + ' ' + case['name']:22}{median['headlab']:10.3f}"
        for peer in peers:
            ratios[peer].append(median[peer] / median["headlab"])
            row += f"{median[peer]:16.3f}{ratios[peer][-1]:8.2f}"
        print(row, flush=True)
    for peer in peers:
        print(f"{peer}: {statistics.geometric_mean(ratios[peer]):.2f} times as long in the mean, "
              f"{min(ratios[peer]):.2f} at least")


if __name__ == "__main__":
    main()
