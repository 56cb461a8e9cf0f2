//! Areas on top of each other over time, with moments marked.

use std::fmt::Write;

use serde_json::{Value, json};

use super::charts::{legend, open};
use super::plot::{Frame, HEIGHT, WIDTH, rounded, top};
use crate::document::{Areas, Join, joined};
use crate::value::{Clock, Format, format, show, ticks};

/// Steps of an area; more cannot be distinguished.
const BINS: usize = 300;
/// Labels of moments are at least this far apart, per cent of the width.
const APART: f64 = 9.0;

/// The chart.
pub(super) fn areas(out: &mut String, chart: &Areas, clock: &Clock) {
    open(out, &chart.caption, "bytes/s", &chart.help);
    out.push_str("<div class=\"lines areas\">");
    let names = chart.layers.iter().enumerate();
    legend(out, &names.map(|(place, (name, _))| (place, name.as_str())).collect::<Vec<_>>());
    let all = chart.layers.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(1);
    let layers: Vec<_> =
        chart.layers.iter().map(|(_, values)| joined(values, BINS, Join::Mean)).collect();
    let bins = layers.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let whole_ns = chart.bin_ns.saturating_mul(all as i64).max(1);
    let size = all.div_ceil(BINS).max(1);
    // The last step may be narrower than the others.
    let x = |bin: usize| (bin * size).min(all) as f64 / all as f64 * WIDTH;
    let mut below = vec![0.0; bins];
    let mut sums = Vec::new();
    for layer in &layers {
        let above: Vec<f64> = (below.iter().enumerate())
            .map(|(bin, below)| below + layer.get(bin).copied().unwrap_or(0.0).max(0.0))
            .collect();
        sums.push((std::mem::replace(&mut below, above.clone()), above));
    }
    let most = below.iter().copied().fold(0.0, f64::max);
    let top = top(most, Format::Bytes);
    let y = |value: f64| HEIGHT - value / top * HEIGHT;
    let mut shapes = String::new();
    for (place, (below, above)) in sums.iter().enumerate() {
        let _ = write!(shapes, "<path class=\"f{place}\" d=\"M0 {:.1}", y(below[0]));
        for (bin, value) in above.iter().enumerate() {
            let _ = write!(shapes, "L{:.1} {:.2}H{:.1}", x(bin), y(*value), x(bin + 1));
        }
        for (bin, value) in below.iter().enumerate().rev() {
            let _ = write!(shapes, "L{:.1} {:.2}H{:.1}", x(bin + 1), y(*value), x(bin));
        }
        shapes.push_str("Z\"/>");
    }
    let place = |ns: i64| ns.saturating_sub(chart.start_ns) as f64 / whole_ns as f64;
    let mut labels: Vec<(f64, String)> = Vec::new();
    for mark in &chart.marks {
        let at = place(mark.at_ns).clamp(0.0, 1.0);
        let class = if mark.is_data { "event data" } else { "event" };
        let _ = write!(
            shapes,
            "<path class=\"l{} {class}\" d=\"M{:.1} 0V{HEIGHT}\"/>",
            mark.layer,
            at * WIDTH
        );
        let at = at * 100.0;
        let is_free = labels.iter().all(|(other, _)| (at - other).abs() >= APART);
        if is_free && at < 100.0 - APART {
            labels.push((at, mark.words.clone()));
        }
    }
    let values: Vec<Vec<Value>> =
        layers.iter().map(|values| values.iter().map(|value| rounded(*value)).collect()).collect();
    let said: Vec<_> = (chart.marks.iter())
        .map(|mark| {
            let after = format::duration(mark.at_ns.saturating_sub(chart.start_ns));
            format!("{} after {after}", mark.words)
        })
        .collect();
    let frame = Frame {
        class: "",
        format: Format::Bytes,
        per: "/s",
        most,
        across: ticks::times(chart.start_ns, chart.start_ns.saturating_add(whole_ns), clock)
            .into_iter()
            .map(|(ns, label)| (place(ns) * 100.0, label))
            .collect(),
        shapes,
        labels,
        title: format!(
            "{}: at most {}/s. {}. {}",
            chart.caption,
            show(Format::Bytes, most),
            said.join(", "),
            chart.help
        ),
        data: json!({
            "f": "bytes",
            "p": "/s",
            "t": [chart.start_ns as f64 / 1e6, size as f64 * chart.bin_ns as f64 / 1e6],
            "w": size as f64 / all as f64,
            "n": chart.layers.iter().map(|(name, _)| format::sanitized(name)).collect::<Vec<_>>(),
            "v": values,
            "b": bins,
        }),
    };
    frame.write(out);
    out.push_str("</div></figure>\n");
}
