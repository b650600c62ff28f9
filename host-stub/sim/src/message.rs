//! What `unwrap` and a failed assertion print of an error.

/// `Debug` of error types, which prints their message.
macro_rules! debug_is_the_message {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub(crate) use debug_is_the_message;

#[cfg(test)]
mod tests {
    use crate::alloc::AllocError;
    use crate::memory::OutsideHbm;

    #[test]
    fn unwrap_prints_the_message() {
        let outside = OutsideHbm { addr: 0x1000, len: 8 };
        assert_eq!(format!("{outside:?}"), "8 bytes at 0x1000 are not inside hbm");
        assert_eq!(format!("{:?}", Some(AllocError::Zero)), "Some(an allocation of 0 bytes)");
    }
}
