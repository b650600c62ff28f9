//! Little-endian numbers and texts at an offset of a file that was not checked before.

/// `len` bytes at `at`; `None` where the file is shorter.
pub fn slice(data: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    data.get(start..end)
}

/// 16-bit number at `at`.
pub fn u16_at(data: &[u8], at: u64) -> Option<u16> {
    Some(u16::from_le_bytes(slice(data, at, 2)?.try_into().ok()?))
}

/// 32-bit number at `at`.
pub fn u32_at(data: &[u8], at: u64) -> Option<u32> {
    Some(u32::from_le_bytes(slice(data, at, 4)?.try_into().ok()?))
}

/// 64-bit number at `at`.
pub fn u64_at(data: &[u8], at: u64) -> Option<u64> {
    Some(u64::from_le_bytes(slice(data, at, 8)?.try_into().ok()?))
}

/// Text at `at` up to its zero byte. Bytes that are no UTF-8 are replaced.
pub fn text_at(data: &[u8], at: u64) -> Option<String> {
    let rest = data.get(usize::try_from(at).ok()?..)?;
    let len = rest.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..len]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let data = [1, 2, 3, 4, b'a', 0, b'b'];
        assert_eq!(u16_at(&data, 0), Some(0x201));
        assert_eq!(u32_at(&data, 0), Some(0x0403_0201));
        assert_eq!(u32_at(&data, 4), None);
        assert_eq!(u64_at(&data, 0), None);
        assert_eq!(u16_at(&data, u64::MAX), None);
        assert_eq!(slice(&data, 2, u64::MAX), None);
        assert_eq!(text_at(&data, 4).as_deref(), Some("a"));
        assert_eq!(text_at(&data, 6), None, "no zero byte before the end");
        assert_eq!(text_at(&data, 8), None);
    }
}
