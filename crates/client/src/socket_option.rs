//! Options of a socket as bytes, for those that no safe interface has. It is the crate's only unsafe code.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Longest value that is read. The kernel's `tcp_info` has 248 bytes in Linux 6.
const BYTES_MAX: usize = 512;

/// The value of an option, as long as the kernel made it.
///
/// # Errors
///
/// Those of getsockopt(2).
#[allow(unsafe_code)]
pub fn value(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; BYTES_MAX];
    let mut length = BYTES_MAX as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the buffer, which has that many, and the
    // descriptor is borrowed for the call.
    let result = unsafe {
        let value = bytes.as_mut_ptr().cast::<libc::c_void>();
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &raw mut length)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(length as usize);
    Ok(bytes)
}

/// Sets an option that is a number.
///
/// # Errors
///
/// Those of setsockopt(2).
#[allow(unsafe_code)]
pub fn set(socket: BorrowedFd<'_>, level: i32, name: i32, number: i32) -> io::Result<()> {
    // SAFETY: the kernel reads the four bytes of `number`, and the descriptor is borrowed for the call.
    let result = unsafe {
        let value = (&raw const number).cast::<libc::c_void>();
        let length = size_of::<i32>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, name, value, length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
