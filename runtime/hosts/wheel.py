"""Puts what was built into a wheel: of `normc` the tree python/normc of a build folder, of `normc-compiler` the
program with LLVM in it.

`pip install .` builds in build/, for the hosts of the Python that scripts/setup --hosts made, or of the one that runs
pip. scripts/wheel builds elsewhere, for old machines, and says so:
    NORMC_WHEEL_TREE   the tree of `normc`
    NORMC_WHEEL_TAG    the platform of the wheel, e.g. manylinux_2_28_x86_64
    NORMC_WHEEL_BUILT  set: build/ is complete, nothing is built
"""

import os
import pathlib
import subprocess
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = pathlib.Path(__file__).resolve().parents[2] if "__file__" in globals() else None


# Debian's packages whose code a wheel has in its libraries and programs; NOTICE says what each is for.
LINKED = {
    "normc": ["nlohmann-json3-dev", "llvm-22-dev", "libstdc++-*-dev"],
    "normc_compiler": ["nlohmann-json3-dev", "llvm-22-dev", "libcli11-dev", "libzstd-dev", "zlib1g-dev", "libstdc++-*-dev"],
}
HOSTS = "import importlib.util as u, sys; sys.exit(not (u.find_spec('torch') or u.find_spec('jaxlib')))"


def environment():
    """Returns the environment without what pip puts before the packages that are installed, to hide them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def host_python(candidates):
    """Returns the first Python that has torch or jax: headers of a host come with its package."""
    for python in candidates:
        if os.path.exists(python) and not subprocess.run([python, "-c", HOSTS], env=environment()).returncode:
            return python
    raise RuntimeError(f"normc is built for a host framework, and none of {', '.join(candidates)} has torch or jax; "
                       "install one first (pip install torch, or jax), or all by scripts/setup --hosts")


def build(target, options=()):
    if os.environ.get("NORMC_WHEEL_BUILT"):
        return
    subprocess.run(["scripts/build", "build", *options], cwd=ROOT, check=True, env={**environment(), "TARGETS": target})


def licenses(package):
    """Returns the licence texts of a wheel: where each is, and where it goes."""
    texts = {str(ROOT / name): f"{package}/licenses/{name}" for name in ("LICENSE", "NOTICE")}
    for name in LINKED[package]:
        found = sorted(pathlib.Path("/usr/share/doc").glob(f"{name}/copyright"))
        if not found and "NORMC_WHEEL_TAG" not in os.environ:
            continue  # installed from a clone, not given away, on a system that keeps them elsewhere
        if not found:
            raise RuntimeError(f"there is no /usr/share/doc/{name}/copyright, the licence of what is linked; install that package")
        texts[str(found[-1])] = f"{package}/licenses/{found[-1].parent.name}.txt"
    return texts


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        platform = os.environ.get("NORMC_WHEEL_TAG") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        include = build_data["force_include"]
        include.update(licenses(self.metadata.name.replace("-", "_")))
        if self.metadata.name == "normc-compiler":
            build("normc_portable")
            package = ROOT / "runtime/hosts/compiler/normc_compiler"
            include[str(package / "__init__.py")] = "normc_compiler/__init__.py"
            include[str(ROOT / "build/portable/bin/normc")] = "normc_compiler/bin/normc"
            include[str(ROOT / "build/lib/libnormc_runtime.so.0")] = "normc_compiler/lib/libnormc_runtime.so.0"
            return
        tree = os.environ.get("NORMC_WHEEL_TREE")
        if tree is None:
            python = host_python([str(ROOT / ".deps/python/bin/python"), sys.executable])
            build("normc_python", [f"-DNORMC_HOST_PYTHON={python}"])
            tree = ROOT / "build/python/normc"
        sources = ROOT / "runtime/hosts/python/normc"
        for file in pathlib.Path(tree).rglob("*"):
            module = file.suffix == ".py" and (sources / file.relative_to(tree)).is_file()  # not one that is gone
            if module or file.suffix == ".npk" or ".so" in file.name:
                include[str(file)] = f"normc/{file.relative_to(tree)}"
