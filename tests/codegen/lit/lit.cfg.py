# Every lowering stage as text. `%emit STAGE PROBLEM [TARGET [SCHEDULE]]` prints one
# (tests/codegen/emit.cpp), `%opt PASS FILE` a file after one pass (opt.cpp); the programs come from ctest as parameters.
import shlex

import lit.formats

config.name = "normc"
config.suffixes = [".test", ".mlir"]
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = __file__.rsplit("/", 1)[0]
config.test_exec_root = lit_config.params["scratch"]
config.substitutions += [
    ("%emit", shlex.quote(lit_config.params["emit"])),
    ("%opt", shlex.quote(lit_config.params["opt"])),
    ("%check", shlex.quote(lit_config.params["filecheck"]) + ' "%s"'),
]
