//! Whether something keeps the machine's wall clock right: what captures and load runs of several
//! machines are compared by.

use crate::subprocess::answer_of;

/// What the machine says of its wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronised {
    /// Whether something keeps it right.
    pub synchronised: bool,
    /// How wrong it could be, where that is known.
    pub error_ns: Option<i64>,
}

/// Asks chrony, then systemd, whether the wall clock is synchronised; `None` where neither says.
pub fn synchronised() -> Option<Synchronised> {
    let tracking = answer_of("chronyc", &["-c", "tracking"]);
    tracking.and_then(|text| chrony_state(&text)).or_else(|| {
        let shown = answer_of("timedatectl", &["show", "--property=NTPSynchronized", "--value"])?;
        let synchronised = match shown.trim() {
            "yes" => true,
            "no" => false,
            _ => return None,
        };
        Some(Synchronised { synchronised, error_ns: None })
    })
}

/// Reads `chronyc -c tracking`: offset, root delay and root dispersion are fields 5, 11 and 12, the
/// leap status the last one (chronyc(1)).
fn chrony_state(text: &str) -> Option<Synchronised> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let seconds = |place: usize| fields.get(place)?.parse::<f64>().ok();
    let error = seconds(4)?.abs() + seconds(10)? / 2.0 + seconds(11)?;
    let synchronised = fields.last().is_some_and(|leap| *leap != "Not synchronised");
    Some(Synchronised {
        synchronised,
        error_ns: (synchronised && error.is_finite()).then_some((error * 1e9) as i64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chrony_tells_how_wrong_the_clock_may_be() {
        let text = "C0A80001,ntp.lab,3,1795305600.1,0.000001000,-0.000002,0.00002,-12.3,0.01,0.05,0.004000000,0.001000000,64.2,Normal\n";
        let state = chrony_state(text).unwrap();
        assert_eq!(state, Synchronised { synchronised: true, error_ns: Some(3_001_000) });
        let text = "7F7F0101,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n";
        let state = chrony_state(text).unwrap();
        assert_eq!(state, Synchronised { synchronised: false, error_ns: None });
        assert_eq!(chrony_state("506 Cannot talk to daemon"), None);
    }
}
