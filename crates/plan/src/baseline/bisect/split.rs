//! The split of suspects that needs the fewest tries on average (Huffman 1952).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A subtree: its weight, its suspects with their depth in it.
struct Node {
    weight: f64,
    /// Ties are broken by this, so that the same suspects are always split in the same way.
    number: usize,
    suspects: Vec<(Option<usize>, f64, usize)>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Node) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Node) -> Ordering {
        self.weight.total_cmp(&other.weight).then(self.number.cmp(&other.number))
    }
}

/// The two sides of the first try.
pub(super) fn split(weights: &[(Option<usize>, f64)]) -> [Vec<Option<usize>>; 2] {
    let mut sides = join(weights, 2)
        .into_iter()
        .map(|node| node.suspects.into_iter().map(|(suspect, _, _)| suspect).collect());
    [sides.next().unwrap_or_default(), sides.next().unwrap_or_default()]
}

/// Weight and number of tries for each suspect.
pub(super) fn depths(weights: &[(Option<usize>, f64)]) -> Vec<(f64, usize)> {
    let root = join(weights, 1).into_iter().next();
    let suspects = root.map(|root| root.suspects).unwrap_or_default();
    suspects.into_iter().map(|(_, weight, depth)| (weight, depth)).collect()
}

/// Joins the two lightest until `left` are left, the heaviest first.
fn join(weights: &[(Option<usize>, f64)], left: usize) -> Vec<Node> {
    let leaf = |(number, &(suspect, weight)): (usize, &(Option<usize>, f64))| {
        Reverse(Node { weight, number, suspects: vec![(suspect, weight, 0)] })
    };
    let mut heap: BinaryHeap<_> = weights.iter().enumerate().map(leaf).collect();
    let mut number = weights.len();
    while heap.len() > left {
        let (Some(Reverse(one)), Some(Reverse(other))) = (heap.pop(), heap.pop()) else { break };
        let suspects = one.suspects.into_iter().chain(other.suspects);
        heap.push(Reverse(Node {
            weight: one.weight + other.weight,
            number,
            suspects: suspects
                .map(|(suspect, weight, depth)| (suspect, weight, depth + 1))
                .collect(),
        }));
        number += 1;
    }
    let mut nodes: Vec<_> = heap.into_iter().map(|Reverse(node)| node).collect();
    nodes.sort_by(|one, other| other.cmp(one));
    nodes
}
