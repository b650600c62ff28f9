//! Exception vectors. No exception is expected: each one is reported, and the core stops.

use core::arch::global_asm;

// Each of the 16 entries hands its number and the interrupted frame pointer, link register and stack pointer to
// `exception`, on an empty exception stack: nothing returns, so nothing is saved, and a fault while one is reported still
// has room.
global_asm!(
    r#"
    .macro vector number
    .balign 0x80
    mov x4, #\number
    b exception_entry
    .endm

    .section .text.vectors, "ax", %progbits
    .balign 0x800
    .global exception_vectors
exception_vectors:
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vector \number
    .endr
    .balign 0x80

exception_entry:
    mov x0, x4
    mov x1, x29
    mov x2, x30
    mov x3, sp
    adrp x5, __exception_stack_top
    add x5, x5, :lo12:__exception_stack_top
    mov sp, x5
    mov x29, xzr
    mov x30, xzr
    b {exception}
    "#,
    exception = sym super::fault::exception,
);
