"""The functions of this build, and names for them in other frameworks that no other build has."""

from importlib.util import find_spec
from pathlib import Path

import tvm_ffi

_NAME = "_relu_tvm_ffi_cpu_golden"

ops = tvm_ffi.load_module(Path(__file__).parent / f"{_NAME}.so")

has_torch = find_spec("torch") is not None
has_jax = find_spec("jax") is not None and find_spec("jax_tvm_ffi") is not None


def torch_add_op_namespace_prefix(op_name: str) -> str:
    """Return the full name of a PyTorch operator of this build."""
    return f"{_NAME}::{op_name}"


def jax_add_ffi_target_name_prefix(target_name: str) -> str:
    """Return the full name of a JAX FFI target of this build."""
    return f"{_NAME}.{target_name}"


def jax_register_ffi_target(target_name: str, function=None, **options) -> None:
    """Register a function of this build (the one of that name) as a JAX FFI target; options go to `jax_tvm_ffi`."""
    import jax_tvm_ffi

    function = getattr(ops, target_name) if function is None else function
    jax_tvm_ffi.register_ffi_target(jax_add_ffi_target_name_prefix(target_name), function, **options)


def jax_ffi_call(target_name: str, *arguments, **options):
    """Return what `jax.ffi.ffi_call` returns for a target of this build."""
    import jax

    return jax.ffi.ffi_call(jax_add_ffi_target_name_prefix(target_name), *arguments, **options)
