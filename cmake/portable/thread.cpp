// Before glibc 2.34 a thread starts only where libpthread is loaded, and std::thread names pthread_create to have it loaded. Newer headers
// do not, so it is named here, in place of their null.
#if defined(__x86_64__)
#define START "movq pthread_create@GOTPCREL(%rip), %rdx\n  jmp first_start_thread@PLT\n"
#elif defined(__aarch64__)
#define START "adrp x2, :got:pthread_create\n  ldr x2, [x2, :got_lo12:pthread_create]\n  b first_start_thread\n"
#endif
#define NAME "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"

asm(".text\n.p2align 2\n.globl " NAME "\n.type " NAME ",@function\n.symver first_start_thread, " NAME "@GLIBCXX_3.4.22\n" NAME
    ":\n  " START ".size " NAME ", .-" NAME "\n");
