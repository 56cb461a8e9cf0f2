//! Charts of a document as data: what is drawn, not how.

use smbscope_analysis::explain::TimeClass;

use crate::value::Format;

/// Declares the kinds of charts.
macro_rules! charts {
    ($($name:ident)*) => {
        /// A chart that several answers have.
        #[derive(Clone, Debug)]
        pub(crate) enum Chart {
            $($name($name),)*
        }

        $(impl From<$name> for Chart {
            fn from(chart: $name) -> Chart {
                Chart::$name(chart)
            }
        })*
    };
}

charts! { Areas Changes Curve Histograms Lines Portions Stacked Timeline Times }

impl Chart {
    /// Whether it has no values, or only zeros.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Chart::Areas(areas) => !areas.has_values(),
            Chart::Curve(curve) => {
                !curve.lines.iter().flat_map(|(_, points)| points).any(|point| point.1 != 0.0)
            }
            Chart::Lines(lines) => !lines.has_values(),
            Chart::Portions(portions) => portions.parts.is_empty(),
            _ => false,
        }
    }
}

/// Parts of wholes as bars.
#[derive(Clone, Debug)]
pub(crate) struct Stacked {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) format: Format,
    /// What is counted, in words.
    pub(crate) unit: &'static str,
    /// The place of each part's colour, and its name.
    pub(crate) parts: Vec<(usize, &'static str)>,
    pub(crate) rows: Vec<(String, Vec<f64>)>,
    /// If set, all bars have the full width, and these words are printed next to them instead of sums.
    pub(crate) beside: Option<Vec<String>>,
}

/// One whole and its parts, largest first.
#[derive(Clone, Debug)]
pub(crate) struct Portions {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// The whole, as people read it.
    pub(crate) whole: String,
    /// The place of each part's colour, its name, its share, and its size as people read it.
    pub(crate) parts: Vec<(usize, String, f64, String)>,
}

/// Changes in per cent with their intervals, one below the other on a common axis.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) rows: Vec<Change>,
}

#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) label: String,
    pub(crate) percent: f64,
    /// The 95 % interval.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) significant: bool,
    /// Stands next to it.
    pub(crate) words: String,
}

impl Stacked {
    /// The place of a part's colour.
    pub(crate) fn place(&self, part: usize) -> usize {
        self.parts.get(part).map_or(0, |(place, _)| *place)
    }
}

/// What happened in several times of equal width, one below the other.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// The place of each part's colour, and its name.
    pub(crate) parts: Vec<(usize, &'static str)>,
    pub(crate) rows: Vec<TimelineRow>,
}

#[derive(Clone, Debug)]
pub(crate) struct TimelineRow {
    pub(crate) label: String,
    pub(crate) note: String,
    pub(crate) whole_ns: i64,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Which of the parts.
    pub(crate) part: usize,
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    /// In how many others it lies.
    pub(crate) depth: u32,
}

/// Several lines over time, one unit.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) format: Format,
    /// What is counted, in words.
    pub(crate) unit: String,
    /// Stands after values: "/s".
    pub(crate) per: String,
    /// How neighbouring values are combined if there is not enough room.
    pub(crate) join: Join,
    pub(crate) start_ns: i64,
    pub(crate) bin_ns: i64,
    /// NaN where there is no value.
    pub(crate) lines: Vec<(String, Vec<f64>)>,
    /// Whether values are samples at times of their own, so that a bin without one is not a gap.
    pub(crate) is_sampled: bool,
    /// Times with a meaning of their own: the steps of a load run.
    pub(crate) bands: Vec<Band>,
}

/// Rates on top of each other over time.
#[derive(Clone, Debug)]
pub(crate) struct Areas {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) start_ns: i64,
    pub(crate) bin_ns: i64,
    /// From the bottom to the top, bytes/s.
    pub(crate) layers: Vec<(String, Vec<f64>)>,
    pub(crate) marks: Vec<AreaMark>,
}

/// A moment of a layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AreaMark {
    pub(crate) at_ns: i64,
    pub(crate) layer: usize,
    pub(crate) words: String,
    /// Whether data moved, and not only a connection was made.
    pub(crate) is_data: bool,
}

impl Areas {
    pub(crate) fn has_values(&self) -> bool {
        self.layers.iter().flat_map(|(_, values)| values).any(|value| *value > 0.0)
    }
}

/// A time with a meaning of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
    pub(crate) label: String,
    /// Whether its operations count; warm-up does not.
    pub(crate) is_measured: bool,
}

impl Lines {
    /// Whether any value is not zero.
    pub(crate) fn has_values(&self) -> bool {
        let mut values = self.lines.iter().flat_map(|(_, values)| values);
        values.any(|value| !value.is_nan() && *value != 0.0)
    }
}

/// Neighbouring values combined so that at most `room` are left.
pub(crate) fn joined(values: &[f64], room: usize, join: Join) -> Vec<f64> {
    let size = values.len().div_ceil(room.max(1)).max(1);
    let chunks = values.chunks(size);
    chunks
        .map(|chunk| {
            let known = || chunk.iter().copied().filter(|value| !value.is_nan());
            let n = known().count();
            match (n, join) {
                (0, _) => f64::NAN,
                (_, Join::Most) => known().fold(f64::MIN, f64::max),
                (_, Join::Mean) => known().sum::<f64>() / n as f64,
            }
        })
        .collect()
}

/// Values over a quantity other than time: points, and lines between them.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// The quantity on the horizontal axis: "users".
    pub(crate) over: &'static str,
    pub(crate) format: Format,
    /// A value above which it is too much.
    pub(crate) limit: Option<(f64, &'static str)>,
    /// Between which places the answer lies: from, to, what it is.
    pub(crate) mark: Option<(f64, f64, &'static str)>,
    pub(crate) in_text: bool,
    pub(crate) lines: Vec<(&'static str, Vec<Point>)>,
}

/// A place, the value there, and whether it stands out.
pub(crate) type Point = (f64, f64, bool);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Mean,
    Most,
}

/// Histograms with common bounds.
#[derive(Clone, Debug)]
pub(crate) struct Histograms {
    pub(crate) caption: String,
    /// What is counted by what, in words.
    pub(crate) unit: &'static str,
    pub(crate) help: String,
    /// Where the bars begin and the last one ends; none for the first without a lower bound, and for the
    /// end of the last without an upper one.
    pub(crate) bounds: Vec<Option<i64>>,
    pub(crate) rows: Vec<(String, Vec<u64>)>,
}

/// A histogram with marks.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub(crate) caption: &'static str,
    pub(crate) classes: Vec<TimeClass>,
    /// A time, ns, and what it is.
    pub(crate) marks: Vec<(i64, String)>,
}
