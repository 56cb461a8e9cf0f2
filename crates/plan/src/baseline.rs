//! Security baselines: which settings touch a file server, what each costs here, and which one is to blame.
//!
//! [`setting`] is the waist: every form in which settings travel is read to it ([`read`]) and written from it
//! ([`mod@write`]). [`effective`] applies several inputs one after the other, [`catalogue`] knows what a setting means,
//! [`terms`] brings places of one meaning together, and [`difference`] compares two baselines. [`hardened`] has the
//! demands on UNC paths, [`roles`] which machines a policy is for, [`protection`] what signs and encrypts, [`cost`] the questions for predict, [`judgement`] the
//! result, and [`bisect`] the search for the setting to blame.

pub mod bisect;
pub mod catalogue;
pub mod cost;
pub mod difference;
pub mod effective;
pub mod hardened;
pub mod judgement;
pub mod protection;
pub mod read;
pub mod roles;
pub mod setting;
pub mod terms;
pub mod write;
