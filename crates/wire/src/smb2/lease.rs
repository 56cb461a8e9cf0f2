//! What a lease allows and says (MS-SMB2 sections 2.2.13.2.8 and 2.2.23.2).

use super::view::flags;

flags! {
    /// The caching that a lease allows.
    LeaseState(u32) {
        NONE = 0x00,
        READ = 0x01,
        HANDLE = 0x02,
        WRITE = 0x04,
    }
}

impl LeaseState {
    /// The state as its letters in the customary order: "RWH", "RH", "R"; "None" without any.
    pub fn name(self) -> &'static str {
        match self.0 & 7 {
            0 => "None",
            1 => "R",
            2 => "H",
            3 => "RH",
            4 => "W",
            5 => "RW",
            6 => "WH",
            _ => "RWH",
        }
    }
}

flags! {
    /// Flags of a lease context.
    LeaseFlags(u32) {
        BREAK_IN_PROGRESS = 0x0000_0002,
        PARENT_LEASE_KEY_SET = 0x0000_0004,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_states_by_their_letters() {
        assert_eq!(LeaseState(7).name(), "RWH");
        assert_eq!(LeaseState(3).name(), "RH");
        assert_eq!(LeaseState(0).name(), "None");
        assert_eq!(LeaseState(0x11).name(), "R");
    }
}
