//! `smbscope doctor --sample`: the shape of an event trace log, without its contents.

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use smbscope_store::shape::{Shape, shape};

use crate::format::TextFormat;
use crate::output::Output;

/// Shows the shape of a log.
pub fn run(trace: &Path, format: TextFormat) -> anyhow::Result<()> {
    let name = trace.display().to_string();
    let file = File::open(trace).with_context(|| format!("cannot open {name}"))?;
    let shape = shape(file).with_context(|| name.clone())?;
    let mut output = Output::stdout();
    let text = match format {
        TextFormat::Text => text(&shape),
        TextFormat::Json => format!("{:#}\n", json(&shape)),
    };
    output.text(&text)?;
    output.finish()
}

fn text(shape: &Shape) -> String {
    let mut text = format!(
        "build {}, {} CPUs, {} MHz, clock {} ({} ticks per second), {} events lost\n\
         {} buffers, {} compressed, {} damaged\n\
         {:<40} {:>6} {:>7} {:>10}  {:<18} fields in bytes\n",
        shape.build,
        shape.cpus,
        shape.cpu_mhz,
        shape.clock.unwrap_or("unknown"),
        shape.ticks_per_second,
        shape.events_lost,
        shape.buffers,
        shape.buffers_compressed,
        shape.damaged,
        "provider",
        "event",
        "version",
        "count",
        "keywords",
    );
    for ((provider, id, version), events) in &shape.events {
        let lengths: Vec<_> = events.lengths.iter().map(usize::to_string).collect();
        let more = if events.has_more_lengths { " ..." } else { "" };
        text.push_str(&format!(
            "{provider:<40} {id:>6} {version:>7} {:>10}  {:<#18x} {}{more}\n",
            events.count,
            events.keywords,
            lengths.join(" "),
        ));
    }
    if shape.others > 0 {
        text.push_str(&format!("{} events of other kinds\n", shape.others));
    }
    text
}

fn json(shape: &Shape) -> serde_json::Value {
    let events = shape.events.iter().map(|((provider, id, version), events)| {
        json!({
            "provider": provider,
            "event": id,
            "version": version,
            "count": events.count,
            "keywords": format!("{:#x}", events.keywords),
            "lengths": events.lengths,
            "has_more_lengths": events.has_more_lengths,
        })
    });
    json!({
        "build": shape.build,
        "cpus": shape.cpus,
        "cpu_mhz": shape.cpu_mhz,
        "clock": shape.clock,
        "ticks_per_second": shape.ticks_per_second,
        "events_lost": shape.events_lost,
        "buffers": shape.buffers,
        "buffers_compressed": shape.buffers_compressed,
        "damaged": shape.damaged,
        "events": events.collect::<Vec<_>>(),
        "others": shape.others,
    })
}
