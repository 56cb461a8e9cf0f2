//! From today's mean to the predicted one: a bar for today's, one step for each part that differs,
//! each starting where the previous one ends, and a bar for the predicted mean.

use std::fmt::{self, Write};

use crate::answers::prediction::{ForecastRow, title};
use crate::document::{Drawing, TextOptions};
use crate::render::{
    html::{escape, open},
    text::wrapped,
};
use crate::value::format;

/// Several steps below this share of the largest one are joined.
const TINY: f64 = 0.01;
/// Smallest width of a bar, in percent of the chart.
const WIDTH_MIN: f64 = 0.4;

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct Waterfall {
    pub(crate) caption: String,
    pub(crate) unit: String,
    pub(crate) help: String,
    pub(crate) bars: Vec<Bar>,
}

impl Drawing for Waterfall {
    fn svg(&self, out: &mut String) {
        write_svg(out, self);
    }

    fn text(&self, out: &mut String, options: &TextOptions) -> fmt::Result {
        write_text(out, self, options.columns())
    }
}

/// A bar: a mean, starting at 0, or a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) title: String,
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
    pub(crate) is_whole: bool,
}

/// A part, or several as one, before and after.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) title: String,
    /// Titles of the parts that were joined.
    pub(crate) joined: Vec<String>,
    pub(crate) before_ns: i64,
    pub(crate) after_ns: i64,
}

/// The steps from one mean to the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Steps {
    pub(crate) before_ns: i64,
    pub(crate) after_ns: i64,
    /// Parts that differ.
    pub(crate) changed: Vec<Step>,
    /// The parts that do not differ, joined; none where all differ.
    pub(crate) unchanged: Option<Step>,
}

impl Step {
    pub(crate) fn difference_ns(&self) -> i64 {
        self.after_ns.saturating_sub(self.before_ns)
    }

    fn join(&mut self, other: Step) {
        self.before_ns = self.before_ns.saturating_add(other.before_ns);
        self.after_ns = self.after_ns.saturating_add(other.after_ns);
        self.joined.push(other.title);
    }
}

impl Steps {
    /// None without a mean.
    pub(crate) fn from_row(row: &ForecastRow) -> Option<Steps> {
        let (before_ns, after_ns) = (row.before_ns?, row.after_ns?);
        let parts = row.parts.iter().map(|part| Step {
            title: title(&part.part),
            joined: Vec::new(),
            before_ns: part.before_ns,
            after_ns: part.after_ns,
        });
        let (mut changed, unchanged): (Vec<_>, Vec<_>) =
            parts.partition(|step| step.difference_ns() != 0);
        let size = |step: &Step| step.difference_ns().unsigned_abs() as f64;
        let largest = changed.iter().map(size).fold(0.0, f64::max);
        let is_tiny = |step: &Step| size(step) < TINY * largest;
        if changed.iter().filter(|step| is_tiny(step)).count() > 1 {
            let (tiny, others): (Vec<_>, Vec<_>) = changed.into_iter().partition(is_tiny);
            changed = others;
            changed.extend(joined("Others", tiny));
        }
        Some(Steps { before_ns, after_ns, changed, unchanged: joined("Unchanged", unchanged) })
    }

    /// The bars; the last step ends at the predicted mean.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let whole = |title: &str, to_ns: i64| Bar {
            title: title.to_owned(),
            from_ns: 0,
            to_ns,
            is_whole: true,
        };
        let mut bars = vec![whole("Today", self.before_ns)];
        let mut level = self.before_ns;
        let mut step = |title: &str, difference_ns: i64| {
            let from_ns = level;
            level = level.saturating_add(difference_ns);
            Bar { title: title.to_owned(), from_ns, to_ns: level, is_whole: false }
        };
        let steps: Vec<_> =
            self.changed.iter().map(|one| step(&one.title, one.difference_ns())).collect();
        bars.extend(steps);
        // Parts add up to the means; otherwise an unattributed step makes the chart correct.
        if level != self.after_ns {
            bars.push(Bar {
                title: "Not attributed".to_owned(),
                from_ns: level,
                to_ns: self.after_ns,
                is_whole: false,
            });
        }
        bars.push(whole("Predicted", self.after_ns));
        bars
    }
}

fn joined(title: &str, steps: Vec<Step>) -> Option<Step> {
    let mut all = Step { title: title.to_owned(), ..Step::default() };
    let any = !steps.is_empty();
    steps.into_iter().for_each(|step| all.join(step));
    any.then_some(all)
}

impl Bar {
    pub(crate) fn difference_ns(&self) -> i64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// From the smallest to the largest value in the chart; 0 is always included.
pub(crate) fn range(bars: &[Bar]) -> (i64, i64) {
    let ends = || bars.iter().flat_map(|bar| [bar.from_ns, bar.to_ns]);
    (ends().fold(0, i64::min), ends().fold(0, i64::max))
}

/// Position of a value, in percent of the range.
pub(crate) fn place((low, high): (i64, i64), ns: i64) -> f64 {
    let width = (high as f64 - low as f64).max(1.0);
    ((ns as f64 - low as f64) / width * 100.0).clamp(0.0, 100.0)
}

/// Left end and width of a bar, in percent of the range; bars too narrow to see are widened within the
/// chart.
pub(crate) fn extent(range: (i64, i64), bar: &Bar) -> (f64, f64) {
    let (from, to) = (place(range, bar.from_ns), place(range, bar.to_ns));
    let width = (to - from).abs().max(WIDTH_MIN);
    (from.min(to).min(100.0 - width), width)
}

/// Round values for an axis: 1, 2 or 5 times a power of ten apart, at most five from 0.
pub(crate) fn ticks((low, high): (i64, i64)) -> Vec<i64> {
    let span = high.saturating_sub(low).max(1);
    let mut power: i64 = 1;
    loop {
        for step in [1, 2, 5].map(|digit| power.saturating_mul(digit)) {
            if span / step < 5 {
                return (low / step..=high / step).map(|n| n.saturating_mul(step)).collect();
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Classes of a waterfall's bars, and what they mean.
const KINDS: [(&str, &str); 3] = [("whole", "in total"), ("up", "longer"), ("down", "shorter")];

fn kind(bar: &Bar) -> &'static str {
    match (bar.is_whole, bar.difference_ns() < 0) {
        (true, _) => "whole",
        (false, false) => "up",
        (false, true) => "down",
    }
}

/// A bar for today, a step for each part that differs, a bar for what is predicted; one unit.
fn write_svg(out: &mut String, chart: &Waterfall) {
    open(out, &chart.caption, &chart.unit, &chart.help);
    out.push_str("<ul class=\"legend\">");
    for (class, words) in KINDS {
        if chart.bars.iter().any(|bar| kind(bar) == class) {
            let _ = write!(out, "<li><i class=\"{class}\"></i>{words}</li>");
        }
    }
    out.push_str("</ul>\n<div class=\"bars waterfall\">\n");
    let range = range(&chart.bars);
    for (number, bar) in chart.bars.iter().enumerate() {
        let (x, width) = extent(range, bar);
        let class = kind(bar);
        let value = if bar.is_whole {
            format::ms(bar.to_ns)
        } else {
            format::signed_ms(bar.difference_ns())
        };
        // From where the bar above ends.
        let link = match number {
            0 => String::new(),
            _ => {
                let at = place(range, if bar.is_whole { bar.to_ns } else { bar.from_ns });
                format!("<line x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"-45%\" y2=\"100%\"/>")
            }
        };
        let from_to = format!("from {} to {}", format::ms(bar.from_ns), format::ms(bar.to_ns));
        let _ = writeln!(
            out,
            "<div class=\"row\"><span title=\"{0}\">{0}</span><svg role=\"img\"><title>{1}</title><desc>{2}</desc>{link}\
             <rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"100%\"/></svg><b>{3}</b></div>",
            escape(&bar.title),
            escape(&format!("{}: {value}", bar.title)),
            escape(&from_to),
            escape(&value)
        );
    }
    out.push_str("<div class=\"row axis\"><span></span><div class=\"ticks\">");
    for tick in ticks(range) {
        let at = place(range, tick);
        // Text stays within the chart.
        let class = match at {
            0.0..3.0 => " class=\"begin\"",
            95.0.. => " class=\"end\"",
            _ => "",
        };
        let words = escape(&format::milli(tick));
        let _ = write!(out, "<i{class} style=\"left:{at:.2}%\">{words}</i>");
    }
    out.push_str("</div><b></b></div>\n</div></figure>\n");
}

/// A bar for each whole and each step, at its place.
fn write_text(out: &mut String, chart: &Waterfall, width: usize) -> fmt::Result {
    writeln!(out, "{}, {}", chart.caption, chart.unit)?;
    wrapped(out, &chart.help, width)?;
    let value = |bar: &Bar| {
        if bar.is_whole { format::ms(bar.to_ns) } else { format::signed_ms(bar.difference_ns()) }
    };
    let longest = |of: &dyn Fn(&Bar) -> usize| chart.bars.iter().map(of).max();
    let label = longest(&|bar| bar.title.chars().count()).unwrap_or(0);
    let number = longest(&|bar| value(bar).chars().count()).unwrap_or(0);
    let room = width.saturating_sub(label + number + 6).max(10);
    let range = range(&chart.bars);
    for bar in &chart.bars {
        let (x, wide) = extent(range, bar);
        let column = |percent: f64| (percent / 100.0 * room as f64).round() as usize;
        let start = column(x).min(room - 1);
        let end = column(x + wide).clamp(start + 1, room);
        let (fill, _) = drawn_with(bar);
        let drawn = format!("{}{}", " ".repeat(start), fill.repeat(end - start));
        writeln!(out, "  {:label$}  {:>number$}  {drawn}", bar.title, value(bar))?;
    }
    let mut legend: Vec<_> = Vec::new();
    for (fill, words) in chart.bars.iter().map(drawn_with) {
        let words = format!("{fill} {words}");
        if !legend.contains(&words) {
            legend.push(words);
        }
    }
    writeln!(out, "  {}", legend.join("  "))
}

/// What a waterfall's bar is drawn with, and what it means.
fn drawn_with(bar: &Bar) -> (&'static str, &'static str) {
    match (bar.is_whole, bar.difference_ns() < 0) {
        (true, _) => ("█", "in total"),
        (false, false) => ("▒", "longer"),
        (false, true) => ("░", "shorter"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::prediction::ForecastPart;

    fn row(parts: &[(&str, i64, i64)]) -> ForecastRow {
        ForecastRow {
            before_ns: Some(parts.iter().map(|part| part.1).sum()),
            after_ns: Some(parts.iter().map(|part| part.2).sum()),
            parts: parts
                .iter()
                .map(|&(part, before_ns, after_ns)| ForecastPart {
                    part: part.to_owned(),
                    before_ns,
                    after_ns,
                })
                .collect(),
            ..ForecastRow::default()
        }
    }

    /// Each bar starts where the previous one ends, and the steps lead from the first to the last.
    fn is_closed(steps: &Steps) -> Vec<Bar> {
        let bars = steps.bars();
        let [first, between @ .., last] = bars.as_slice() else { panic!("{bars:?}") };
        assert!(first.is_whole && last.is_whole);
        assert_eq!((first.from_ns, first.to_ns), (0, steps.before_ns));
        assert_eq!((last.from_ns, last.to_ns), (0, steps.after_ns));
        let mut level = first.to_ns;
        for bar in between {
            assert!(!bar.is_whole && bar.difference_ns() != 0);
            assert_eq!(bar.from_ns, level);
            level = bar.to_ns;
        }
        assert_eq!(level, last.to_ns);
        let range = range(&bars);
        for bar in &bars {
            let (x, width) = extent(range, bar);
            assert!(x >= 0.0 && width >= WIDTH_MIN && x + width <= 100.0 + 1e-9, "{bar:?}");
            // Drawn from end to end, if it is wide enough to see.
            if width > WIDTH_MIN {
                assert!((x - place(range, bar.from_ns.min(bar.to_ns))).abs() < 1e-9);
                assert!((x + width - place(range, bar.from_ns.max(bar.to_ns))).abs() < 1e-9);
            }
        }
        bars
    }

    #[test]
    fn an_increase_leads_from_today_to_the_prediction() {
        for rtt_ns in [200_000, 20_000_000, 200_000_000_000] {
            let row = row(&[
                ("network", 14_000, rtt_ns),
                ("windows", 0, rtt_ns / 3),
                ("server", 225_000, 225_000),
                ("rest", 63_001, 63_001),
            ]);
            let steps = Steps::from_row(&row).unwrap();
            assert_eq!(is_closed(&steps).len(), 4);
            let unchanged = steps.unchanged.as_ref().unwrap();
            assert_eq!((unchanged.before_ns, unchanged.after_ns), (288_001, 288_001));
            assert_eq!(unchanged.joined.len(), 2);
        }
    }

    #[test]
    fn a_decrease_and_sums_below_zero_stay_in_the_chart() {
        let down = row(&[("filesystem", 9_000_000, 2_250_000), ("server", 1_000, 1_000)]);
        let bars = is_closed(&Steps::from_row(&down).unwrap());
        assert!(bars[1].difference_ns() < 0);
        assert_eq!(range(&bars), (0, 9_001_000));
        // Operations in parallel: the time between them is negative.
        let mixed = row(&[("network", 5, 900), ("server", 300, 100), ("between", 10, -700)]);
        is_closed(&Steps::from_row(&mixed).unwrap());
        let below = row(&[("server", 500, 0), ("between", 100, -400), ("rest", 0, 700)]);
        let bars = is_closed(&Steps::from_row(&below).unwrap());
        assert_eq!(range(&bars), (-400, 600));
    }

    #[test]
    fn tiny_steps_are_one_and_a_single_one_keeps_its_name() {
        let one = [("network", 0, 1_000_000), ("parse", 10, 5)];
        let steps = Steps::from_row(&row(&one)).unwrap();
        assert_eq!(steps.changed.len(), 2);
        is_closed(&steps);
        let two = [one.as_slice(), &[("send", 0, 70)]].concat();
        let steps = Steps::from_row(&row(&two)).unwrap();
        let others = steps.changed.last().unwrap();
        assert_eq!((others.title.as_str(), others.joined.len()), ("Others", 2));
        assert_eq!(others.difference_ns(), 65);
        is_closed(&steps);
    }

    #[test]
    fn a_difference_that_no_part_explains_is_a_step_of_its_own() {
        let mut row = row(&[("network", 10, 1_000)]);
        row.after_ns = Some(1_400);
        let bars = is_closed(&Steps::from_row(&row).unwrap());
        assert_eq!(bars[2].difference_ns(), 400);
        row.after_ns = None;
        assert_eq!(Steps::from_row(&row), None);
        let nothing = Steps::from_row(&self::row(&[("server", 7, 7)])).unwrap();
        assert_eq!(is_closed(&nothing).len(), 2);
    }

    #[test]
    fn an_axis_has_a_few_round_values() {
        for span in [1, 7, 10, 99, 21_642_000, i64::MAX / 2] {
            let ticks = ticks((0, span));
            assert!((1..=5).contains(&ticks.len()) && ticks[0] == 0, "{span}: {ticks:?}");
            assert!(ticks.iter().all(|tick| *tick <= span));
        }
        assert_eq!(ticks((-700, 600)), [-500, 0, 500]);
    }
}
