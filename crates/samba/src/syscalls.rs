//! Classes of system calls.
//!
//! The file-system slice is the time that the main thread spends in these calls while it serves a
//! request: files and directories, their attributes and quotas, and related calls of smbd. It excludes
//! credentials, the futexes of its databases, and fcntl, with which it locks records of those far more
//! often than ranges of files; also poll, with which it waits for winbind: its event loop waits in
//! epoll_wait.

/// No class: not timed.
#[cfg(test)]
const NONE: u8 = 0;
const FILE: u8 = 1;
/// Waiting for something to do.
const WAIT: u8 = 2;
const READ: u8 = 3;
const WRITE: u8 = 4;
const FLUSH: u8 = 5;

/// Numbers and classes of the calls on this architecture.
#[cfg(target_arch = "x86_64")]
pub const CLASSES: &[(u16, u8)] = &[
    (17, READ),   // pread64
    (295, READ),  // preadv
    (18, WRITE),  // pwrite64
    (296, WRITE), // pwritev
    (74, FLUSH),  // fsync
    (75, FLUSH),  // fdatasync
    (232, WAIT),  // epoll_wait
    (281, WAIT),  // epoll_pwait
    (2, FILE),    // open
    (3, FILE),    // close
    (4, FILE),    // stat
    (5, FILE),    // fstat
    (6, FILE),    // lstat
    (8, FILE),    // lseek
    (16, FILE),   // ioctl: clones of ranges, flags
    (40, FILE),   // sendfile
    (73, FILE),   // flock
    (76, FILE),   // truncate
    (77, FILE),   // ftruncate
    (78, FILE),   // getdents
    (80, FILE),   // chdir
    (81, FILE),   // fchdir
    (82, FILE),   // rename
    (83, FILE),   // mkdir
    (84, FILE),   // rmdir
    (86, FILE),   // link
    (87, FILE),   // unlink
    (88, FILE),   // symlink
    (89, FILE),   // readlink
    (90, FILE),   // chmod
    (91, FILE),   // fchmod
    (92, FILE),   // chown
    (93, FILE),   // fchown
    (133, FILE),  // mknod
    (137, FILE),  // statfs
    (138, FILE),  // fstatfs
    (179, FILE),  // quotactl
    (188, FILE),  // setxattr
    (190, FILE),  // fsetxattr
    (191, FILE),  // getxattr
    (193, FILE),  // fgetxattr
    (194, FILE),  // listxattr
    (196, FILE),  // flistxattr
    (197, FILE),  // removexattr
    (199, FILE),  // fremovexattr
    (217, FILE),  // getdents64
    (257, FILE),  // openat
    (258, FILE),  // mkdirat
    (259, FILE),  // mknodat
    (260, FILE),  // fchownat
    (262, FILE),  // newfstatat
    (263, FILE),  // unlinkat
    (264, FILE),  // renameat
    (265, FILE),  // linkat
    (266, FILE),  // symlinkat
    (267, FILE),  // readlinkat
    (268, FILE),  // fchmodat
    (269, FILE),  // faccessat
    (275, FILE),  // splice
    (280, FILE),  // utimensat
    (285, FILE),  // fallocate
    (316, FILE),  // renameat2
    (326, FILE),  // copy_file_range
    (332, FILE),  // statx
    (437, FILE),  // openat2
    (443, FILE),  // quotactl_fd
    (452, FILE),  // fchmodat2
];

/// Numbers and classes of the calls on this architecture.
#[cfg(target_arch = "aarch64")]
pub const CLASSES: &[(u16, u8)] = &[
    (67, READ),  // pread64
    (69, READ),  // preadv
    (68, WRITE), // pwrite64
    (70, WRITE), // pwritev
    (82, FLUSH), // fsync
    (83, FLUSH), // fdatasync
    (22, WAIT),  // epoll_pwait
    (5, FILE),   // setxattr
    (7, FILE),   // fsetxattr
    (8, FILE),   // getxattr
    (10, FILE),  // fgetxattr
    (11, FILE),  // listxattr
    (13, FILE),  // flistxattr
    (14, FILE),  // removexattr
    (16, FILE),  // fremovexattr
    (29, FILE),  // ioctl: clones of ranges, flags
    (32, FILE),  // flock
    (33, FILE),  // mknodat
    (34, FILE),  // mkdirat
    (35, FILE),  // unlinkat
    (36, FILE),  // symlinkat
    (37, FILE),  // linkat
    (38, FILE),  // renameat
    (43, FILE),  // statfs
    (44, FILE),  // fstatfs
    (45, FILE),  // truncate
    (46, FILE),  // ftruncate
    (47, FILE),  // fallocate
    (48, FILE),  // faccessat
    (49, FILE),  // chdir
    (50, FILE),  // fchdir
    (52, FILE),  // fchmod
    (53, FILE),  // fchmodat
    (54, FILE),  // fchownat
    (55, FILE),  // fchown
    (56, FILE),  // openat
    (57, FILE),  // close
    (60, FILE),  // quotactl
    (61, FILE),  // getdents64
    (62, FILE),  // lseek
    (71, FILE),  // sendfile
    (76, FILE),  // splice
    (78, FILE),  // readlinkat
    (79, FILE),  // newfstatat
    (80, FILE),  // fstat
    (88, FILE),  // utimensat
    (276, FILE), // renameat2
    (285, FILE), // copy_file_range
    (291, FILE), // statx
    (437, FILE), // openat2
    (443, FILE), // quotactl_fd
    (452, FILE), // fchmodat2
];

/// No calls are known on other architectures.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const CLASSES: &[(u16, u8)] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_class() {
        let mut numbers: Vec<u16> = CLASSES.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(CLASSES.iter().all(|(number, class)| *number < 512 && *class != NONE));
    }
}
