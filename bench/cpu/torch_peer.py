"""PyTorch as a contestant: times its own operators when told to.

Reads one JSON command a line, answers with one JSON line:

    {"do": "hello"}                        {"version": "2.15.0"}
    {"do": "prepare", "norm": ..., "entry": ..., "dtype": ..., "segments": ..., "rows": ..., "features": ...,
     "channels_first": ..., "groups": ..., "epsilon": ..., "threads": ..., "compiled": ...}
                                           {"id": 0}  or  {"error": "..."}
    {"do": "run", "id": 0, "calls": 10}    {"seconds": 0.0012}
    {"do": "time"}                         {"seconds": 3.1}   of processor time, so far
    {"do": "clear"}                        {}                 frees what was prepared

An operator allocates its outputs, as it does for every user. The C library is told to keep freed memory, so that
this costs no page faults after the first calls: PyTorch at its best.
"""

import ctypes
import functools
import json
import sys
import time

try:
    import torch
    import torch._functorch.config
    import torch._inductor.config
except ImportError as error:
    print(json.dumps({"error": f"cannot be imported: {error}"}), flush=True)
    sys.exit(0)

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}
aten = torch.ops.aten


def layer_norm(c, x, dy, scale, bias):
    shape = [c["features"]]
    y, mean, rstd = aten.native_layer_norm(x, shape, scale, bias, c["epsilon"])
    if c["entry"] != "backward":
        return lambda: aten.native_layer_norm(x, shape, scale, bias, c["epsilon"])
    return lambda: aten.native_layer_norm_backward(dy, x, shape, mean, rstd, scale, bias, [True] * 3)


def rms_norm(c, x, dy, scale, bias):
    shape = [c["features"]]
    if c["entry"] != "backward":
        return lambda: torch.nn.functional.rms_norm(x, shape, scale, c["epsilon"])
    with torch.enable_grad():  # no backward operator of its own on a CPU: what autograd puts together
        inputs = [x.detach().requires_grad_(), scale.requires_grad_()]
        y = torch.nn.functional.rms_norm(inputs[0], shape, inputs[1], c["epsilon"])
    return lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)


def batch_norm(c, x, dy, scale, bias):
    mean, var = torch.zeros_like(scale), torch.ones_like(scale)
    train = not c["entry"].startswith("infer")
    forward = lambda: aten.native_batch_norm(x, scale, bias, mean, var, train, 0.1, c["epsilon"])
    if not c["entry"].endswith("backward"):
        return forward
    y, saved_mean, saved_rstd = forward()
    return lambda: aten.native_batch_norm_backward(
        dy, x, scale, mean, var, saved_mean, saved_rstd, train, c["epsilon"], [True] * 3)


def group_norm(c, x, dy, scale, bias):
    sizes = (c["segments"] * c["rows"], c["features"], 1, c["groups"])
    y, mean, rstd = aten.native_group_norm(x, scale, bias, *sizes, c["epsilon"])
    if c["entry"] != "backward":
        return lambda: aten.native_group_norm(x, scale, bias, *sizes, c["epsilon"])
    return lambda: aten.native_group_norm_backward(dy, x, mean, rstd, scale, *sizes, [True] * 3)


def power_norm_released(c, x, dy, scale, bias):
    """The formulas of the released algorithm after its warmup, put together from operators in place where they can be."""
    n, groups, epsilon, decay = x.shape[0], c["groups"], c["epsilon"], 0.9
    psi2, nu = torch.ones_like(scale), torch.zeros_like(scale)

    def forward():
        heads = x.view(n, groups, -1)
        r = (heads * heads).mean(-1, keepdim=True).add_(1e-5).rsqrt_()
        u = (heads * r).view(n, -1)
        moment = (u * u).mean(0)
        z = u * (psi2 + epsilon).rsqrt_()
        psi2.mul_(decay).add_(moment, alpha=1 - decay)
        return torch.addcmul(bias, z, scale), (r, u, z, (moment + epsilon).rsqrt_())

    if c["entry"] != "backward":
        return forward
    _, (r, u, z, s) = forward()

    def backward():
        a = dy * scale
        a.addcmul_(z, nu, value=decay - 1)
        nu.add_((a * z).mean(0))
        du = a.mul_(s).view(n, groups, -1)
        heads = u.view(n, groups, -1)
        dx = torch.addcmul(du, heads, (du * heads).mean(-1, keepdim=True), value=-1).mul_(r)
        return dx.view(n, -1), (dy * z).sum(0), dy.sum(0)

    return backward


def rms_norm_residual(c, x, residual, scale):
    h = x + residual
    return torch.nn.functional.rms_norm(h, (c["features"],), scale, c["epsilon"]), h


def rms_norm_sum(c, x, residual, scale):
    return (torch.nn.functional.rms_norm(x + residual, (c["features"],), scale, c["epsilon"]),)


def gemma_sandwich(c, x, residual, scale):
    return (torch.nn.functional.rms_norm(x, (c["features"],), 1 + scale, c["epsilon"]) + residual,)


def delta_gated_rms_norm(c, x, gate, scale):
    y = torch.nn.functional.rms_norm(x, (c["features"],), scale, c["epsilon"])
    return (y * torch.nn.functional.silu(gate),)


def adaptive_layer_norm(c, x, mod_scale, mod_shift):
    v = torch.nn.functional.layer_norm(x, (c["features"],), None, None, c["epsilon"])
    v = v.view(c["segments"], c["rows"], c["features"])
    return (((1 + mod_scale) * v + mod_shift).view_as(x),)


def batch_norm_relu(c, x, scale, bias, mean, var):
    train = not c["entry"].startswith("infer")
    y = torch.nn.functional.batch_norm(x, mean, var, scale, bias, train, 0.1, c["epsilon"])
    return (torch.relu(y),)


# Plain formulas, run as they stand or compiled as one, with the tensors that each takes behind x.
AROUND = {
    "rms_norm_residual": (rms_norm_residual, ["residual", "scale"]),
    "rms_norm_sum": (rms_norm_sum, ["residual", "scale"]),
    "gemma_sandwich": (gemma_sandwich, ["residual", "scale"]),
    "delta_gated_rms_norm": (delta_gated_rms_norm, ["gate", "scale"]),
    "adaptive_layer_norm": (adaptive_layer_norm, ["mod_scale", "mod_shift"]),
    "batch_norm_relu": (batch_norm_relu, ["scale", "bias", "mean", "var"]),
}


def around(c, x, dy, scale, bias):
    formula, names = AROUND[c["norm"]]
    vectors = (c["segments"], 1, c["features"])
    tensors = {"scale": scale, "bias": bias, "mean": torch.zeros_like(scale), "var": torch.ones_like(scale)}
    for name in names:
        if name not in tensors:
            tensors[name] = tensor(name, vectors if name.startswith("mod_") else x.shape, x.dtype)
    others = [tensors[name] for name in names]
    call = functools.partial(formula, c)
    if c["compiled"]:
        call = torch.compile(call, fullgraph=True, dynamic=False)
    if not c["entry"].endswith("backward"):
        return lambda: call(x, *others)
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_()]
        inputs += [t if name in ("mean", "var") else t.detach().requires_grad_() for name, t in zip(names, others)]
        outputs = call(*inputs)
    wanted = [t for t in inputs if t.requires_grad]
    gradients = [dy] + [tensor("dstream", x.shape, x.dtype) for _ in outputs[1:]]
    return lambda: torch.autograd.grad(outputs, wanted, gradients, retain_graph=True)


NORMS = {
    **dict.fromkeys(AROUND, around),
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "batch_norm": batch_norm,
    "group_norm": group_norm,
    "power_norm_released": power_norm_released,
}
CHANNELS_FIRST = {"batch_norm"}


@functools.lru_cache(maxsize=7)  # the norms of one race share them
def tensor(name, shape, dtype):
    return torch.randn(shape).to(dtype)


def prepare(command):
    segments, rows, features = command["segments"], command["rows"], command["features"]
    if command["norm"] not in NORMS:
        raise ValueError(f"has no {command['norm']}")
    if command["channels_first"] and command["norm"] not in CHANNELS_FIRST:
        raise ValueError(f"is not asked for {command['norm']} with channels first")
    if command["entry"] == "infer_backward" and command["norm"] != "batch_norm":
        raise ValueError(f"is not asked for the gradient of inference of {command['norm']}")
    if command["compiled"] and command["norm"] not in AROUND:
        raise ValueError(f"is not compiled for {command['norm']}")
    torch.set_num_threads(command["threads"])
    shape = (segments, features, rows) if command["channels_first"] else (segments * rows, features)
    dtype = DTYPES[command["dtype"]]
    x = tensor("x", shape, dtype)
    dy = tensor("dy", shape, dtype) if command["entry"].endswith("backward") else None
    params = torch.float64 if dtype == torch.float64 else torch.float32
    scale = torch.ones(features, dtype=params)
    bias = torch.zeros(features, dtype=params)
    call = NORMS[command["norm"]](command, x, dy, scale, bias)
    call()
    return command["threads"], call


def run(prepared, calls):
    threads, call = prepared
    torch.set_num_threads(threads)
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - begin


def main():
    c_library = ctypes.CDLL(None)
    c_library.mallopt(M_MMAP_MAX, 0)
    c_library.mallopt(M_TRIM_THRESHOLD, -1)
    # A compiled backward is called many times; code for another number of threads is not this one's.
    torch._functorch.config.donated_buffer = False
    torch._inductor.config.force_disable_caches = True
    prepared = []
    with torch.no_grad():
        for line in sys.stdin:
            command = json.loads(line)
            try:
                if command["do"] == "hello":
                    answer = {"version": torch.__version__}
                elif command["do"] == "prepare":
                    prepared.append(prepare(command))
                    answer = {"id": len(prepared) - 1}
                elif command["do"] == "run":
                    answer = {"seconds": run(prepared[command["id"]], command["calls"])}
                elif command["do"] == "time":
                    answer = {"seconds": time.process_time()}
                elif command["do"] == "clear":
                    prepared.clear()
                    tensor.cache_clear()
                    torch.compiler.reset()
                    answer = {}
                else:
                    answer = {"error": f"does not know the command {command['do']}"}
            except Exception as error:  # whatever PyTorch throws is the answer
                answer = {"error": (str(error).splitlines() or [repr(error)])[0]}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
