//! The live page: an overview, a pivot and the course over time, answered by SQL and shown by a browser.
//!
//! Owns the HTTP server ([`http`]) and who may ask it (`site`), the page and the policy under which it runs (`page`),
//! and what each view asks: `overview`, `pivot`, `series`, `operations`, `export`. It owns no SQL engine and no
//! reading of inputs (`smbscope-store`), no verdict and no findings (`smbscope-analysis`, which the program runs
//! for it through `Inputs`), and not how the report looks (`smbscope-report`, whose styles and parts it shows).
//!
//! The browser holds the rows that are visible, the server answers the rest:
//!
//! | request | answer |
//! |---|---|
//! | `/TOKEN/` | the page |
//! | `/TOKEN/api/about` | inputs, their period, dimensions and values |
//! | `/TOKEN/api/report`, `groups` | verdict, findings, coverage; the largest groups by dimension |
//! | `/TOKEN/api/pivot`, `export` | a part of a table; the whole table as a file |
//! | `/TOKEN/api/time` | lines over time |
//! | `/TOKEN/api/operations`, `operation` | single operations |
//!
//! Each takes its parameters as JSON in `q` and refuses what it does not know.

//! The feature `page` (default) has all of this. Without it the crate is [`http`] alone, a small server without
//! dependencies, for exporters.

pub mod http;

#[cfg(feature = "page")]
mod data;
#[cfg(feature = "page")]
mod error;
#[cfg(feature = "page")]
mod export;
#[cfg(feature = "page")]
mod filter;
#[cfg(feature = "page")]
mod operations;
#[cfg(feature = "page")]
mod overview;
#[cfg(feature = "page")]
mod page;
#[cfg(feature = "page")]
mod pivot;
#[cfg(feature = "page")]
mod series;
#[cfg(feature = "page")]
mod site;
#[cfg(feature = "page")]
mod subject;
#[cfg(feature = "page")]
mod value;

#[cfg(feature = "page")]
pub use data::{About, Data, Inputs};
#[cfg(feature = "page")]
pub use error::{Error, Result};
#[cfg(feature = "page")]
pub use site::Site;
