//! Values before and after as pairs of bars. A terminal has them as lines of the plan.

use std::fmt::Write;

use crate::document::Drawing;
use crate::render::html::{escape, open};

/// Values before and after, as pairs of bars.
#[derive(Clone, Debug)]
pub(crate) struct BeforeAfter {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// Names, and values from 0 to 1 and above.
    pub(crate) rows: Vec<(String, f64, f64)>,
}

impl Drawing for BeforeAfter {
    fn svg(&self, out: &mut String) {
        write_svg(out, self);
    }
}

/// A pair of bars for each row: before above, after below.
fn write_svg(out: &mut String, chart: &BeforeAfter) {
    open(out, &chart.caption, "", &chart.help);
    out.push_str(
        "<ul class=\"legend\"><li><i class=\"k3\"></i>today</li><li><i class=\"k1\"></i>planned</li></ul>\n<div class=\"bars pairs\">\n",
    );
    let most = chart.rows.iter().map(|row| row.1.max(row.2)).fold(1.0, f64::max);
    for (name, now, planned) in &chart.rows {
        let percent = |value: f64| format!("{:.0} %", value * 100.0);
        let words = format!("{} → {}", percent(*now), percent(*planned));
        let _ = writeln!(
            out,
            "<div class=\"row\"><span>{}</span><svg role=\"img\"><title>{}</title>\
             <rect class=\"k3\" width=\"{:.1}%\" height=\"45%\"/><rect class=\"k1\" y=\"50%\" width=\"{:.1}%\" height=\"45%\"/></svg><b>{}</b></div>",
            escape(name),
            escape(&format!("{name}: {words}")),
            now / most * 100.0,
            planned / most * 100.0,
            escape(&words)
        );
    }
    out.push_str("</div></figure>\n");
}
