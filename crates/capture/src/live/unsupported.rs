//! Replaces the socket on systems other than Linux: every call fails.

use std::net::IpAddr;

use super::{Error, Options, Packet};

/// Packets that are received at once.
pub const BATCH: usize = 0;

/// None can be made.
pub enum Socket {}

impl Socket {
    pub fn open(_options: &Options) -> Result<Socket, Error> {
        Err(Error::NotLinux)
    }

    pub fn receive(
        &mut self,
        _may_wait: bool,
        _take: &mut dyn FnMut(Packet<'_>),
    ) -> std::io::Result<usize> {
        match *self {}
    }

    pub fn stop(&mut self) -> std::io::Result<()> {
        match *self {}
    }

    pub fn dropped(&mut self) -> u64 {
        match *self {}
    }
}

/// Addresses of this machine.
pub fn addresses() -> Result<Vec<IpAddr>, Error> {
    Err(Error::NotLinux)
}
