// How an extension names itself. The name changes with every edit of the kernel, so it is linked in, and what is compiled stays the same:
// TORCH_EXTENSION_NAME is KERNEL_OPS here, which stands for the text that the linker brings. Under any other name,
// also that of a source which is compiled with KERNEL_OPS because it uses the name in a way of its own, all is as in torch.
#pragma once

extern "C" __attribute__((visibility("hidden"))) const char kernel_ops_name[];

#define KERNEL_TEXT(X) #X
#define KERNEL_JOIN(A, B) A##B
#define KERNEL_JOINED(A, B) KERNEL_JOIN(A, B)
#define KERNEL_SECOND(A, B, ...) B
#define KERNEL_CHOSEN(...) KERNEL_SECOND(__VA_ARGS__, )
#define KERNEL_NAME_OF_KERNEL_OPS , kernel_ops_name
#define KERNEL_NAMESPACE(NAME) KERNEL_CHOSEN(KERNEL_NAME_OF_##NAME, KERNEL_TEXT(NAME))

// What the macros of torch do: a function that registers, and a constant whose initializer calls it.
#define KERNEL_REGISTER(INITIALIZER, LIBRARY, KIND, NAMESPACE, KEY, MODULE, ID)          \
  static void KERNEL_JOINED(kernel_register_, ID)(LIBRARY&);                             \
  static const INITIALIZER KERNEL_JOINED(kernel_registered_, ID)(                        \
      LIBRARY::Kind::KIND, &KERNEL_JOINED(kernel_register_, ID), NAMESPACE, KEY, __FILE__, __LINE__); \
  void KERNEL_JOINED(kernel_register_, ID)(LIBRARY & MODULE)

// With <torch/library.h>.
#define KERNEL_CLASSIC(KIND, NAMESPACE, KEY, MODULE) \
  KERNEL_REGISTER(torch::detail::TorchLibraryInit, torch::Library, KIND, NAMESPACE, KEY, MODULE, __COUNTER__)
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) KERNEL_CLASSIC(DEF, KERNEL_NAMESPACE(NAME), std::nullopt, MODULE)
#define TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) \
  KERNEL_CLASSIC(IMPL, KERNEL_NAMESPACE(NAME), std::make_optional(c10::DispatchKey::DEVICE), MODULE)

// With <torch/csrc/stable/library.h>.
#define KERNEL_STABLE(KIND, NAMESPACE, KEY, MODULE)                                                          \
  KERNEL_REGISTER(                                                                                           \
      torch::stable::detail::StableTorchLibraryInit, torch::stable::detail::StableLibrary, KIND, NAMESPACE, KEY, MODULE, \
      __COUNTER__)
#define STABLE_TORCH_LIBRARY_EXPAND(NAME, MODULE) KERNEL_STABLE(DEF, KERNEL_NAMESPACE(NAME), nullptr, MODULE)
#define STABLE_TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) \
  KERNEL_STABLE(IMPL, KERNEL_NAMESPACE(NAME), KERNEL_TEXT(DEVICE), MODULE)

// Sources say it so that Python can import the library elsewhere. Here _ops.py loads it, which needs no module of Python.
#define REGISTER_EXTENSION(NAME)
