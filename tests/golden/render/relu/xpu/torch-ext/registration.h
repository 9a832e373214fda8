// How an extension names itself: the builder chooses the name, so the macros of torch must see it expanded.
#pragma once

#include <Python.h>

#define _KERNEL_CONCATENATE(A, B) A##B
#define _KERNEL_CONCATENATE_EXPAND(A, B) _KERNEL_CONCATENATE(A, B)
#define _KERNEL_STRING(A) #A
#define _KERNEL_STRING_EXPAND(A) _KERNEL_STRING(A)

// The macros of <torch/library.h>.
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) TORCH_LIBRARY_IMPL(NAME, DEVICE, MODULE)

// The macros of <torch/csrc/stable/library.h>.
#define STABLE_TORCH_LIBRARY_EXPAND(NAME, MODULE) STABLE_TORCH_LIBRARY(NAME, MODULE)
#define STABLE_TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) STABLE_TORCH_LIBRARY_IMPL(NAME, DEVICE, MODULE)

// Makes the library an (empty) Python module: importing it loads it, which registers its operators.
#define REGISTER_EXTENSION(NAME)                                                                       \
  PyMODINIT_FUNC _KERNEL_CONCATENATE_EXPAND(PyInit_, NAME)() {                                         \
    static struct PyModuleDef module = {                                                               \
        PyModuleDef_HEAD_INIT, _KERNEL_STRING_EXPAND(NAME), nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr}; \
    return PyModule_Create(&module);                                                                   \
  }
