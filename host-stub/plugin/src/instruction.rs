//! Which instructions of AArch64 need a look. Source: Arm Architecture Reference Manual, chapter C4, A64 instruction set encoding.

/// What is to be done with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It accesses no memory, or none that could be HBM: its address is the stack pointer's, or one in the code.
    None,
    /// It may access HBM.
    Access,
    /// It calls a function.
    Call,
    /// It accesses memory, and the interface does not tell which.
    Unseen,
}

/// `dc zva`, without its register.
const DC_ZVA: u32 = 0xd50b_7420;
/// Number of the stack pointer as the base of an address.
const SP: u32 = 31;

/// What is to be done with the instruction `word`.
pub fn look(word: u32) -> Look {
    if word & !0x1f == DC_ZVA {
        return Look::Unseen;
    }
    // bl, blr
    if word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000 {
        return Look::Call;
    }
    // SVE memory: op0 (bits 28 to 25) is 0010, and the first bits are 1.
    if word >> 31 == 1 && word >> 25 & 0xf == 0b0010 {
        return Look::Unseen;
    }
    // Loads and stores: op0 is x1x0.
    if word >> 25 & 0b0101 != 0b0100 {
        return Look::None;
    }
    let is_literal = word & 0x3b00_0000 == 0x1800_0000;
    if is_literal || word >> 5 & 0x1f == SP { Look::None } else { Look::Access }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_access_hbm_is_looked_at() {
        for (word, expected) in [
            (0xf940_0020, Look::Access), // ldr x0, [x1]
            (0xb900_0041, Look::Access), // str w1, [x2]
            (0xf940_03e0, Look::None),   // ldr x0, [sp]
            (0xa9bf_7bfd, Look::None),   // stp x29, x30, [sp, #-16]!
            (0x5800_0040, Look::None),   // ldr x0, label
            (0x3dc0_0020, Look::Access), // ldr q0, [x1]
            (0x4c40_7820, Look::Access), // ld1 {v0.4s}, [x1]
            (0x885f_fc20, Look::Access), // ldaxr w0, [x1]
            (0xf820_0041, Look::Access), // ldadd x0, x1, [x2]
            (0x8b01_0000, Look::None),   // add x0, x0, x1
            (0x9400_0001, Look::Call),   // bl
            (0xd63f_0100, Look::Call),   // blr x8
            (0xd65f_03c0, Look::None),   // ret
            (0xd50b_7423, Look::Unseen), // dc zva, x3
            (0xa540_4000, Look::Unseen), // ld1w {z0.s}, p0/z, [x0, x0, lsl #2]
            (0x0460_0800, Look::None),   // SVE without memory
        ] {
            assert_eq!(look(word), expected, "{word:#010x}");
        }
    }
}
