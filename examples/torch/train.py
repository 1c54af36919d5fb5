"""Trains a small GPT on the licence texts of the system: with torch's LayerNorm, with normc's, and with PowerNorm.

    train.py [--steps 100] [--layers 6] [--width 384] [--heads 6] [--compiler normc]

The heads divide the width.
"""

import argparse
import pathlib
import time

import normc
import normc.torch as nt
import torch
from torch import nn

parser = argparse.ArgumentParser()
for name, value in {"steps": 100, "layers": 6, "width": 384, "heads": 6, "context": 64, "batch": 8}.items():
    parser.add_argument("--" + name, type=int, default=value)
parser.add_argument("--compiler", default="", help="compiles kernels for this width at their first use")
args = parser.parse_args()
normc.compiler(args.compiler)
text = "".join(path.read_text() for path in sorted(pathlib.Path("/usr/share/common-licenses").glob("*GPL-?")))
letters = sorted(set(text))
data = torch.tensor([letters.index(letter) for letter in text])


class Block(nn.Module):
    def __init__(self, norm, width):
        super().__init__()
        self.before, self.after, self.qkv, self.out = norm(width), norm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (args.heads, -1)).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.after(x))


def gpt(norm):
    torch.manual_seed(0)
    blocks = [Block(norm, args.width) for _ in range(args.layers)]
    return nn.Sequential(nn.Embedding(len(letters), args.width), *blocks, norm(args.width), nn.Linear(args.width, len(letters)))


models = {"torch LayerNorm": gpt(nn.LayerNorm), "normc LayerNorm": gpt(nn.LayerNorm), "normc PowerNorm": gpt(nt.PowerNorm)}
print(nt.replace(models["normc LayerNorm"], strict=True))
optimizers = {name: torch.optim.AdamW(model.parameters(), 3e-4) for name, model in models.items()}
losses, times = {name: [] for name in models}, {name: [] for name in models}
for step in range(args.steps):
    at = torch.randint(len(data) - args.context - 1, (args.batch, 1)) + torch.arange(args.context + 1)
    for name in [*models][step % 3 :] + [*models][: step % 3]:  # in turns, so that all meet the same load
        begin = time.process_time()
        loss = nn.functional.cross_entropy(models[name](data[at[:, :-1]]).flatten(0, 1), data[at[:, 1:]].flatten())
        loss.backward()
        optimizers[name].step(), optimizers[name].zero_grad()
        times[name].append(time.process_time() - begin), losses[name].append(loss.item())
for name in models:
    took, theirs = torch.tensor(times[name]), torch.tensor(times["torch LayerNorm"])
    print(f"{name}: loss {losses[name][0]:.3f} to {sum(losses[name][-10:]) / len(losses[name][-10:]):.3f}, "
          f"{1e3 * took.median():.1f} ms of CPU a step, {(theirs / took).median():.3f}x of torch's speed")
