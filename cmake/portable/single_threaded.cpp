// glibc 2.32, read by libstdc++'s headers: 0 is right whether there is one thread or more.
extern "C" char __libc_single_threaded;
char __libc_single_threaded = 0;
