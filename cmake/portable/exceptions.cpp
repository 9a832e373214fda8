// GCC 11 made these two visible; copying and destroying an exception_ptr has always called them.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv
  .type _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv,@function
_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  movq %rdi, %rsi
  leaq 8(%rsp), %rdi
  call _ZNSt15__exception_ptr13exception_ptrC1ERKS0_@PLT
  addq $24, %rsp
  .cfi_adjust_cfa_offset -24
  ret
  .cfi_endproc
  .size _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv, .-_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv
  .globl _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv
  .type _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv,@function
_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv:
  jmp _ZNSt15__exception_ptr13exception_ptrD1Ev@PLT
  .size _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv, .-_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .p2align 2
  .globl _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv
  .type _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv,@function
_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv:
  .cfi_startproc
  stp x29, x30, [sp, -32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  mov x1, x0
  add x0, sp, 16
  bl _ZNSt15__exception_ptr13exception_ptrC1ERKS0_
  ldp x29, x30, [sp], 32
  .cfi_restore 30
  .cfi_restore 29
  .cfi_def_cfa_offset 0
  ret
  .cfi_endproc
  .size _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv, .-_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv
  .globl _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv
  .type _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv,@function
_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv:
  b _ZNSt15__exception_ptr13exception_ptrD1Ev
  .size _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv, .-_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv
)");
#endif
