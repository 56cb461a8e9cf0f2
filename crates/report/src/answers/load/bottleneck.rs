//! What limited a step of a load run, in words.

use smbscope_analysis::summary::{Bottleneck, StepRow};

use crate::value::format::sanitized;

const OTHERS: &str = "server CPUs, mostly by other processes than smbd";

/// The step's bottleneck; `None` if it has none, or if nothing is known of the server.
pub(crate) fn bottleneck(row: &StepRow) -> Option<String> {
    let instance = sanitized(row.bottleneck_instance.as_deref().unwrap_or_default());
    Some(match row.bottleneck? {
        Bottleneck::LoadGenerator => "load generator".to_owned(),
        Bottleneck::Processors => "server CPUs".to_owned(),
        Bottleneck::OtherProcesses if instance.is_empty() => OTHERS.to_owned(),
        Bottleneck::OtherProcesses => format!("{OTHERS} ({instance})"),
        Bottleneck::Disk => format!("server disk {instance}"),
        Bottleneck::OneProcessor => format!("server CPU {instance} alone"),
        Bottleneck::None => "neither CPUs nor disks of the server".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bottleneck_has_words_and_an_id() {
        let mut words = Vec::new();
        for one in Bottleneck::ALL {
            let row = StepRow {
                bottleneck: Some(one),
                bottleneck_instance: Some("sda".to_owned()),
                ..StepRow::default()
            };
            words.push(bottleneck(&row).unwrap());
        }
        assert_eq!(words[3..5], ["server disk sda", "server CPU sda alone"]);
        words.sort();
        words.dedup();
        assert_eq!(words.len(), Bottleneck::ALL.len());
        assert_eq!(bottleneck(&StepRow::default()), None);
        let ids = Bottleneck::ALL.map(|one| serde_json::to_value(one).unwrap());
        assert_eq!(
            ids,
            ["load-generator", "processors", "other-processes", "disk", "one-processor", "none"]
        );
    }
}
