"""PyTorch, cuDNN and Liger on the shapes of normc-gpu, measured in the same way.

    python3 peers.py SHAPES OUT --seconds N
    python3 peers.py SHAPES OUT --warm I/N      compiles every N-th shape into PyTorch's cache, and times nothing

SHAPES is what `normc-gpu shapes` prints, OUT gets JSON lines like those of `normc-gpu bench`. Calls go to
sets of buffers in turn, more than twice the second-level cache together, and have as many sets of outputs. They
are captured into a CUDA graph where they can be, and are timed by events around it. Contestants:

    compile  PyTorch's operators through torch.compile
    eager    the same as they are
    cudnn    cuDNN's normalization graphs, where its Python frontend is installed
    liger    Liger's Triton kernels, where they are installed

A backward is what autograd runs after a forward. PowerNorm, for which there is no other kernel, is composed of
PyTorch operators, after warmup. Scale and bias of layer_norm and rms_norm have the type of x, as these operators
want it, and are f32 otherwise. A norm of a residual stream adds x to it, and returns the new stream too; its backward gets
a gradient of both.

Exit codes are those of normc-gpu: 0 done, 3 out of time. Whoever cannot run says why in a record.
"""

import argparse
import collections
import functools
import json
import math
import pathlib
import random
import re
import signal
import statistics
import sys
import time

EPSILON = {"layer_norm": 1e-5, "rms_norm": 1e-6, "batch_norm": 1e-5, "power_norm": 1e-5, "power_norm_v": 1e-5}
OF_ROWS = ("layer_norm", "rms_norm")
RESIDUAL = "_residual"
SAMPLE_SECONDS, ROUNDS, MOST_CALLS = 1.5e-3, 9, 512


def shapes_of(file):
    """Tuples (text, norm, entry, dtype, rows, features), in the file's order."""
    pattern = re.compile(r"(\w+):(\w+)@(\w+)\[(\d+)x(\d+)\]$")
    for line in open(file):
        match = pattern.match(line.strip())
        if match:
            norm, entry, dtype, rows, features = match.groups()
            yield line.strip(), norm, entry, dtype, int(rows), int(features)


def records_of(text):
    """The records of a file's text. A line that was cut off is left out."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass


def interval(samples):
    """Median and a percentile bootstrap of it, in microseconds."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(samples, k=len(samples))) for _ in range(1000))
    return {"median": statistics.median(samples) * 1e6, "low": medians[25] * 1e6, "high": medians[974] * 1e6}


class Norms:
    """The norms as functions of tensors; each returns y."""

    def __init__(self, torch):
        self.torch = torch
        self.functional = torch.nn.functional

    def of(self, norm):
        return getattr(self, norm)

    def layer_norm(self, x, scale, bias, state):
        return self.functional.layer_norm(x, [x.shape[1]], scale, bias, EPSILON["layer_norm"])

    def rms_norm(self, x, scale, bias, state):
        return self.functional.rms_norm(x, [x.shape[1]], scale, EPSILON["rms_norm"])

    def layer_norm_residual(self, x, scale, bias, state):
        stream = x + state["residual"]
        return self.layer_norm(stream, scale, bias, state), stream

    def rms_norm_residual(self, x, scale, bias, state):
        stream = x + state["residual"]
        return self.rms_norm(stream, scale, bias, state), stream

    def batch_norm(self, x, scale, bias, state):
        return self.functional.batch_norm(
            x, state["mean"], state["moment"], scale, bias, True, 0.1, EPSILON["batch_norm"])

    def power_norm_v(self, x, scale, bias, state):
        wide = x.float()
        moment = (wide * wide).mean(0)
        state["moment"].lerp_(moment.detach(), 0.1)
        return (wide * self.torch.rsqrt(moment + EPSILON["power_norm_v"]) * scale + bias).to(x.dtype)

    def power_norm(self, x, scale, bias, state):
        return self.power(x, scale, bias, state["moment"], state["nu"])

    @functools.cached_property
    def power(self):
        torch = self.torch

        class Power(torch.autograd.Function):
            @staticmethod
            def forward(context, x, scale, bias, moment, nu):
                rstd = torch.rsqrt(moment + EPSILON["power_norm"])
                normal = x.float() * rstd
                context.save_for_backward(normal.to(x.dtype), scale, rstd)
                context.nu = nu  # changed by every backward
                moment.lerp_((x.float() ** 2).mean(0), 0.1)
                return (normal * scale + bias).to(x.dtype)

            @staticmethod
            def backward(context, dy):
                (saved, scale, rstd), nu = context.saved_tensors, context.nu
                normal, wide = saved.float(), dy.float()
                g = wide * scale
                dx = ((g - nu * normal) * rstd).to(dy.dtype)
                nu.copy_(nu * (1 - 0.1 * (normal * normal).mean(0)) + 0.1 * (g * normal).mean(0))
                return dx, (wide * normal).sum(0).to(scale.dtype), wide.sum(0).to(scale.dtype), None, None

        return Power.apply


class Bench:
    def __init__(self, torch, out, deadline):
        self.torch, self.out, self.deadline = torch, out, deadline
        self.norms = Norms(torch)
        self.stream = torch.cuda.Stream()
        self.cache = torch.cuda.get_device_properties(0).L2_cache_size

    def record(self, **fields):
        self.out.write(json.dumps(fields) + "\n")
        self.out.flush()

    def sets(self, norm, entry, dtype, rows, features):
        """Sets of buffers that outgrow the cache twice: (x, dy, scale, bias, state) each. The state of a norm of a
        residual stream has the residual and the gradient of the stream."""
        torch = self.torch
        kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
        one = rows * features * kind.itemsize
        count = max(2, min(64, 2 * self.cache // (one * (3 if entry == "backward" else 2)) + 1))
        shared = dict(device="cuda")
        params = kind if norm.removesuffix(RESIDUAL) in OF_ROWS else torch.float32
        scale = torch.randn(features, dtype=params, **shared)
        bias = torch.randn(features, dtype=params, **shared)
        state = {name: torch.full((features,), value, **shared)
                 for name, value in (("mean", 0.0), ("moment", 1.0), ("nu", 0.0))}
        for _ in range(count):
            x = torch.randn(rows, features, dtype=kind, **shared)
            dy = torch.randn(rows, features, dtype=kind, **shared) if entry == "backward" else None
            if norm.endswith(RESIDUAL):
                state = {"residual": torch.randn_like(x), "dstream": torch.randn_like(x)}
            yield x, dy, scale, bias, state

    def function_of(self, who, norm):
        torch = self.torch
        if who == "compile":
            torch._dynamo.reset()
            return torch.compile(self.norms.of(norm), dynamic=False)
        if who == "eager":
            return self.norms.of(norm)
        if norm == "rms_norm_residual":
            from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction as Liger

            return lambda x, scale, bias, state: Liger.apply(
                x, state["residual"], scale, EPSILON["rms_norm"], 0.0, "llama", False)
        if norm == "rms_norm":
            from liger_kernel.ops.rms_norm import LigerRMSNormFunction as Liger

            # Not in place: a timed call must leave dy as it was.
            return lambda x, scale, bias, state: Liger.apply(x, scale, EPSILON[norm], 0.0, "llama", False)
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction as Liger

        return lambda x, scale, bias, state: Liger.apply(x, scale, bias, EPSILON[norm])

    def torch_calls(self, who, norm, entry, buffers):
        """One function without arguments a set."""
        torch, function = self.torch, self.function_of(who, norm)
        calls = []
        for x, dy, scale, bias, state in buffers:
            if entry != "backward":
                calls.append(lambda x=x, s=scale, b=bias, t=state: function(x, s, b, t))
                continue
            inputs = [x.requires_grad_(), scale.requires_grad_()]
            if not norm.startswith("rms_norm"):
                inputs.append(bias.requires_grad_())
            gradients = [dy]
            if norm.endswith(RESIDUAL):
                inputs.append(state["residual"].requires_grad_())
                gradients.append(state["dstream"])
            y = function(x, scale, bias, state)
            calls.append(lambda y=y, i=inputs, g=gradients: torch.autograd.grad(y, i, g, retain_graph=True))
        return calls

    def cudnn_calls(self, norm, entry, buffers):
        import cudnn  # the Python frontend

        torch = self.torch
        if norm not in ("layer_norm", "rms_norm"):
            raise ValueError(f"has no {norm}")
        handle = cudnn.create_handle()
        cudnn.set_stream(handle=handle, stream=self.stream.cuda_stream)
        x, dy, scale, bias, _ = buffers[0]
        rows, features = x.shape
        kinds = {torch.bfloat16: cudnn.data_type.BFLOAT16, torch.float16: cudnn.data_type.HALF,
                 torch.float32: cudnn.data_type.FLOAT}
        graph = cudnn.pygraph(io_data_type=kinds[x.dtype], intermediate_data_type=cudnn.data_type.FLOAT,
                              compute_data_type=cudnn.data_type.FLOAT, handle=handle)
        wide = lambda t: t.detach().view(rows, features, 1, 1)
        narrow = lambda t: t.detach().view(1, features, 1, 1)
        column = lambda: torch.ones(rows, 1, 1, 1, device="cuda")
        layer = norm == "layer_norm"
        at = {"x": graph.tensor_like(wide(x)), "scale": graph.tensor_like(narrow(scale))}
        if entry == "backward":
            at["dy"] = graph.tensor_like(wide(dy))
            at["rstd"] = graph.tensor_like(column())
            common = dict(grad=at["dy"], input=at["x"], scale=at["scale"], inv_variance=at["rstd"])
            if layer:
                at["mean"] = graph.tensor_like(column())
                outputs = graph.layernorm_backward(mean=at["mean"], **common)
            else:
                outputs = graph.rmsnorm_backward(has_dbias=False, **common)
            names = ("dx", "dscale", "dbias") if layer else ("dx", "dscale")
        else:
            epsilon = torch.full((1, 1, 1, 1), EPSILON[norm])
            at["epsilon"] = graph.tensor_like(epsilon)
            common = dict(norm_forward_phase=cudnn.norm_forward_phase.TRAINING, input=at["x"],
                          scale=at["scale"], epsilon=at["epsilon"])
            if layer:
                at["bias"] = graph.tensor_like(narrow(bias))
                outputs, names = graph.layernorm(bias=at["bias"], **common), ("y", "mean", "rstd")
            else:
                outputs, names = graph.rmsnorm(**common), ("y", "rstd")
        for name, output in zip(names, outputs):
            at[name] = output
            output.set_output(True).set_data_type(
                cudnn.data_type.FLOAT if name in ("mean", "rstd") else kinds[x.dtype])
        graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        workspace = torch.empty(max(1, graph.get_workspace_size()), device="cuda", dtype=torch.uint8)
        calls = []
        for x, dy, scale, bias, _ in buffers:
            given = {"x": wide(x), "scale": narrow(scale), "bias": narrow(bias)}
            given.update(mean=column(), rstd=column())
            if entry == "backward":
                given.update(dy=wide(dy), dx=wide(torch.empty_like(x)))
                given.update(dscale=narrow(torch.empty_like(scale)), dbias=narrow(torch.empty_like(bias)))
            else:
                given.update(y=wide(torch.empty_like(x)), epsilon=epsilon)
            pack = {tensor: given[name] for name, tensor in at.items()}
            calls.append(lambda pack=pack: graph.execute(pack, workspace, handle=handle))
        return calls

    def timed(self, run):
        torch = self.torch
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(self.stream)
        run()
        end.record(self.stream)
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def measure(self, calls):
        """Samples of seconds a call, and how they were taken."""
        torch = self.torch

        # Outputs live as long as a turn, so that no call writes where the last one did.
        outputs = collections.deque(maxlen=len(calls))

        def turn():
            for call in calls:
                outputs.append(call())

        turn(), turn()
        once = max(self.timed(turn) / len(calls), 1e-7)
        turns = max(1, min(MOST_CALLS // len(calls), math.ceil(SAMPLE_SECONDS / once / len(calls))))
        try:
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, stream=self.stream):
                for _ in range(turns):
                    turn()
            run, method = graph.replay, "graph"
            run()
        except Exception:  # what cannot be captured is timed as it is
            torch.cuda.synchronize()
            run, method = lambda: [turn() for _ in range(turns)], "stream"
        return [self.timed(run) / (turns * len(calls)) for _ in range(ROUNDS)], method

    def one(self, who, shape):
        text, norm, entry, dtype, rows, features = shape
        fields = dict(kind="bench", who=who, shape=text, norm=norm, entry=entry, dtype=dtype, rows=rows,
                      features=features)
        try:
            with self.torch.cuda.stream(self.stream):
                buffers = list(self.sets(norm, entry, dtype, rows, features))
                if who == "cudnn":
                    calls = self.cudnn_calls(norm, entry, buffers)
                else:
                    calls = self.torch_calls(who, norm, entry, buffers)
                samples, method = self.measure(calls)
            self.record(us=interval(samples), method=method, sets=len(buffers), **fields)
        except Exception as error:  # whatever they raise is the result
            self.record(error=(str(error).splitlines() or [repr(error)])[0][:300], **fields)
        finally:
            calls = buffers = None
            self.torch.cuda.empty_cache()

    def all(self, shapes, done):
        """All contestants on a shape, the strongest first."""
        for shape in shapes:
            for who in ("compile", "eager", "cudnn", "liger"):
                has = who in ("compile", "eager") or shape[1] in OF_ROWS or (
                    who == "liger" and shape[1] == "rms_norm_residual")
                if not has or (who, shape[0]) in done:
                    continue
                if time.monotonic() > self.deadline:
                    return False
                self.one(who, shape)
        return True

    def warm(self, shapes):
        """Compiles what `all` will, and leaves it in the cache that all processes share."""
        for _, norm, entry, dtype, rows, features in shapes:
            try:
                buffers = list(self.sets(norm, entry, dtype, rows, features))[:1]
                for call in self.torch_calls("compile", norm, entry, buffers):
                    call()
            except Exception as error:  # `all` meets it again, and records it
                print(f"{norm} {entry}: {error}", file=sys.stderr)


def out_of_time(*_):
    sys.exit(3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes")
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=1e6)
    parser.add_argument("--warm", metavar="I/N")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, options.seconds + 3)

    path = pathlib.Path(options.out)
    text = path.read_text() if path.exists() else ""
    before = list(records_of(text))
    done = {(record.get("who"), record.get("shape")) for record in before}
    with path.open("a") as out:
        if text and not text.endswith("\n"):
            out.write("\n")  # behind the line that was cut off
        try:
            import torch
            if not torch.cuda.is_available():
                raise ImportError("PyTorch sees no CUDA device")
        except (ImportError, OSError, RuntimeError) as error:  # not there, or without a library, or not for this driver
            out.write(json.dumps({"kind": "peer", "who": "PyTorch", "error": str(error)}) + "\n")
            return 0
        bench = Bench(torch, out, deadline)
        if options.warm:
            part, parts = map(int, options.warm.split("/"))
            return bench.warm(list(shapes_of(options.shapes))[part::parts])
        versions = dict(kind="peer", who="PyTorch", version=str(torch.__version__), cudnn=torch.backends.cudnn.version())
        if [record for record in before if record.get("kind") == "peer"][-1:] != [versions]:
            bench.record(**versions)
        return 0 if bench.all(list(shapes_of(options.shapes)), done) else 3


if __name__ == "__main__":
    sys.exit(main())
