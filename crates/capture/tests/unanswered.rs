//! What requests show when the server refused or did not answer them.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::decode::decoded;
use support::smb2::{
    TREE_CONNECT, TREE_DISCONNECT, bare, create, error, session_setup, tree_connect,
};
use support::talk::Talk;

const BAD_NETWORK_NAME: u32 = 0xc000_00cc;
const NETWORK_NAME_DELETED: u32 = 0xc000_00c9;

#[test]
fn a_refused_share_is_named_and_has_no_tree() {
    let mut talk = Talk::new();
    talk.connect();
    let refused = error(TREE_CONNECT, 4, BAD_NETWORK_NAME).tree(0);
    talk.exchange(tree_connect(4, r"\\files\gone"), 1_000, refused);
    let unknown = error(TREE_DISCONNECT, 5, NETWORK_NAME_DELETED).tree(0);
    talk.exchange(bare(TREE_DISCONNECT, 5).tree(0), 1_000, unknown);
    talk.ask(tree_connect(6, r"\\files\slow").framed());
    let decoded = decoded(&talk);
    let rows = decoded.by_id();
    assert_eq!(rows["14"]["share"], r"\\files\gone");
    assert!(!rows["15"].contains_key("share"));
    assert_eq!(rows["16"]["share"], r"\\files\slow");
    let shares: Vec<_> = decoded.trees.iter().map(|tree| tree.share.as_deref()).collect();
    assert_eq!(shares, [Some(r"\\files\home")]);
}

#[test]
fn who_logs_on_is_known_from_the_client_alone() {
    let mut talk = Talk::new();
    talk.ask(session_setup(1, None).framed());
    talk.ask(session_setup(2, Some("ada")).framed());
    talk.ask(create(3, "a").framed());
    let decoded = decoded(&talk);
    let rows = decoded.by_id();
    assert_eq!(rows["12"]["user"], "ada");
    assert_eq!(rows["13"]["user"], "ada");
    let [session] = &decoded.sessions[..] else { panic!("{:?}", decoded.sessions) };
    assert_eq!((session.user.as_deref(), session.guest), (Some("ada"), None));
}
