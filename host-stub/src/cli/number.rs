//! Numbers on the command line: decimal, or hexadecimal after `0x`.

use std::num::IntErrorKind;

/// Parses a number of up to 64 bits.
pub fn u64(text: &str) -> Result<u64, String> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_str_radix` accepts a sign, which is invalid here.
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return Err("not a number: write it in decimal, or in hexadecimal after 0x".into());
    }
    u64::from_str_radix(digits, radix).map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => format!("above {:#x}, the largest that 64 bits hold", u64::MAX),
        _ => "not a number: write it in decimal, or in hexadecimal after 0x".into(),
    })
}

/// Parses a number of up to 32 bits.
pub fn u32(text: &str) -> Result<u32, String> {
    u32::try_from(u64(text)?).map_err(|_| format!("above {:#x}, the largest that 32 bits hold", u32::MAX))
}

/// Parses a number of up to 16 bits.
pub fn u16(text: &str) -> Result<u16, String> {
    u16::try_from(u64(text)?).map_err(|_| format!("above {}, the largest that 16 bits hold", u16::MAX))
}

/// Parses a number of up to 8 bits.
pub fn u8(text: &str) -> Result<u8, String> {
    u8::try_from(u64(text)?).map_err(|_| format!("above {}, the largest that 8 bits hold", u8::MAX))
}

/// Parses a number of bytes that may not be 0.
pub fn positive(text: &str) -> Result<u64, String> {
    match u64(text)? {
        0 => Err("at least 1 byte is needed".into()),
        bytes => Ok(bytes),
    }
}

/// Parses a number of seconds that is not 0, as a limit.
pub fn seconds(text: &str) -> Result<u64, String> {
    match u32(text)? {
        0 => Err("a limit is at least 1 s".into()),
        seconds => Ok(seconds.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_radices_reach_the_largest_number() {
        assert_eq!(u64("0"), Ok(0));
        assert_eq!(u64("0xFFFFffffFFFFffff"), Ok(u64::MAX));
        assert_eq!(u64("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(u32("0xffffffff"), Ok(u32::MAX));
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in ["", "0x", "-1", "+1", "0x+1", "0x-1", "1k", "ff", "0b1", " 1", "1_000"] {
            assert!(u64(text).unwrap_err().starts_with("not a number"), "{text:?}");
        }
    }

    #[test]
    fn numbers_above_the_width_are_refused() {
        assert!(u64("18446744073709551616").unwrap_err().contains("64 bits"));
        assert!(u64("0x10000000000000000").unwrap_err().contains("64 bits"));
        assert!(u32("0x100000000").unwrap_err().contains("32 bits"));
        assert!(u16("65536").unwrap_err().contains("16 bits"));
    }

    /// Case 152.
    #[test]
    fn limit_is_from_1_s_to_32_bits_of_seconds() {
        assert_eq!(seconds("0"), Err("a limit is at least 1 s".into()));
        assert_eq!((seconds("1"), seconds("4294967295")), (Ok(1), Ok(4_294_967_295)));
        assert_eq!(seconds("4294967296"), Err("above 0xffffffff, the largest that 32 bits hold".into()));
    }

    #[test]
    fn zero_bytes_are_refused_where_there_must_be_some() {
        assert!(positive("0x0").is_err());
        assert_eq!(positive("1"), Ok(1));
    }
}
