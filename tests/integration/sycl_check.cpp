// Compile the device code of a SYCL source with the compiler in libsycl-jit, and run one of its kernels on the CPU.
//
// usage: sycl_check SOURCE KERNEL|- OPTION...
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <sycl/sycl.hpp>
#include <vector>

namespace experimental = sycl::ext::oneapi::experimental;

int main(int count, char** arguments) {
  std::stringstream source;
  source << std::ifstream(arguments[1]).rdbuf();
  const std::string name = arguments[2];
  const std::vector<std::string> options(arguments + 3, arguments + count);
  sycl::queue queue{sycl::cpu_selector_v};
  try {
    auto bundle = experimental::create_kernel_bundle_from_source(
        queue.get_context(), experimental::source_language::sycl, source.str());
    auto built = experimental::build(bundle, experimental::properties{experimental::build_options{options}});
    if (name == "-") return 0;
    const std::vector<float> gates{-2, -0.0f, 0, 0.5f, 3, NAN, INFINITY, -INFINITY};
    auto* gate = sycl::malloc_shared<float>(gates.size(), queue);
    auto* value = sycl::malloc_shared<float>(gates.size(), queue);
    auto* result = sycl::malloc_shared<float>(gates.size(), queue);
    for (size_t i = 0; i < gates.size(); ++i) gate[i] = gates[i], value[i] = i + 1, result[i] = -1;
    sycl::kernel kernel = built.ext_oneapi_get_kernel(name);
    queue.submit([&](sycl::handler& handler) {
      handler.set_args(gate, value, result);
      handler.parallel_for(sycl::nd_range<1>{gates.size(), 4}, kernel);
    }).wait();
    for (size_t i = 0; i < gates.size(); ++i) std::cout << result[i] << (i + 1 < gates.size() ? " " : "\n");
    std::cout << queue.get_device().get_info<sycl::info::device::name>() << "\n";
  } catch (const sycl::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
