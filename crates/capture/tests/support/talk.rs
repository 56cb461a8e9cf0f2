//! A conversation: framed messages with their direction and time.

use super::Dice;
use super::smb2::*;

#[derive(Clone)]
pub struct Said {
    pub to_server: bool,
    /// Nanoseconds since 1970 of all its packets.
    pub time: i64,
    pub bytes: Vec<u8>,
}

/// Messages in the order of time.
#[derive(Clone)]
pub struct Talk {
    pub said: Vec<Said>,
    pub now: i64,
}

impl Talk {
    pub fn new() -> Talk {
        Talk { said: Vec::new(), now: 1_600_000_000_000_000_000 }
    }

    pub fn pass(&mut self, ns: i64) {
        self.now += ns;
    }

    pub fn ask(&mut self, bytes: Vec<u8>) {
        self.said.push(Said { to_server: true, time: self.now, bytes });
    }

    pub fn answer(&mut self, bytes: Vec<u8>) {
        self.said.push(Said { to_server: false, time: self.now, bytes });
    }

    /// A request, and its reply after `ns`.
    pub fn exchange(&mut self, request: Pdu, ns: i64, reply: Pdu) {
        self.ask(request.framed());
        self.pass(ns);
        self.answer(reply.framed());
        self.pass(10_000);
    }

    /// Up to the tree connect; uses the message ids 0 to 3.
    pub fn connect(&mut self) {
        self.exchange(negotiate(0), 400_000, negotiated(0));
        self.exchange(session_setup(1, None), 700_000, session_ready(1, MORE_PROCESSING));
        self.exchange(session_setup(2, Some("ada")), 900_000, session_ready(2, SUCCESS));
        self.exchange(tree_connect(3, r"\\files\home"), 300_000, tree_connected(3));
    }
}

/// Operations of [`everything`].
pub const EVERYTHING: usize = 28;

/// One of each kind; `fill` makes the contents of the data.
pub fn everything(mut fill: impl FnMut() -> u8) -> Talk {
    let mut data_of = |length: usize| -> Vec<u8> { (0..length).map(|_| fill()).collect() };
    let mut talk = Talk::new();
    talk.connect();
    // Pipelined.
    talk.ask(create(4, r"docs\plan.txt").framed());
    talk.ask(create(5, r"docs\big.bin").framed());
    talk.ask(create(6, "docs").framed());
    talk.pass(250_000);
    talk.answer(created(4, 40).framed());
    talk.pass(50_000);
    talk.answer(created(5, 50).framed());
    talk.answer(created(6, 60).framed());
    talk.pass(30_000);
    talk.exchange(read(7, 50, 0, 65_536), 2_000_000, data(7, &data_of(65_536)));
    talk.exchange(write(8, 50, 65_536, &data_of(65_533)), 1_500_000, written(8, 65_533));
    // Answered in another order.
    talk.ask(read(9, 40, 0, 100).framed());
    talk.pass(1_000);
    talk.ask(write(10, 40, 100, &data_of(333)).framed());
    talk.ask(read(11, 50, 9, 7).framed());
    talk.pass(120_000);
    talk.answer(data(11, &data_of(7)).framed());
    talk.answer(data(9, &data_of(100)).framed());
    talk.pass(7_000);
    talk.answer(written(10, 333).framed());
    talk.pass(20_000);
    // Compounds: answered in one message, and each member on its own.
    talk.ask(compound(vec![
        create(12, r"docs\all.doc"),
        query_info(13, SAME).related(),
        close(14, SAME).related(),
    ]));
    talk.pass(500_000);
    talk.answer(compound(vec![
        created(12, 120),
        information(13, &data_of(77)).related(),
        closed(14).related(),
    ]));
    talk.pass(5_000);
    talk.ask(compound(vec![create(15, "two"), close(16, SAME).related()]));
    talk.pass(400_000);
    talk.answer(created(15, 150).framed());
    talk.answer(closed(16).framed());
    talk.pass(9_000);
    // Waits by design, and is cancelled at the end.
    talk.ask(notify(17, 60).framed());
    talk.pass(100_000);
    talk.answer(error(CHANGE_NOTIFY, 17, PENDING).asynchronous(77).framed());
    talk.pass(10_000);
    // Another request while it is pending.
    talk.ask(read(18, 40, 0, 4_096).framed());
    talk.pass(600_000);
    talk.answer(error(READ, 18, PENDING).asynchronous(78).framed());
    talk.pass(4_000_000);
    talk.answer(data(18, &data_of(4_096)).asynchronous(78).credits(0).framed());
    talk.pass(50_000);
    talk.answer(lease_break().framed());
    talk.pass(80_000);
    talk.exchange(lease_acknowledgement(19), 150_000, lease_acknowledgement(19).reply(SUCCESS));
    talk.exchange(create(20, "gone"), 90_000, error(CREATE, 20, NOT_FOUND));
    talk.ask(bare(CANCEL, 17).asynchronous(77).framed());
    talk.pass(60_000);
    talk.answer(error(CHANGE_NOTIFY, 17, CANCELLED).asynchronous(77).framed());
    talk.pass(60_000);
    for (id, number) in [(21, 40), (22, 50), (23, 60)] {
        talk.exchange(close(id, number), 70_000, closed(id));
    }
    talk.exchange(bare(TREE_DISCONNECT, 24), 70_000, bare(TREE_DISCONNECT, 24).reply(SUCCESS));
    talk.exchange(bare(LOGOFF, 25), 70_000, bare(LOGOFF, 25).reply(SUCCESS));
    talk
}

/// Contents without an accidental magic number, yet different from byte to byte.
pub fn noise() -> impl FnMut() -> u8 {
    let mut dice = Dice::new(7);
    move || (dice.below(256) as u8) & 0x7f | 0x20
}
