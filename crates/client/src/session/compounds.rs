//! Finds out which related compounds a server answers.

use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::directory::QueryDirectoryFlags;
use smbscope_wire::smb2::encode::{self, OpenWish};
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType};
use smbscope_wire::status::Status;

use super::Session;
use crate::channel::Ask;
use crate::config::Compounds;
use crate::error::ClientError;

impl Session {
    /// Which related compounds the server answers (MS-SMB2 section 3.3.5.2.7.2), and with which status it
    /// refuses the others. Some servers know none, others only compounds that begin with a Create; so this
    /// tries one that opens the share's root, lists and closes it, and one with two questions about an open.
    pub async fn compounds(&mut self) -> Result<(Compounds, Option<Status>), ClientError> {
        let open = encode::Create {
            name: "",
            desired_access: AccessMask(0x0010_0081),
            file_attributes: FileAttributes(0),
            share_access: ShareAccess(7),
            disposition: CreateDisposition::OPEN,
            options: CreateOptions::DIRECTORY_FILE,
            oplock: OplockLevel::NONE,
            wish: OpenWish::default(),
        };
        let list = encode::QueryDirectory {
            file_id: FileId::ANY,
            info_class: FileInfoClass::DIRECTORY,
            flags: QueryDirectoryFlags(0),
            pattern: "*",
            output_bytes: 4096,
        };
        let query = |file_id| encode::QueryInfo {
            file_id,
            info_type: InfoType::FILE,
            info_class: FileInfoClass::BASIC.0,
            additional_information: 0,
            output_bytes: 40,
        };
        let close = |file_id| encode::Close { file_id, flags: CloseFlags(0) };
        self.channel().have_credits(3).await?;
        let ids = [
            self.add(0, false, &open, Ask::default()),
            self.add(0, true, &list, Ask::default()),
            self.add(0, true, &close(FileId::ANY), Ask::default()),
        ];
        if let Some(status) = self.first_unexpected(&ids).await? {
            return Ok((Compounds::Off, Some(status)));
        }
        let opened = match self.call(&open, Ask::default()).await?.opened()? {
            Ok(opened) => opened,
            Err(status) => return Ok((Compounds::Off, Some(status))),
        };
        self.channel().have_credits(2).await?;
        let ids = [
            self.add(0, false, &query(opened.file_id), Ask::default()),
            self.add(0, true, &query(FileId::ANY), Ask::default()),
        ];
        let problem = self.first_unexpected(&ids).await?;
        self.call(&close(opened.file_id), Ask::default()).await?;
        let compounds = if problem.is_none() { Compounds::All } else { Compounds::Opening };
        Ok((compounds, problem))
    }

    /// Sends what was added and returns the first status that is not success.
    async fn first_unexpected(&mut self, ids: &[u64]) -> Result<Option<Status>, ClientError> {
        self.send(0).await?;
        let mut problem = None;
        for &id in ids {
            let status = self.wait(0, id).await?.status;
            if status != Status::SUCCESS {
                problem.get_or_insert(status);
            }
        }
        Ok(problem)
    }
}
