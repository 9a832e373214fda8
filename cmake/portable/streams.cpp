// GCC 13: whoever includes <iostream> names this function, and its library makes the standard streams. Older ones do so for an
// object like this.
#include <ios>

namespace {
__attribute__((init_priority(101))) std::ios_base::Init streams;
}

namespace std {
void ios_base_library_init();
void ios_base_library_init() {}
}  // namespace std
