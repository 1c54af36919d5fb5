"""Puts what was built into a wheel: of `normc` the tree python/normc of a build folder, of `normc-compiler` the
program with LLVM in it.

`pip install .` builds in build/. scripts/wheel builds elsewhere, for old machines, and says so:
    NORMC_WHEEL_TREE   the tree of `normc`
    NORMC_WHEEL_TAG    the platform of the wheel, e.g. manylinux_2_28_x86_64
    NORMC_WHEEL_BUILT  set: build/ is complete, nothing is built
"""

import os
import pathlib
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = pathlib.Path(__file__).resolve().parents[2] if "__file__" in globals() else None


def build(targets):
    if os.environ.get("NORMC_WHEEL_BUILT"):
        return
    subprocess.run(["scripts/build"], cwd=ROOT, check=True, env={**os.environ, "TARGETS": " ".join(targets)})


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        platform = os.environ.get("NORMC_WHEEL_TAG") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        include = build_data["force_include"]
        if self.metadata.name == "normc-compiler":
            build(["normc_portable"])
            package = ROOT / "runtime/hosts/compiler/normc_compiler"
            include[str(package / "__init__.py")] = "normc_compiler/__init__.py"
            include[str(ROOT / "build/portable/bin/normc")] = "normc_compiler/bin/normc"
            include[str(ROOT / "build/lib/libnormc_runtime.so.0")] = "normc_compiler/lib/libnormc_runtime.so.0"
            return
        tree = os.environ.get("NORMC_WHEEL_TREE")
        if tree is None:
            build(["normc_python"])
            tree = ROOT / "build/python/normc"
        for file in pathlib.Path(tree).rglob("*"):
            if file.is_file() and file.suffix in (".py", ".npk") or ".so" in file.name:
                include[str(file)] = f"normc/{file.relative_to(tree)}"
