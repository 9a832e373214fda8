// glibc 2.33: before, these were inline functions, which told libc how its caller lays out the structures.
#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
#define MKNOD_VERSION 0

using dev_t = unsigned long;
struct status;

extern "C" {
int __xstat(int, const char*, status*) noexcept;
int __fxstat(int, int, status*) noexcept;
int __lxstat(int, const char*, status*) noexcept;
int __fxstatat(int, int, const char*, status*, int) noexcept;
int __xmknod(int, const char*, unsigned, dev_t*) noexcept;
int __xmknodat(int, int, const char*, unsigned, dev_t*) noexcept;

int stat(const char* path, status* out) noexcept { return __xstat(STAT_VERSION, path, out); }
int fstat(int file, status* out) noexcept { return __fxstat(STAT_VERSION, file, out); }
int lstat(const char* path, status* out) noexcept { return __lxstat(STAT_VERSION, path, out); }
int fstatat(int folder, const char* path, status* out, int flags) noexcept {
  return __fxstatat(STAT_VERSION, folder, path, out, flags);
}

// Where a word has 64 bits there is one structure.
int stat64(const char* path, status* out) noexcept { return __xstat(STAT_VERSION, path, out); }
int fstat64(int file, status* out) noexcept { return __fxstat(STAT_VERSION, file, out); }
int lstat64(const char* path, status* out) noexcept { return __lxstat(STAT_VERSION, path, out); }
int fstatat64(int folder, const char* path, status* out, int flags) noexcept {
  return __fxstatat(STAT_VERSION, folder, path, out, flags);
}

int mknod(const char* path, unsigned mode, dev_t device) noexcept {
  return __xmknod(MKNOD_VERSION, path, mode, &device);
}
int mknodat(int folder, const char* path, unsigned mode, dev_t device) noexcept {
  return __xmknodat(MKNOD_VERSION, folder, path, mode, &device);
}
}
