// glibc 2.30.
#include <sys/syscall.h>
#include <unistd.h>

extern "C" pid_t thread_id() noexcept asm("gettid");
extern "C" pid_t thread_id() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }
