// GCC 11, called by allocators.
#include <new>

namespace std {
__attribute__((noreturn)) void __throw_bad_array_new_length();
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std
