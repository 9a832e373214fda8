// GCC 14, called where an exception leaves a function that is noexcept.
#include <exception>

extern "C" {
void* __cxa_begin_catch(void*) noexcept;

void __cxa_call_terminate(void* exception) noexcept {
  if (exception != nullptr) __cxa_begin_catch(exception);
  std::terminate();
}
}
