//! How messages are protected: signed, encrypted, or neither (MS-SMB2 sections 3.1.4.1 and 3.1.4.3).

/// One algorithm, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Protection {
    None,
    HmacSha256,
    AesCmac,
    AesGmac,
    Aes128Ccm,
    Aes128Gcm,
    Aes256Ccm,
    Aes256Gcm,
}

impl Protection {
    /// All, signing before encryption.
    pub const ALL: [Protection; 8] = [
        Protection::None,
        Protection::HmacSha256,
        Protection::AesCmac,
        Protection::AesGmac,
        Protection::Aes128Ccm,
        Protection::Aes128Gcm,
        Protection::Aes256Ccm,
        Protection::Aes256Gcm,
    ];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Protection::None => "off",
            Protection::HmacSha256 => "hmac-sha256",
            Protection::AesCmac => "aes-cmac",
            Protection::AesGmac => "aes-gmac",
            Protection::Aes128Ccm => "aes-128-ccm",
            Protection::Aes128Gcm => "aes-128-gcm",
            Protection::Aes256Ccm => "aes-256-ccm",
            Protection::Aes256Gcm => "aes-256-gcm",
        }
    }

    /// The protection of that name, ignoring case.
    pub fn of_name(name: &str) -> Option<Protection> {
        Protection::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// Whether messages are signed, and not encrypted.
    pub fn is_signing(self) -> bool {
        matches!(self, Protection::HmacSha256 | Protection::AesCmac | Protection::AesGmac)
    }

    /// Whether messages are encrypted.
    pub fn is_encryption(self) -> bool {
        !matches!(self, Protection::None) && !self.is_signing()
    }

    /// The signing algorithm of a connection: the negotiated one, or the default of the dialect.
    pub fn signing(dialect: Option<&str>, negotiated: Option<&str>) -> Protection {
        negotiated.and_then(Protection::of_name).filter(|one| one.is_signing()).unwrap_or(
            match dialect {
                Some(dialect) if dialect.starts_with('3') => Protection::AesCmac,
                _ => Protection::HmacSha256,
            },
        )
    }

    /// The cipher of a connection: the negotiated one, or that of SMB 3.0.
    pub fn encryption(negotiated: Option<&str>) -> Protection {
        let cipher = negotiated.and_then(Protection::of_name).filter(|one| one.is_encryption());
        cipher.unwrap_or(Protection::Aes128Ccm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_dialects_have_their_own() {
        for one in Protection::ALL {
            assert_eq!(Protection::of_name(&one.name().to_uppercase()), Some(one));
            assert!(!(one.is_signing() && one.is_encryption()));
        }
        let signing = Protection::signing;
        assert_eq!(signing(Some("2.1"), None), Protection::HmacSha256);
        assert_eq!(signing(Some("3.0.2"), None), Protection::AesCmac);
        assert_eq!(signing(Some("3.1.1"), Some("AES-GMAC")), Protection::AesGmac);
        assert_eq!(Protection::encryption(None), Protection::Aes128Ccm);
        assert_eq!(Protection::encryption(Some("AES-256-GCM")), Protection::Aes256Gcm);
    }
}
