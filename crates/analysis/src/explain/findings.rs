//! The troubles, one file each: title, remedies, what it says about itself, and where it has an
//! observation of its own, that too. Troubles that share one take it from the parent module:
//! [`sequential_blocks`](super::sequential_blocks), [`transfer_rates`](super::transfer_rates),
//! [`lookups`](super::lookups) and [`server_time`](super::server_time).

pub(super) mod bandwidth_limited;
pub(super) mod break_not_acknowledged;
pub(super) mod break_waits;
pub(super) mod credit_starvation;
pub(super) mod delayed_acknowledgement;
pub(super) mod failing_lookups;
pub(super) mod fixed_timer;
pub(super) mod head_of_line_blocking;
pub(super) mod lock_contention;
pub(super) mod loss;
pub(super) mod no_compounding;
pub(super) mod open_close_churn;
pub(super) mod per_entry_requests;
pub(super) mod polling;
pub(super) mod protection;
pub(super) mod proxy_delay;
pub(super) mod repeated_listings;
pub(super) mod repeated_lookups;
pub(super) mod server_queueing;
pub(super) mod share_conflicts;
pub(super) mod slow_client;
pub(super) mod slow_filesystem;
pub(super) mod slow_flush;
pub(super) mod slow_logon;
pub(super) mod small_reads;
pub(super) mod small_writes;
pub(super) mod stragglers;
pub(super) mod window_limited;

use super::data::{Actor, Remedy, Trouble};

/// What a finding's file defines.
macro_rules! findings {
    ($($trouble:ident => $module:ident,)*) => {
        impl Trouble {
            /// The term for it, one line.
            pub fn title(self) -> &'static str {
                match self {
                    $(Trouble::$trouble => $module::TITLE,)*
                }
            }

            /// The side that can usually change something about it.
            pub fn actor(self) -> Actor {
                match self {
                    $(Trouble::$trouble => $module::ACTOR,)*
                }
            }

            /// What to do, the most useful first.
            pub fn remedies(self) -> &'static [Remedy] {
                match self {
                    $(Trouble::$trouble => $module::REMEDIES,)*
                }
            }
        }
    };
}

findings! {
    SmallReads => small_reads,
    SmallWrites => small_writes,
    BandwidthLimited => bandwidth_limited,
    WindowLimited => window_limited,
    Loss => loss,
    ServerQueueing => server_queueing,
    SlowFilesystem => slow_filesystem,
    SlowLogon => slow_logon,
    SlowFlush => slow_flush,
    Protection => protection,
    RepeatedLookups => repeated_lookups,
    RepeatedListings => repeated_listings,
    FailingLookups => failing_lookups,
    OpenCloseChurn => open_close_churn,
    NoCompounding => no_compounding,
    ShareConflicts => share_conflicts,
    LockContention => lock_contention,
    BreakWaits => break_waits,
    CreditStarvation => credit_starvation,
    Stragglers => stragglers,
    SlowClient => slow_client,
    BreakNotAcknowledged => break_not_acknowledged,
    FixedTimer => fixed_timer,
    ProxyDelay => proxy_delay,
    DelayedAcknowledgement => delayed_acknowledgement,
    PerEntryRequests => per_entry_requests,
    Polling => polling,
    HeadOfLineBlocking => head_of_line_blocking,
}

/// A remedy: where, and exactly what.
const fn remedy(at: &'static str, action: &'static str) -> Remedy {
    Remedy { at, action }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_named_like_its_trouble() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explain/findings");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = files.map(|file| file.file_name().into_string()).collect();
        files.sort();
        let mut names: Vec<_> = Trouble::ALL
            .iter()
            .filter_map(|trouble| serde_json::to_value(trouble).ok())
            .filter_map(|id| Some(Ok(format!("{}.rs", id.as_str()?.replace('-', "_")))))
            .collect();
        names.sort();
        assert_eq!(files, names);
    }

    #[test]
    fn titles_are_short_and_each_trouble_has_remedies() {
        for trouble in Trouble::ALL {
            assert!(trouble.title().len() < 40, "{trouble:?}");
            assert!(!trouble.remedies().is_empty(), "{trouble:?}");
        }
    }
}
