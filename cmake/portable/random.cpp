// What libstdc++'s own members call in place of arc4random of glibc 2.36: they need numbers that differ, not secret ones.
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern "C" uint32_t kernel_random() {
  uint32_t number;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}
