// How an extension names itself: the builder chooses the name, so the macros of torch must see it expanded.
#pragma once

// The macros of <torch/library.h>.
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) TORCH_LIBRARY_IMPL(NAME, DEVICE, MODULE)

// The macros of <torch/csrc/stable/library.h>.
#define STABLE_TORCH_LIBRARY_EXPAND(NAME, MODULE) STABLE_TORCH_LIBRARY(NAME, MODULE)
#define STABLE_TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) STABLE_TORCH_LIBRARY_IMPL(NAME, DEVICE, MODULE)

// Sources say it so that Python can import the library elsewhere. Here _ops.py loads it, which needs no module of Python.
#define REGISTER_EXTENSION(NAME)
