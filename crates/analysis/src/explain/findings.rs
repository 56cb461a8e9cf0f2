//! The findings, one file each: id, title, remedies, what it says about itself, and where it has an
//! observation of its own, that too. Findings that share one take it from the parent module, for example
//! [`sequential_blocks`].

use smbscope_findings::kinds;

use super::breaks;
use super::candidate::Candidate;
use super::detector::{Context, Detector};
use super::lookups;
use super::operation::Operation;
use super::sequential_blocks;
use super::server_time;
use super::signing;
use super::transfer_rates;

/// Declares the files, the kinds of findings, and a struct of all detectors, so that calls are static.
macro_rules! findings {
    // Findings without a detector: what they come from is seen elsewhere.
    (@ [$($kinds:tt)*] [$($detectors:tt)*] $file:ident::$kind:ident elsewhere, $($rest:tt)*) => {
        findings! { @ [$($kinds)* $file $kind] [$($detectors)*] $($rest)* }
    };
    // Split into kinds and detectors.
    (@ [$($file:ident $kind:ident)*] [$($module:ident $detector:ident)*]) => {
        $(pub(super) mod $file;)*

        kinds! {
            /// What makes a share slow. A closed list: each is in a file of its name.
            pub enum FindingKind {
                $($kind = $file::KIND,)*
            }
        }

        /// All detectors, in the order in which they claim the time of operations.
        #[derive(Default)]
        pub(super) struct Detectors {
            $($module: $module::$detector,)*
        }

        impl Detectors {
            /// Asks each for the finding that explains an operation, then shows it to each.
            pub(super) fn see(&mut self, op: &mut Operation) {
                $(
                    let claim = self.$module.claim(op);
                    op.explained = op.explained.or(claim);
                )*
                $(self.$module.see(op);)*
            }

            /// All that was found.
            pub(super) fn finish(self, context: &mut Context) -> Vec<Candidate> {
                let mut found = Vec::new();
                $(found.extend(self.$module.finish(context));)*
                found
            }
        }
    };
    // An observation that several findings share.
    (
        @ [$($kinds:tt)*] [$($detectors:tt)*]
        $module:ident::$detector:ident => [$($file:ident::$kind:ident),*], $($rest:tt)*
    ) => {
        findings! { @ [$($kinds)* $($file $kind)*] [$($detectors)* $module $detector] $($rest)* }
    };
    // A finding with a detector of the same name.
    (@ [$($kinds:tt)*] [$($detectors:tt)*] $file:ident::$kind:ident, $($rest:tt)*) => {
        findings! { @ [$($kinds)* $file $kind] [$($detectors)* $file $kind] $($rest)* }
    };
    ($($list:tt)*) => {
        findings! { @ [] [] $($list)* }
    };
}

findings! {
    // These claim time.
    proxy_delay::ProxyDelay,
    share_conflicts::ShareConflicts,
    breaks::Breaks => [break_waits::BreakWaits, break_not_acknowledged::BreakNotAcknowledged],
    delayed_acknowledgement::DelayedAcknowledgement,
    head_of_line_blocking::HeadOfLineBlocking,
    // These do not.
    sequential_blocks::SequentialBlocks => [
        small_reads::SmallReads, small_writes::SmallWrites, one_at_a_time::OneAtATime
    ],
    transfer_rates::TransferRates => [
        bandwidth_limited::BandwidthLimited, window_limited::WindowLimited, loss::Loss
    ],
    server_time::ServerTime => [
        server_queueing::ServerQueueing, slow_filesystem::SlowFilesystem, slow_logon::SlowLogon, slow_flush::SlowFlush
    ],
    signing::Signing => [protection::Protection],
    lookups::Lookups => [
        repeated_lookups::RepeatedLookups, repeated_listings::RepeatedListings, failing_lookups::FailingLookups,
        open_close_churn::OpenCloseChurn
    ],
    no_compounding::NoCompounding,
    lock_contention::LockContention,
    credit_starvation::CreditStarvation,
    stragglers::Stragglers,
    slow_client::SlowClient,
    fixed_timer::FixedTimer,
    per_entry_requests::PerEntryRequests,
    polling::Polling,
    failing_operations::FailingOperations,
    stall::Stall,
    folder_search::FolderSearch,
    deep_queue::DeepQueue,
    uneven_channels::UnevenChannels,
    notify_storm::NotifyStorm,
    unwritten_range::UnwrittenRange,
    closed_window::ClosedWindow,
    slow_calls::SlowCalls,
    serial_requests::SerialRequests,
    // These come from the table `waits` and from connections: see `waiting`.
    late_lookup::LateLookup elsewhere,
    late_ticket::LateTicket elsewhere,
    providers_first::ProvidersFirst elsewhere,
    server_unreachable::ServerUnreachable elsewhere,
    path_mtu::PathMtu elsewhere,
    path_outage::PathOutage elsewhere,
    no_reply::NoReply elsewhere,
    connection_reset::ConnectionReset elsewhere,
}

#[cfg(test)]
mod tests {
    use smbscope_findings::Kind as _;

    use super::*;

    #[test]
    fn every_file_is_named_like_its_finding() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explain/findings");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<_> =
            files.filter_map(|file| file.file_name().into_string().ok()).collect();
        files.sort();
        let mut names: Vec<_> =
            FindingKind::ALL.iter().map(|kind| kind.id().replace('-', "_") + ".rs").collect();
        names.sort();
        assert_eq!(files, names);
    }

    #[test]
    fn titles_are_short_and_each_finding_has_remedies() {
        for kind in FindingKind::ALL {
            assert!(kind.title().len() < 40, "{kind:?}");
            assert!(kind.info().actor.is_some() && !kind.info().remedies.is_empty(), "{kind:?}");
        }
    }
}
