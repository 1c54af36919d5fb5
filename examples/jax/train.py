"""Trains a small network in JAX to tell which of two numbers is larger, with normc's PowerNorm and RMSNorm.

    PYTHONPATH=build/python python3 examples/jax/train.py

A step is one function: jax.jit compiles it, the state goes in and comes out, and both are given away.
"""

import functools

import jax
import jax.numpy as jnp
import normc.jax as nj

WIDTH, STEPS, RATE = 64, 200, 0.1


def start(key):
    first, second = jax.random.split(key)
    return {
        "in": jax.random.normal(first, (2, WIDTH)),
        "power": nj.Norm("power_norm", WIDTH).init(),
        "rms": nj.Norm("rms_norm", WIDTH).init(),
        "out": jax.random.normal(second, (WIDTH,)) / WIDTH,
    }


def predict(params, state, x, training):
    h = x @ params["in"]
    h, state = nj.power_norm(h, **params["power"], state=state, training=training)
    return nj.rms_norm(jax.nn.gelu(h), **params["rms"]) @ params["out"], state


def loss(params, state, x):
    logits, state = predict(params, state, x, training=True)
    signs = jnp.where(x[:, 0] > x[:, 1], 1.0, -1.0)
    return jnp.mean(jax.nn.softplus(-signs * logits)), state


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(params, state, x):
    of = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True, allow_int=True)  # int: the state counts its steps
    (value, after), (gradients, cotangents) = of(params, state, x)
    params = jax.tree.map(lambda p, g: p - RATE * g, params, gradients)
    return params, nj.next_state(after, cotangents), value


params, state = start(jax.random.key(0)), nj.init_state("power_norm", WIDTH)
for number, key in enumerate(jax.random.split(jax.random.key(1), STEPS)):
    params, state, value = step(params, state, jax.random.normal(key, (128, 2)))
    if number % 50 == 0 or number == STEPS - 1:
        print(f"step {number + 1}: loss {value:.3f}")

x = jax.random.normal(jax.random.key(2), (1000, 2))
logits, _ = jax.jit(predict, static_argnums=3)(params, state, x, False)
right = jnp.mean((logits > 0) == (x[:, 0] > x[:, 1]))
print(f"right in evaluation: {right:.1%}")
assert right > 0.95
