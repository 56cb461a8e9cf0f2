//! The savings of the client's directory cache, with a real Samba: as with the published options, and
//! with leases that the server really grants and breaks.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use smbscope_client::{Ask, Config, Session};
use smbscope_load::execute::Performer;
use smbscope_load::fileset::Scale;
use smbscope_load::prepare;
use smbscope_load::workload::{ClientCache, Planner, UserPlans, Workload, counts};
use smbscope_testing::run::runtime;
use smbscope_testing::samba::{samba, samba_4_22};
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{self, OpenWish};
use smbscope_wire::status::Status;

/// Executes every scenario once; returns the operations beyond or below the expectation for the mode.
async fn round(
    session: &mut Session,
    performer: &mut Performer,
    plans: &mut UserPlans,
    workload: &Workload,
    cache: ClientCache,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, scenario) in workload.scenarios.iter().enumerate() {
        let plan = plans.next_of(number).unwrap();
        // Samba reports changes some time later; a user's next scenario starts seconds later.
        tokio::time::sleep(Duration::from_millis(100)).await;
        performer.maintain(session).await.unwrap();
        let outcome = performer.perform(session, &plan).await.unwrap();
        let expected = counts(&plan, cache).total();
        if let Some(trouble) = outcome.failed {
            wrong.push(format!("{}: {trouble:?}", scenario.name));
        } else if outcome.operations as f64 != expected {
            let (sent, saved) = (outcome.operations, outcome.saved);
            wrong.push(format!(
                "{}: {sent} sent, {saved} saved, {expected} expected",
                scenario.name
            ));
        }
    }
    session.take_rows();
    wrong
}

async fn prepared(session: &mut Session) -> (Arc<Workload>, UserPlans) {
    let workload = Arc::new(Workload::built_in("homefolder").unwrap());
    let planner = Planner::new(workload.clone(), 3, Scale::new(0.1).unwrap());
    prepare::prepare(session, planner.files(), 1, "user00001", |_| ()).await.unwrap();
    (workload, planner.user(1, "user00001"))
}

#[test]
fn collapse_saves_as_much_as_the_published_option() {
    let Some(lab) = samba(|_| {}) else { return };
    runtime().block_on(async {
        let mut session = lab.connect(Config::default(), "user00001").await;
        let (workload, mut plans) = prepared(&mut session).await;
        let cache = ClientCache::Collapse;
        let mut performer = Performer::new(cache);
        for _ in 0..2 {
            let wrong = round(&mut session, &mut performer, &mut plans, &workload, cache).await;
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    });
}

#[test]
fn directory_leases_are_held_and_broken() {
    let Some(smbd) = samba_4_22() else { return };
    let lab = samba(|options| {
        options.samba = Some(smbd.clone());
        options.directory_leases = Some(true);
    });
    let lab = lab.unwrap();
    runtime().block_on(async {
        let mut session = lab.connect(Config::default(), "user00001").await;
        assert!(session.directory_leases(), "{:?}", session.negotiated());
        let (workload, mut plans) = prepared(&mut session).await;
        let cache = ClientCache::DirLease;
        let mut performer = Performer::new(cache);
        // The first rounds open the directories, each under a lease; then they are all held.
        for _ in 0..4 {
            round(&mut session, &mut performer, &mut plans, &workload, cache).await;
        }
        assert!(performer.kept() > 3, "{} directories kept", performer.kept());
        let breaks = session.leases.breaks;
        let wrong = round(&mut session, &mut performer, &mut plans, &workload, cache).await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(session.leases.breaks, breaks, "the client's own changes broke its leases");

        // Another client's new file breaks the lease on its folder.
        let held = session.leases.len();
        let folders = session.leases.directories().map(|held| held.path.clone());
        let folder = folders.max_by_key(|path| path.len()).unwrap();
        let name = format!("{folder}\\somebody else's.txt");
        let mut other = lab.connect(Config::default(), "user00002").await;
        let body = encode::Create {
            name: &name,
            desired_access: AccessMask(0x0012_019f),
            file_attributes: FileAttributes(0),
            share_access: ShareAccess(7),
            disposition: CreateDisposition::CREATE,
            options: CreateOptions(0),
            oplock: OplockLevel::NONE,
            wish: OpenWish::default(),
        };
        let making = async {
            let reply = other.call(&body, Ask::default()).await.unwrap();
            assert_eq!(reply.status, Status::SUCCESS);
            let file_id = reply.open.unwrap().file_id;
            let close = encode::Close { file_id, flags: CloseFlags(0) };
            other.call(&close, Ask::default()).await.unwrap();
        };
        let breaking = async {
            while session.leases.breaks == breaks {
                session.receive().await.unwrap();
                session.answer_breaks().await.unwrap();
            }
        };
        let both = async { tokio::join!(making, breaking) };
        tokio::time::timeout(Duration::from_secs(20), both).await.expect("no lease was broken");
        assert!(session.leases.len() < held);
        assert!(!session.leases.caches_directory(&folder));
    });
}
