//! The options that ask about a part of a recording, shared by all commands that read operations, and
//! what the answer says about them.

use clap::Args;
use smbscope_report::{Clock, Selection, format};
use smbscope_store::source::{RecordedFilter, Source};
use smbscope_tables::filter::{CommandChoice, Endpoint, Filter, PathPattern, ShareName, UserName};

use crate::exit::{Code, Failure};
use crate::fail_on::Noticed;
use crate::local_time;
use crate::options::Verbosity;
use crate::pipeline::period::{Extent, Moment, Period, select};
use crate::settings;

/// Which operations are included. Several values of one option are alternatives; different options
/// must all hold.
#[derive(Clone, Debug, Default, Args)]
#[command(
    next_help_heading = "Filter options (alternatives within an option; all options must hold)"
)]
pub struct FilterOptions {
    /// Include operations (of a CPU trace: interrupts, samples) at this time or later: 14:05, 14:05:30 or
    /// 2026-11-26T14:05:30 (local time; append Z or +01:00 for another zone), 90s or +5m (since the start of the
    /// recording), or 'last 5m'.
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// Include operations that began before this time.
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
    /// Include operations of this client: an address, ADDRESS:PORT, or a network such as
    /// 10.1.0.0/16.
    #[arg(long = "client", value_name = "ADDRESS,...", value_delimiter = ',')]
    pub clients: Vec<Endpoint>,
    /// Include operations of this server, written like a client.
    #[arg(long = "server", value_name = "ADDRESS,...", value_delimiter = ',')]
    pub servers: Vec<Endpoint>,
    /// Include operations on this share: its name, or \\server\name; * and ? are wildcards. Case is
    /// ignored, as SMB does.
    #[arg(long = "share", value_name = "SHARE")]
    pub shares: Vec<ShareName>,
    /// Include operations of this user: the name, DOMAIN\name, or name@REALM; * and ? are wildcards.
    #[arg(long = "user", value_name = "USER")]
    pub users: Vec<UserName>,
    /// Include operations on these files: *.docx (anywhere), projects/*/plan.docx (from the root of
    /// the share), projects/** (everything below); slash and backslash are the same.
    #[arg(long = "path", value_name = "GLOB")]
    pub paths: Vec<PathPattern>,
    /// Include these commands (Create, QueryInfo, ...), or classes of commands, which include SMB1's
    /// (open, close, read, write, list, query, set, lock, ...).
    #[arg(long = "command", value_name = "NAME,...", value_delimiter = ',')]
    pub commands: Vec<CommandChoice>,
    /// Include operations that took this long or longer: 100ms, 2s. Operations without a known time are left out.
    #[arg(long, value_name = "DURATION")]
    pub slower: Option<Noticed>,
    /// Read and show times of day as UTC instead of local time (or of `time-zone` in smbscope.toml).
    #[arg(long)]
    pub utc: bool,
}

impl FilterOptions {
    /// Applies the options to a source.
    pub fn apply(&self, source: &mut Source, verbosity: &Verbosity) -> anyhow::Result<()> {
        if source.is_trace() {
            return Err(Failure::usage(
                "a CPU trace has no SMB operations: use `smbscope report` or `smbscope query`",
            ));
        }
        let (filter, period) = self.parts();
        if filter.is_empty() && period == Period::default() {
            return Ok(());
        }
        select(source, filter, period, verbosity)
    }

    /// Applies the period to a source of traces.
    ///
    /// # Errors
    ///
    /// A usage error for options about operations.
    pub fn apply_to_trace(&self, source: &mut Source, verbosity: &Verbosity) -> anyhow::Result<()> {
        let (filter, period) = self.parts();
        if !filter.is_empty() {
            return Err(Failure::usage(
                "a CPU trace has no SMB operations: of the filter options only --from and --to apply to it",
            ));
        }
        if period == Period::default() {
            return Ok(());
        }
        select(source, filter, period, verbosity)
    }

    /// Applies the options to a source of either kind.
    #[cfg_attr(not(feature = "sql"), allow(dead_code))]
    pub fn apply_to_any(&self, source: &mut Source, verbosity: &Verbosity) -> anyhow::Result<()> {
        if source.is_trace() {
            self.apply_to_trace(source, verbosity)
        } else {
            self.apply(source, verbosity)
        }
    }

    /// The filter for what happens from now on; `None` without conditions.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub fn live(&self, now: i64) -> anyhow::Result<Option<Filter>> {
        let (mut filter, period) = self.parts();
        period.resolve(Extent { start: now, end: None }, &mut filter)?;
        if filter.to.is_some_and(|to| to <= now) {
            return Err(Failure::usage("--to: this time is over already"));
        }
        Ok(Some(filter).filter(|filter| !filter.is_empty()))
    }

    fn parts(&self) -> (Filter, Period) {
        let filter = Filter {
            from: None,
            to: None,
            clients: self.clients.clone(),
            servers: self.servers.clone(),
            shares: self.shares.clone(),
            users: self.users.clone(),
            paths: self.paths.clone(),
            commands: self.commands.clone(),
            slower_ns: self.slower.map(|slower| slower.0),
        };
        let zoned = |moment: Option<Moment>| {
            let zone = settings::get().zone(self.utc);
            moment.map(|moment| zone.map_or(moment, |zone| moment.in_zone(zone)))
        };
        (filter, Period { from: zoned(self.from), to: zoned(self.to) })
    }

    /// The filter of a source in words, with times in the zone of the options; `None` without a filter.
    pub fn words(&self, source: &Source) -> Option<String> {
        let filter = source.filter()?;
        let clock = self.clock(filter.from.or(filter.to));
        Some(filter.words(source.options().tokenizer.is_some(), clock.offset_s()))
    }

    /// The zone in which times of day are shown: that of this machine at a time (ns since 1970), or UTC.
    pub fn clock(&self, at_ns: Option<i64>) -> Clock {
        local_time::clock(self.utc, at_ns)
    }

    /// What the filter of a source left of its operations, after a pass; `None` without a filter.
    pub fn selection(&self, source: &Source) -> Option<Selection> {
        let filtered = source.filtered()?;
        Some(Selection {
            filter: self.words(source)?,
            operations: filtered.kept(),
            operations_all: Some(filtered.all()),
        })
    }

    /// Both, as texts.
    pub fn selections(&self, source: &Source) -> Vec<String> {
        let given = self.selection(source).map(|selection| selection.text());
        given.into_iter().chain(recorded(source).map(|recorded| recorded.recorded_text())).collect()
    }

    /// An error where a filter left nothing.
    pub fn refuse_nothing(&self, source: &Source) -> anyhow::Result<()> {
        match self.selection(source) {
            Some(Selection { filter, operations: 0, operations_all }) => {
                let all = format::count(operations_all.unwrap_or(0));
                let message = match operations_all {
                    None | Some(0) => {
                        format!("no operation matches the filter ({filter}): the input has none")
                    }
                    Some(_) => format!("none of {all} operations matches the filter ({filter})"),
                };
                Err(Failure::new(Code::NoMatch, message).into())
            }
            _ => Ok(()),
        }
    }

    /// A source's name with its filter, for the heading of an answer.
    pub fn with_selection(&self, name: &str, source: &Source) -> String {
        match self.selections(source).as_slice() {
            [] => name.to_owned(),
            all => format!("{name} ({})", all.join("; ")),
        }
    }
}

/// What the filters with which the inputs were recorded left; `None` if they were recorded whole.
pub fn recorded(source: &Source) -> Option<Selection> {
    let RecordedFilter { words, kept, all } = source.recorded_filter()?;
    Some(Selection { filter: words, operations: kept, operations_all: all })
}
