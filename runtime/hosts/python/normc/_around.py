"""The tensors around a norm, for any host: a residual, a gate, a modulation, angles (docs/around-a-norm.md).

Nothing here knows one of these tensors: which a norm takes, and which gradient is whose, follow from the facts of its
plans (Configure.h). They are lists in the order of common/Around.h.
"""

import re

from ._library import Error

NO_GRADIENT = -2


def inputs_of(known):
    """Returns the names of the tensors that a forward takes beside x, and whether it makes residual_out."""
    uses = [(each["name"], each["use"]) for each in known["around"]]
    return tuple(name for name, use in uses if use == "read"), ("residual_out", "written") in uses


def streamed(norm, data, residual, facts):
    """Returns the text of a norm whose residual has another type than x, `data`; facts(text) are those of a forward.
    The type of a stream is part of a text, so a graph that was traced has it."""
    head, _, rest = norm.partition("]")
    text = f"{head}]{{stream={residual}" + ("," + rest[1:] if rest[:1] == "{" else "}" + rest)
    try:
        facts(text)
    except Error as error:
        if "residual" not in inputs_of(facts(norm))[0]:
            return norm  # `ordered` says that the norm takes none
        refused = re.search(r"error: (.* \[P15\])", str(error))
        name = norm.split("[")[0].split("#")[0]
        raise TypeError(f"residual has the type {residual} and x {data}, which {name} does not take: "
                        f"{refused[1] if refused else error}; cast residual to {data}") from None
    return text


def coded(known):
    """Returns how many outputs a norm has that quantizes: codes in place of y, residual_out, scales; 0 for others."""
    return bool(known["codes"]) * (1 + sum(each["use"] == "written" for each in known["around"]))


def refuse_gradient(norm):
    """Raises: codes are no function that has a gradient."""
    raise TypeError(f"{norm} quantizes its output, and codes have no gradient: call it without gradients, and train "
                    "the norm without 'quantize'")


def kept(known, inputs):
    """Returns where the tensors that a backward reads are, as places in inputs and -1 for residual_out; whether it
    reads x; and for each input where its gradient is, as a place in dx, dscale, dbias and the others that a backward
    can make, -1 for dy, and NO_GRADIENT for a table, which has none."""
    around = known["around"]
    read = [each["name"] for each in around if each["use"] == "read"]
    made = ["dx", "dscale", "dbias", *(each["name"] for each in around if each["use"] == "optional")]
    same = {each["name"]: each["same_as"] for each in around if each["use"] == "same"}
    names = [same.get("d" + name, "d" + name) for name in inputs]
    return (tuple(inputs.index(name) if name in inputs else -1 for name in read), known["reads_x"],
            tuple(-1 if name == "dy" else made.index(name) if name in made else NO_GRADIENT for name in names))


def ordered(norm, inputs, around):
    """Returns the tensors of keywords in the order of a norm, which takes all of them."""
    given = {name: tensor for name, tensor in around.items() if tensor is not None}
    missing = [each for each in inputs if each not in given]
    if missing:
        raise TypeError(f"{norm} takes {', '.join(inputs)} beside x; missing is {', '.join(missing)}")
    unknown = [each for each in given if each not in inputs]
    if unknown:
        takes = f"takes {', '.join(inputs)}" if inputs else "takes nothing"
        raise TypeError(f"{norm} {takes} beside x; given is {', '.join(unknown)}")
    return tuple(given[each] for each in inputs)
