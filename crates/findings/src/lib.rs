//! One type for what is wrong, whatever found it: an analysis of operations, a CPU trace, a planner.
//!
//! A [`Finding`] has a kind of a closed list, a sentence, a [`Weight`] by which findings are ranked, a
//! [`Confidence`], the reason for it, the side that can change it, whom it concerns, and what to do. What only
//! one subject has (examples, contributors, evidence) is its last field, `details`, whose JSON keys stand next to
//! the others.
//!
//! [`kinds!`] declares a list of kinds. What a kind is (id, title, default remedies) is a [`KindInfo`], which the
//! file of the rule defines:
//!
//! ```
//! use smbscope_findings::{Confidence, Finding, Kind, KindInfo, Severity, Weight, kinds};
//!
//! // In the file of the rule:
//! const RSS_OFF: KindInfo = KindInfo::new("rss-off", "Receive side scaling is off")
//!     .with_severity(Severity::High)
//!     .with_remedies(&[("Windows", "Enable-NetAdapterRss")]);
//!
//! kinds! {
//!     /// What can be wrong with an adapter.
//!     pub enum AdapterProblem {
//!         /// All packets are received by one CPU.
//!         RssOff = RSS_OFF,
//!     }
//! }
//!
//! let found = Finding::new(AdapterProblem::RssOff, "Ethernet 2 receives with one CPU")
//!     .with_confidence(Confidence::Measured, "the adapter reports that RSS is disabled");
//! assert_eq!(found.weight, Weight::Severity { severity: Severity::High });
//! assert_eq!(found.remedies[0].action, "Enable-NetAdapterRss");
//! assert_eq!(AdapterProblem::from_id("rss-off"), Some(AdapterProblem::RssOff));
//! ```
//!
//! It renders nothing: words for times and bytes are in `report`.

mod finding;
mod kind;

pub use finding::{
    Actor, Confidence, Figure, Finding, NoDetails, Outcome, Owner, Remedy, Severity, Subject,
    Weight,
};
pub use kind::{Kind, KindInfo};

// For `kinds!` in crates that do not name serde.
#[doc(hidden)]
pub use serde;
