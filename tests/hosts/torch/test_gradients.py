"""Gradients: against differences in f64, under torch.func, and what has none."""

import normc.torch as nt
import pytest
import torch
import torch.utils.checkpoint
from torch.autograd import forward_ad
from normc.torch import _ops
from torch.func import functional_call, grad, vmap

from kit import CARRIED, EXACT, STATES, data_of, module_of


def function_of(module):
    """Returns the module as a function of x and its parameters, and these."""
    names = [name for name, _ in module.named_parameters()]
    return (lambda x, *values: functional_call(module, dict(zip(names, values)), (x,))), list(module.parameters())


@pytest.mark.parametrize("fast", [False, True], ids=["all", "fast"])
@pytest.mark.parametrize("name", EXACT)
def test_gradcheck_in_training(name, fast):
    module, shape = module_of(name, torch.float64)
    f, parameters = function_of(module)
    assert torch.autograd.gradcheck(f, (data_of(shape, torch.float64).requires_grad_(), *parameters), fast_mode=fast)


@pytest.mark.parametrize("name", STATES)
def test_gradcheck_in_evaluation(name):
    module, shape = module_of(name, torch.float64)
    x = data_of(shape, torch.float64).requires_grad_()
    for _ in range(3):
        module(x).sum().backward()
    f, parameters = function_of(module.eval())
    assert torch.autograd.gradcheck(f, (x, *parameters))
    assert torch.autograd.gradcheck(f, (x, *parameters), fast_mode=True)


@pytest.mark.parametrize("wanted", ["x", "weight", "bias"])
@pytest.mark.parametrize("name", ["layer_norm", "batch_norm of images", "power_norm"])
def test_only_the_wanted_gradients(name, wanted):
    module, shape = module_of(name)
    x, dy = data_of(shape), data_of(shape, seed=6)
    every = {"x": x.clone().requires_grad_(), **dict(module.named_parameters())}
    module(every["x"]).backward(dy)
    full = every[wanted].grad.clone()
    module, _ = module_of(name)
    every = {"x": x.clone().requires_grad_(), **dict(module.named_parameters())}
    for key, tensor in every.items():
        tensor.requires_grad_(key == wanted)
    module(every["x"]).backward(dy)
    assert torch.equal(every[wanted].grad, full)
    assert all(tensor.grad is None for key, tensor in every.items() if key != wanted)


NO_SECOND = "norms of normc have no second derivative, and a gradient of one was differentiated again; use the norms of torch.nn"


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm", "power_norm"])
def test_a_second_derivative_is_refused(name):
    module, shape = module_of(name)
    x = data_of(shape).requires_grad_()
    (dx,) = torch.autograd.grad(module(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=NO_SECOND):
        dx.sum().backward()


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", ["layer_norm", "batch_norm", "power_norm"])
def test_a_second_derivative_is_refused_where_dy_is_constant(name, training):
    module, shape = module_of(name)
    x = data_of(shape).requires_grad_()
    (dx,) = torch.autograd.grad(module.train(training)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=NO_SECOND):
        dx.square().sum().backward()


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm"])
def test_a_second_derivative_of_a_transform_is_refused(name):
    module, shape = module_of(name)
    f = lambda x: module.eval()(x).square().sum()
    x = data_of(shape)
    for second in (grad(lambda x: grad(f)(x).square().sum()), torch.func.jacrev(torch.func.jacrev(f))):
        with pytest.raises(RuntimeError, match=NO_SECOND):
            second(x)


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm of images", "power_norm"])
def test_a_graph_of_the_backward_changes_no_gradient(name):
    gradients = []
    for recorded in (False, True):
        module, shape = module_of(name)
        x, dy = data_of(shape).requires_grad_(), data_of(shape, seed=6)
        gradients.append(torch.autograd.grad(module(x), (x, *module.parameters()), dy, create_graph=recorded))
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_a_graph_of_the_backward_of_a_checkpoint():
    module, shape = module_of("layer_norm")
    x = data_of(shape).requires_grad_()
    of = lambda y: torch.autograd.grad(y.square().sum(), x, create_graph=True)[0]
    assert torch.equal(of(torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False)), of(module(x)))


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm"])
def test_forward_mode_is_refused(name):
    module, shape = module_of(name)
    x = data_of(shape)
    with pytest.raises(NotImplementedError, match="norms of normc have no jvp; use reverse mode"):
        torch.func.jvp(module, (x,), (x,))
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp"):
        module(forward_ad.make_dual(x.requires_grad_(), x.detach()))


LOST = "a tensor of a norm has a tangent of torch.autograd.forward_ad, and norms of normc have no jvp; use reverse mode"


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", ["layer_norm", "batch_norm", "power_norm"])
def test_a_tangent_that_needs_no_gradient_is_refused(name, training):
    module, shape = module_of(name)
    module.requires_grad_(False).train(training)
    x = data_of(shape)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        with pytest.raises(NotImplementedError, match=LOST):
            module(dual)
        with torch.no_grad(), pytest.raises(NotImplementedError, match=LOST):
            module(dual)
        module(x)  # it has no tangent


def test_tangents_of_parameters_and_of_tensors_around_a_norm_are_refused():
    x = data_of((5, 24))
    norm = nt.Norm("rms_norm_residual", 24, affine=False)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        with pytest.raises(NotImplementedError, match=LOST):
            nt.functional.layer_norm(x, (24,), forward_ad.make_dual(x[0], x[1]))
        with pytest.raises(NotImplementedError, match=LOST):
            norm(x, residual=dual)


@pytest.mark.parametrize("name", EXACT)
def test_func_grad_is_autograd(name):
    module, shape = module_of(name)
    x, dy = data_of(shape), data_of(shape, seed=6)
    values = {key: value.detach() for key, value in module.named_parameters()}
    buffers = {key: value.clone() for key, value in module.named_buffers()}  # a transform may change its arguments
    loss = lambda values, x, buffers: (functional_call(module, {**values, **buffers}, (x,)) * dy).sum()
    ours, dx = grad(loss, argnums=(0, 1))(values, x, buffers)
    x = x.clone().requires_grad_()
    (module(x) * dy).sum().backward()
    assert torch.equal(dx, x.grad)
    assert all(torch.equal(ours[key], value.grad) for key, value in module.named_parameters())
    assert all(torch.equal(buffers[key], value) for key, value in module.named_buffers())


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "group_norm", "instance_norm"])
@pytest.mark.parametrize("dim", [0, 1])
def test_vmap_is_a_loop(name, dim):
    module, shape = module_of(name)
    x = torch.stack([data_of(shape, seed=seed) for seed in range(3)], dim)
    with torch.no_grad():
        assert torch.equal(vmap(module, in_dims=dim)(x), torch.stack([module(x.select(dim, i)) for i in range(3)]))
    for each in (module, module.eval()):
        assert torch.equal(vmap(each, in_dims=dim)(x), torch.stack([each(x.select(dim, i)) for i in range(3)]))


@pytest.mark.parametrize("layout, rows", [("features_last", (8, 8)), ("segments", (8, 8)), ("channels_first", (8, 4))])
@pytest.mark.parametrize("masked", [False, True], ids=["all rows", "mask"])
def test_vmap_is_a_loop_in_any_layout(masked, layout, rows):
    norm = nt.Norm("layer_norm", 8, layout=layout)
    x = data_of((3, 8, 8, 4) if layout == "channels_first" else (3, 8, 8, 8))
    mask = torch.arange(rows[0] * rows[1]).view(rows) % 3 != 1 if masked else None
    ours = vmap(lambda each: norm(each, mask))(x)
    assert torch.equal(ours, torch.stack([norm(each, mask) for each in x]))


@pytest.mark.parametrize("text, one", [
    ("layer_norm[*x24]", True), ("group_norm[*x24]{groups=3}", True), ("l2_norm[*x24]", True),
    ("batch_norm[*x24]", False), ("group_norm_segment[*x*x24]{groups=3}", False),
])
def test_rows_with_statistics_of_their_own_are_one_call_under_vmap(text, one):
    assert _ops._has_rows_alone(text, data_of((4, 24)), None, None) == one


def test_vmap_of_a_user_s_norm_that_has_the_name_of_a_norm_of_rows(tmp_path):
    path = tmp_path / "mine.norm"
    path.write_text("norm layer_norm {\n  reduce rows\n  center current\n  moment central\n  divide_by current\n"
                    "  backward exact\n  epsilon 1e-3\n}\n")
    norm, x = nt.norm(path, 24), data_of((3, 5, 24))
    assert torch.equal(vmap(norm)(x), torch.stack([norm(each) for each in x]))


def test_vmap_over_parameters():
    module, shape = module_of("layer_norm")
    x, scales = data_of(shape), data_of((3, 24))
    ours = vmap(lambda w: nt.functional.layer_norm(x, (24,), w))(scales)
    assert torch.equal(ours, torch.stack([nt.functional.layer_norm(x, (24,), w) for w in scales]))


@pytest.mark.parametrize("name", ["batch_norm", "batch_norm of images", "power_norm_v"])
def test_an_ensemble_trains_the_state_of_each(name):
    modules, shape = [module_of(name)[0] for _ in range(3)], module_of(name)[1]
    parameters, buffers = torch.func.stack_module_state(modules)
    x = data_of((3, *shape))
    loss = lambda parameters, buffers, x: functional_call(modules[0], (parameters, buffers), (x,)).square().sum()
    gradients = vmap(grad(loss))(parameters, buffers, x)
    for i, module in enumerate(modules):
        module(x[i]).square().sum().backward()
        for key, buffer in module.named_buffers():
            assert torch.equal(buffers[key][i], buffer)
        for key, parameter in module.named_parameters():
            assert (gradients[key][i] - parameter.grad).abs().max() <= 1e-5 * parameter.grad.abs().max()


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "group_norm"])
def test_gradients_of_each_sample(name):
    module, shape = module_of(name)
    x, dy = data_of((4, *shape)), data_of((4, *shape), seed=6)
    values = {key: value.detach() for key, value in module.named_parameters()}
    loss = lambda values, x, dy: (functional_call(module, values, (x,)) * dy).sum()
    ours = vmap(grad(loss), in_dims=(None, 0, 0))(values, x, dy)
    for i in range(4):
        module.zero_grad()
        (module(x[i]) * dy[i]).sum().backward()
        for key, value in module.named_parameters():
            assert (ours[key][i] - value.grad).abs().max() < 1e-5


@pytest.mark.parametrize("name", CARRIED)
def test_power_norm_says_that_a_transform_cannot_change_its_state(name):
    module, shape = module_of(name)
    with pytest.raises(RuntimeError, match="changes its state"):
        grad(lambda x: module(x).sum())(data_of(shape))


def test_functional_call_with_a_state():
    module, shape = module_of("batch_norm")
    x = data_of(shape)
    given = {key: value.clone() for key, value in module.state_dict().items()}
    y = functional_call(module, given, (x,))
    assert module.num_batches_tracked == 0 and given["num_batches_tracked"] == 1
    assert torch.equal(y, module(x)) and torch.equal(given["running_var"], module.running_var)
