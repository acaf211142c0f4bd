"""The compiled kernels, which are optional: without a compiler the package installs all the same, and trains slower."""

from setuptools import Extension, setup

HERE = "src/privet/training/native"

setup(
    ext_modules=[
        Extension(
            "privet.training.native._kernels",
            sources=[f"{HERE}/{name}.c" for name in ("module", "kernels", "team", "cipher")],
            depends=[
                f"{HERE}/{name}.h"
                for name in ("kernels", "team", "cipher", "body", "body_noise", "body_norms", "body_layers")
            ],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
