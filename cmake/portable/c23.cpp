// glibc 2.38: what headers make of strtol and sscanf, which since C23 read 0b1 as a number too. On older systems they do not. A jump
// passes on any number of arguments.
#if defined(__x86_64__)
#define JUMP "jmp "
#define TO "@PLT"
#else
#define JUMP "b "
#define TO ""
#endif
#define FORWARD(NAME, OLD)                                             \
  asm(".text\n.p2align 2\n.globl " NAME "\n.type " NAME ",@function\n" \
      NAME ":\n" JUMP OLD TO "\n.size " NAME ", .-" NAME "\n");

#define INTEGER(NAME) FORWARD("__isoc23_" NAME, NAME)
INTEGER("strtol")
INTEGER("strtoll")
INTEGER("strtoul")
INTEGER("strtoull")
INTEGER("strtoimax")
INTEGER("strtoumax")
INTEGER("strtol_l")
INTEGER("strtoll_l")
INTEGER("strtoul_l")
INTEGER("strtoull_l")
INTEGER("wcstol")
INTEGER("wcstoll")
INTEGER("wcstoul")
INTEGER("wcstoull")
INTEGER("wcstoimax")
INTEGER("wcstoumax")
INTEGER("wcstol_l")
INTEGER("wcstoll_l")
INTEGER("wcstoul_l")
INTEGER("wcstoull_l")

#define SCAN(NAME) FORWARD("__isoc23_" NAME, "__isoc99_" NAME)
SCAN("scanf")
SCAN("fscanf")
SCAN("sscanf")
SCAN("vscanf")
SCAN("vfscanf")
SCAN("vsscanf")
SCAN("wscanf")
SCAN("fwscanf")
SCAN("swscanf")
SCAN("vwscanf")
SCAN("vfwscanf")
SCAN("vswscanf")
