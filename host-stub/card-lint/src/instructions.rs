//! Instructions that not every AI CPU has.
//!
//! The vendor builds device code for generic Armv8.0-A, and among the cores that its tools name are Cortex-A53 and -A72,
//! which have nothing newer. Encodings: Arm Architecture Reference Manual, section C4.1 (classes of the top level).

use crate::elf::{Code, LocalSymbol};

/// An extension after Armv8.0-A that a compiler may use on its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Atomics in one instruction (Armv8.1): `cas`, `swp`, `ldadd` and their like.
    Lse,
    /// Acquire in the order of the processor (Armv8.3): `ldapr`.
    Rcpc,
    /// 64-byte loads and stores (Armv8.7): `ld64b`, `st64b`.
    Ls64,
    /// Vectors of a length that the core chooses.
    Sve,
    /// Matrices.
    Sme,
}

impl Extension {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Lse, Self::Rcpc, Self::Ls64, Self::Sve, Self::Sme];

    /// What the extension is called, and which instructions it has.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lse => "LSE atomics (cas, swp, ldadd, ..)",
            Self::Rcpc => "RCPC loads (ldapr)",
            Self::Ls64 => "64-byte stores and loads (st64b, ld64b)",
            Self::Sve => "SVE",
            Self::Sme => "SME",
        }
    }
}

/// The extension that an instruction belongs to; `None` for what Armv8.0-A has, and for what is no instruction.
pub fn extension(word: u32) -> Option<Extension> {
    // Bits 25 to 28 of an instruction choose its class.
    match (word >> 25) & 0xf {
        0b0010 => return Some(Extension::Sve),
        // With bit 31 clear these are the undefined ones, which compilers use as traps.
        0b0000 if word >> 31 == 1 => return Some(Extension::Sme),
        _ => {}
    }
    // Compare and swap: size, 0010001, load, 1, source, release, 11111, base, target; pairs have 0 for bit 31 and bit 23.
    let is_cas = word & 0x3fa0_7c00 == 0x08a0_7c00;
    let is_casp = word & 0xbfa0_7c00 == 0x0820_7c00;
    if is_cas || is_casp {
        return Some(Extension::Lse);
    }
    // Atomic memory operations: size, 111, no vector, 00, acquire, release, 1, source, o3, operation, 00, base, target.
    if word & 0x3f20_0c00 == 0x3820_0000 {
        let o3_operation = (word >> 12) & 0xf;
        return match o3_operation {
            // The eight additions, bit operations, maxima and minima, then the swap.
            0b0000..=0b1000 => Some(Extension::Lse),
            0b1100 => Some(Extension::Rcpc),
            0b1001..=0b1011 | 0b1101 => Some(Extension::Ls64),
            _ => None,
        };
    }
    None
}

/// Addresses of the instructions of one extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub extension: Extension,
    pub addrs: Vec<u64>,
}

/// What was decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Extensions that are used.
    pub uses: Vec<Use>,
    /// Whether mapping symbols told code from data. If not, every word of the code was taken for an instruction.
    pub by_mapping: bool,
}

/// Decodes all code of a library.
pub fn decode(code: &[Code], locals: &[LocalSymbol]) -> Decoded {
    let mut mapping: Vec<(u64, bool)> =
        locals.iter().filter_map(|symbol| Some((symbol.addr, is_code(&symbol.name)?))).collect();
    mapping.sort_by_key(|&(addr, _)| addr);
    let mut uses = Extension::ALL.map(|extension| Use { extension, addrs: Vec::new() }).to_vec();
    for code in code {
        let end = code.addr.wrapping_add(code.bytes.len() as u64);
        // Only symbols of this run of code: before its first one it is code, as compilers and linkers write it.
        let mut mapping = mapping.iter().filter(|&&(addr, _)| code.addr <= addr && addr < end).peekable();
        let mut in_code = true;
        for (index, word) in code.bytes.chunks_exact(4).enumerate() {
            let addr = code.addr.wrapping_add(index as u64 * 4);
            while let Some(&&(_, code)) = mapping.peek().filter(|&&&(at, _)| at <= addr) {
                in_code = code;
                mapping.next();
            }
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            let Some(extension) = extension(word).filter(|_| in_code) else { continue };
            uses[extension as usize].addrs.push(addr);
        }
    }
    uses.retain(|one| !one.addrs.is_empty());
    Decoded { uses, by_mapping: !mapping.is_empty() }
}

/// Whether a mapping symbol begins code or data; `None` for other symbols. A suffix after a dot is allowed.
fn is_code(name: &str) -> Option<bool> {
    match name.split('.').next() {
        Some("$x") => Some(true),
        Some("$d") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `aarch64-linux-gnu-as` encodes them.
    #[test]
    fn each_extension_is_known_by_its_encoding() {
        let encodings: [(u32, &str, Option<Extension>); 30] = [
            (0x88a0_7c41, "cas w0, w1, [x2]", Some(Extension::Lse)),
            (0xc8e0_fc41, "casal x0, x1, [x2]", Some(Extension::Lse)),
            (0x08a0_7c41, "casb w0, w1, [x2]", Some(Extension::Lse)),
            (0x0820_7c82, "casp w0, w1, w2, w3, [x4]", Some(Extension::Lse)),
            (0x4860_fc82, "caspal x0, x1, x2, x3, [x4]", Some(Extension::Lse)),
            (0xb820_8041, "swp w0, w1, [x2]", Some(Extension::Lse)),
            (0xf8e0_8041, "swpal x0, x1, [x2]", Some(Extension::Lse)),
            (0xb820_0041, "ldadd w0, w1, [x2]", Some(Extension::Lse)),
            (0xf8e0_0041, "ldaddal x0, x1, [x2]", Some(Extension::Lse)),
            (0x3820_3041, "ldsetb w0, w1, [x2]", Some(Extension::Lse)),
            (0xb820_7041, "ldumin w0, w1, [x2]", Some(Extension::Lse)),
            (0xb8bf_c041, "ldapr w1, [x2]", Some(Extension::Rcpc)),
            (0xf83f_9040, "st64b x0, [x2]", Some(Extension::Ls64)),
            (0xf83f_d040, "ld64b x0, [x2]", Some(Extension::Ls64)),
            (0x2518_e3e0, "ptrue p0.b", Some(Extension::Sve)),
            (0x04a0_0000, "add z0.s, z0.s, z0.s", Some(Extension::Sve)),
            (0x8080_0000, "an outer product of SME", Some(Extension::Sme)),
            (0x885f_7c41, "ldxr w1, [x2]", None),
            (0x8800_7c41, "stxr w0, w1, [x2]", None),
            (0x885f_fc41, "ldaxr w1, [x2]", None),
            (0x887f_0841, "ldxp w1, w2, [x2]", None),
            (0xc83f_0841, "stxp wzr, x1, x2, [x2]", None),
            (0x889f_fc41, "stlr w1, [x2]", None),
            (0x88df_fc41, "ldar w1, [x2]", None),
            (0xf860_6841, "ldr x1, [x2, x0]", None),
            (0xf820_6841, "str x1, [x2, x0]", None),
            (0x3c60_6841, "ldr b1, [x2, x0]", None),
            (0x4ea0_8400, "add v0.4s, v0.4s, v0.4s", None),
            (0x0000_0000, "udf #0", None),
            (0xd65f_03c0, "ret", None),
        ];
        for (word, text, expected) in encodings {
            assert_eq!(extension(word), expected, "{word:#010x} {text}");
        }
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn symbol(name: &str, addr: u64) -> LocalSymbol {
        LocalSymbol { name: name.to_owned(), addr, function: false }
    }

    #[test]
    fn data_between_code_is_not_decoded() {
        let (cas, ret) = (0x88a0_7c41, 0xd65f_03c0);
        let bytes = bytes(&[ret, cas, cas, ret, cas]);
        let code = [Code { addr: 0x1000, bytes: &bytes }];
        let lse = |addrs: &[u64]| vec![Use { extension: Extension::Lse, addrs: addrs.to_vec() }];

        let mapping = [symbol("$x.7", 0x100c), symbol("$d", 0x1008), symbol("$x", 0x1000), symbol("f", 0x1000)];
        let decoded = decode(&code, &mapping);
        assert_eq!(decoded, Decoded { uses: lse(&[0x1004, 0x1010]), by_mapping: true });

        // A symbol of another section says nothing about this one.
        let decoded = decode(&code, &[symbol("$d", 0x800)]);
        assert_eq!(decoded, Decoded { uses: lse(&[0x1004, 0x1008, 0x1010]), by_mapping: true });

        let decoded = decode(&code, &[symbol("f", 0x1000)]);
        assert_eq!(decoded, Decoded { uses: lse(&[0x1004, 0x1008, 0x1010]), by_mapping: false });
    }
}
