//! Which kind of application a file belongs to, by the end of its name. A list of common endings, not a look into the
//! file: a name without one of these is of the kind `other`.

/// A kind of application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Application {
    Backup,
    Database,
    VirtualDisk,
    Office,
    Mail,
    Media,
    Archive,
    Design,
    Source,
    Other,
}

impl Application {
    /// All, in the order in which they are listed.
    pub(crate) const ALL: [Application; 10] = [
        Application::Backup,
        Application::Database,
        Application::VirtualDisk,
        Application::Office,
        Application::Mail,
        Application::Media,
        Application::Archive,
        Application::Design,
        Application::Source,
        Application::Other,
    ];

    /// The kind of a name's end, in any case.
    pub(crate) fn from_extension(extension: &str) -> Application {
        // The longest known ending has 8 letters: others need no copy.
        if extension.is_empty() || extension.len() > 8 {
            return Application::Other;
        }
        match extension.to_ascii_lowercase().as_str() {
            "bak" | "vbk" | "vib" | "vrb" | "vbm" | "tib" | "tibx" | "bkf" | "bkp" | "spf"
            | "spi" | "mrimg" | "trn" | "dmp" | "vma" => Application::Backup,
            "mdf" | "ndf" | "ldf" | "edb" | "mdb" | "accdb" | "sqlite" | "sqlite3" | "db"
            | "dbf" | "fdb" | "ibd" | "myd" | "myi" | "wal" | "frm" | "gdb" => {
                Application::Database
            }
            "vhd" | "vhdx" | "avhd" | "avhdx" | "vmdk" | "vdi" | "qcow2" | "vhds" => {
                Application::VirtualDisk
            }
            "doc" | "docx" | "docm" | "dotx" | "xls" | "xlsx" | "xlsm" | "xlsb" | "ppt"
            | "pptx" | "pptm" | "odt" | "ods" | "odp" | "pdf" | "rtf" | "one" | "vsdx" | "mpp"
            | "pub" | "csv" => Application::Office,
            "pst" | "ost" | "msg" | "eml" | "nsf" | "mbox" => Application::Mail,
            "mp4" | "mov" | "mxf" | "avi" | "mkv" | "wav" | "mp3" | "jpg" | "jpeg" | "png"
            | "tif" | "tiff" | "gif" | "psd" | "prproj" | "dpx" | "exr" | "heic" => {
                Application::Media
            }
            "zip" | "7z" | "rar" | "tar" | "gz" | "tgz" | "zst" | "bz2" | "xz" | "iso" | "cab"
            | "wim" => Application::Archive,
            "dwg" | "dxf" | "rvt" | "sldprt" | "sldasm" | "slddrw" | "ipt" | "iam" | "prt"
            | "step" | "stp" | "catpart" | "dgn" | "ifc" => Application::Design,
            "c" | "h" | "cpp" | "hpp" | "cs" | "rs" | "go" | "py" | "js" | "ts" | "java"
            | "class" | "o" | "obj" | "lib" | "dll" | "exe" | "pdb" | "json" | "xml" | "html"
            | "sql" | "git" | "pack" => Application::Source,
            _ => Application::Other,
        }
    }

    /// The kind of a path's last name.
    pub(crate) fn of_path(path: &str) -> Application {
        let name = path.rsplit('\\').next().unwrap_or(path);
        name.rsplit_once('.')
            .map_or(Application::Other, |(_, end)| Application::from_extension(end))
    }

    /// Whether its files must survive a power failure of the server.
    pub(crate) fn is_precious(self) -> bool {
        matches!(
            self,
            Application::Backup
                | Application::Database
                | Application::VirtualDisk
                | Application::Mail
        )
    }

    /// The word for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Application::Backup => "backup",
            Application::Database => "database",
            Application::VirtualDisk => "virtual-disk",
            Application::Office => "office",
            Application::Mail => "mail",
            Application::Media => "media",
            Application::Archive => "archive",
            Application::Design => "design",
            Application::Source => "source",
            Application::Other => "other",
        }
    }

    /// Its files in words.
    pub(crate) fn files(self) -> &'static str {
        match self {
            Application::Backup => "backup files",
            Application::Database => "databases",
            Application::VirtualDisk => "virtual disks",
            Application::Office => "office documents",
            Application::Mail => "mail stores",
            Application::Media => "media files",
            Application::Archive => "archives",
            Application::Design => "drawings",
            Application::Source => "programs and their sources",
            Application::Other => "other files",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_decides() {
        for (path, kind) in [
            ("backup\\monday.VBK", Application::Backup),
            ("sql\\sales.mdf", Application::Database),
            ("vm.d\\disk.vhdx", Application::VirtualDisk),
            ("bak", Application::Other),
            ("folder.bak\\readme", Application::Other),
            ("a.verylongending", Application::Other),
            ("", Application::Other),
        ] {
            assert_eq!(Application::of_path(path), kind, "{path}");
        }
        assert!(Application::ALL.iter().all(|kind| !kind.files().is_empty()));
    }
}
