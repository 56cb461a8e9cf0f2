//! A restarted service continues to be recorded.

use smbscope_client::Config;
use smbscope_samba::find::Choice;
use smbscope_samba::loader::LoadOptions;

use crate::client::Client;
use crate::recorder::{Recorder, alone};
use smbscope_testing::samba::{Samba, samba};

#[test]
fn a_server_that_is_started_again_is_recorded_too() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::from_choice(Choice::default(), LoadOptions::default(), None)
    else {
        return;
    };
    let port = lab.port();
    drop(lab);
    let Some(lab) = samba(|options| options.port = Some(port)) else { return };
    is_recorded(&lab, recorder);
}

#[test]
fn a_server_that_comes_later_on_another_port_is_recorded_too() {
    let _alone = alone();
    let Some(_first) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::from_choice(Choice::default(), LoadOptions::default(), None)
    else {
        return;
    };
    let Some(lab) = samba(|_| {}) else { return };
    is_recorded(&lab, recorder);
}

fn is_recorded(lab: &Samba, recorder: Recorder) {
    let mut client = Client::connect(lab, Config::default());
    for _ in 0..20 {
        let file = client.open("again");
        client.close(file);
    }
    drop(client);
    let rows = recorder.end().rows();
    let closes = rows.iter().filter(|row| row.command == "Close" && row.sum() > 0);
    assert!(closes.count() >= 20);
}
