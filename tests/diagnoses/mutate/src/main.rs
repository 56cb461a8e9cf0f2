//! Wraps each condition of Rust files, so that one build contains all mutants: mutate FILE...
//!
//! A condition `c` becomes `crate::explain::mutant::is(ID, FORCED, c)`, which is `FORCED` while the mutant ID is active
//! (R. H. Untch, A. J. Offutt and M. J. Harrold, Mutation Analysis Using Mutant Schemata, ISSTA 1993). `FORCED` is the
//! value with which the condition decides nothing: true for an operand of `&&` and for a filter, false for an operand of
//! `||` and for the condition of an early return. An `if` with `else` gets both. Files are changed in place; a line for each
//! mutant is printed: ID, file, line, value, whether it is a limit of memory, and the text.
//!
//! Not rewritten: tests, constants, loop conditions (they would not end), macros other than `matches!`, patterns, and
//! choices between texts.

use std::ops::Range;
use std::process::ExitCode;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, Pat};

/// One condition and the value that it is given.
struct Mutant {
    range: Range<usize>,
    line: usize,
    forced: bool,
    is_limit: bool,
}

/// Methods whose closure is a condition on elements.
const FILTERS: [&str; 12] = [
    "filter",
    "retain",
    "take_while",
    "skip_while",
    "is_some_and",
    "is_none_or",
    "any",
    "all",
    "find",
    "position",
    "rposition",
    "partition",
];

struct Conditions<'a> {
    source: &'a str,
    found: Vec<Mutant>,
}

impl Conditions<'_> {
    fn text(&self, of: &Expr) -> &str {
        self.source.get(of.span().byte_range()).unwrap_or_default()
    }

    /// Whether it only compares the length of a collection with its limit.
    fn is_limit(&self, of: &Expr) -> bool {
        let text = self.text(of);
        text.contains(".len()") && text.contains("_MAX")
    }

    fn record(&mut self, of: &Expr, forced: bool, is_limit: bool) {
        let span = of.span();
        self.found.push(Mutant {
            range: span.byte_range(),
            line: span.start().line,
            forced,
            is_limit,
        });
    }

    /// A condition that is `forced` where it is removed: each operand of a chain, or the whole. Without a value, both.
    fn condition(&mut self, of: &Expr, forced: Option<bool>, in_limit: bool) {
        match of {
            Expr::Paren(inner) => self.condition(&inner.expr, forced, in_limit),
            Expr::Binary(chain) if is_chain(&chain.op) => {
                let neutral = matches!(chain.op, BinOp::And(_));
                let in_limit =
                    in_limit || [&chain.left, &chain.right].iter().any(|one| self.is_limit(one));
                for operand in [&chain.left, &chain.right] {
                    // A group of the other kind is also one operand.
                    if let Expr::Binary(inner) = strip(operand)
                        && is_chain(&inner.op)
                        && matches!(inner.op, BinOp::And(_)) != neutral
                        && !has_let(operand)
                    {
                        self.record(strip(operand), neutral, in_limit);
                    }
                    self.condition(operand, Some(neutral), in_limit);
                }
            }
            Expr::Let(_) | Expr::Lit(_) | Expr::If(_) | Expr::Match(_) | Expr::Block(_) => {
                self.visit_expr(of)
            }
            _ => {
                let text = self.text(of);
                let is_limit = self.is_limit(of) || in_limit && text.contains("contains_key");
                for value in [true, false] {
                    if forced.is_none_or(|forced| forced == value) {
                        self.record(of, value, is_limit);
                    }
                }
                self.visit_expr(of);
            }
        }
    }

    /// Elements of a tuple that a pattern compares with `true` or `false`.
    fn tuple<'p>(&mut self, patterns: impl Iterator<Item = &'p Pat> + Clone, of: &Expr) -> bool {
        let Expr::Tuple(tuple) = of else { return false };
        for (place, element) in tuple.elems.iter().enumerate() {
            let wanted = patterns.clone().filter_map(|pattern| {
                let Pat::Tuple(pattern) = pattern else { return None };
                let Pat::Lit(literal) = pattern.elems.get(place)? else { return None };
                let Lit::Bool(literal) = &literal.lit else { return None };
                Some(literal.value)
            });
            let wanted: Vec<_> = wanted.collect();
            match wanted.as_slice() {
                [] => self.visit_expr(element),
                [one] => self.condition(element, Some(*one), false),
                _ => self.condition(element, None, false),
            }
        }
        true
    }
}

fn is_chain(op: &BinOp) -> bool {
    matches!(op, BinOp::And(_) | BinOp::Or(_))
}

fn strip(of: &Expr) -> &Expr {
    match of {
        Expr::Paren(inner) => strip(&inner.expr),
        other => other,
    }
}

fn has_let(of: &Expr) -> bool {
    match strip(of) {
        Expr::Let(_) => true,
        Expr::Binary(chain) => has_let(&chain.left) || has_let(&chain.right),
        _ => false,
    }
}

/// Whether it only chooses words.
fn is_text(of: &Expr) -> bool {
    let is_tail = |block: &syn::Block| match block.stmts.as_slice() {
        [syn::Stmt::Expr(tail, None)] => is_text(tail),
        [syn::Stmt::Macro(one)] => one.mac.path.is_ident("format"),
        _ => false,
    };
    match strip(of) {
        Expr::Lit(one) => matches!(one.lit, Lit::Str(_)),
        Expr::Macro(one) => one.mac.path.is_ident("format"),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_text),
        Expr::MethodCall(one) => one.args.is_empty() && is_text(&one.receiver),
        Expr::Call(one) => {
            one.args.is_empty()
                && matches!(&*one.func, Expr::Path(path) if path.path.segments.first().is_some_and(|first| first.ident == "String"))
        }
        Expr::Block(one) => is_tail(&one.block),
        Expr::If(one) => {
            is_tail(&one.then_branch)
                && one.else_branch.as_ref().is_some_and(|(_, other)| is_text(other))
        }
        _ => false,
    }
}

/// Whether a block leaves the function or the round of the loop.
fn diverges(block: &syn::Block) -> bool {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(last, _)) => {
            matches!(last, Expr::Return(_) | Expr::Continue(_) | Expr::Break(_))
        }
        _ => false,
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|one| one.path().is_ident("cfg") || one.path().is_ident("test"))
}

/// Whether it is a boolean by its looks.
fn looks_boolean(of: &Expr) -> bool {
    let is_named = |name: &syn::Ident| {
        let name = name.to_string();
        ["is_", "has_", "was_", "may_"].iter().any(|begin| name.starts_with(begin))
    };
    match strip(of) {
        Expr::Binary(one) => matches!(
            one.op,
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
        ),
        Expr::Unary(one) => matches!(one.op, syn::UnOp::Not(_)),
        Expr::Macro(one) => one.mac.path.is_ident("matches"),
        Expr::Path(one) => one.path.get_ident().is_some_and(is_named),
        Expr::Field(one) => matches!(&one.member, syn::Member::Named(name) if is_named(name)),
        Expr::MethodCall(one) => is_named(&one.method),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Conditions<'_> {
    fn visit_item_mod(&mut self, one: &'ast syn::ItemMod) {
        if !is_test(&one.attrs) {
            visit::visit_item_mod(self, one);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_item_fn(&mut self, one: &'ast syn::ItemFn) {
        if one.sig.constness.is_none() && !is_test(&one.attrs) {
            visit::visit_item_fn(self, one);
        }
    }

    fn visit_impl_item_fn(&mut self, one: &'ast syn::ImplItemFn) {
        if one.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, one);
        }
    }

    fn visit_local(&mut self, one: &'ast syn::Local) {
        match &one.init {
            Some(init) if self.tuple(std::iter::once(&one.pat), &init.expr) => {
                if let Some((_, diverge)) = &init.diverge {
                    self.visit_expr(diverge);
                }
            }
            _ => visit::visit_local(self, one),
        }
    }

    fn visit_expr_let(&mut self, one: &'ast syn::ExprLet) {
        if !self.tuple(std::iter::once(&*one.pat), &one.expr) {
            visit::visit_expr_let(self, one);
        }
    }

    fn visit_expr_binary(&mut self, one: &'ast syn::ExprBinary) {
        if is_chain(&one.op) {
            self.condition(&Expr::Binary(one.clone()), None, false);
        } else {
            visit::visit_expr_binary(self, one);
        }
    }

    fn visit_expr_if(&mut self, one: &'ast syn::ExprIf) {
        if is_text(&Expr::If(one.clone())) {
            return;
        }
        let forced = match &one.else_branch {
            Some(_) => None,
            None => Some(!diverges(&one.then_branch)),
        };
        self.condition(&one.cond, forced, false);
        self.visit_block(&one.then_branch);
        if let Some((_, other)) = &one.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, one: &'ast syn::ExprWhile) {
        self.visit_block(&one.body);
    }

    fn visit_expr_match(&mut self, one: &'ast syn::ExprMatch) {
        if one.arms.iter().all(|arm| is_text(&arm.body)) {
            return;
        }
        let patterns = one.arms.iter().map(|arm| &arm.pat);
        if !self.tuple(patterns, &one.expr) {
            self.visit_expr(&one.expr);
        }
        for arm in &one.arms {
            if let Some((_, guard)) = &arm.guard {
                self.condition(guard, Some(true), false);
            }
            self.visit_expr(&arm.body);
        }
    }

    fn visit_expr_method_call(&mut self, one: &'ast syn::ExprMethodCall) {
        let name = one.method.to_string();
        if name == "then" || name == "then_some" {
            self.condition(&one.receiver, Some(true), false);
        } else {
            self.visit_expr(&one.receiver);
        }
        for argument in &one.args {
            match argument {
                Expr::Closure(closure) if FILTERS.contains(&name.as_str()) => {
                    let body = match &*closure.body {
                        Expr::Block(block) => match block.block.stmts.split_last() {
                            Some((syn::Stmt::Expr(tail, None), before)) => {
                                before.iter().for_each(|one| self.visit_stmt(one));
                                tail
                            }
                            _ => continue,
                        },
                        body => body,
                    };
                    self.condition(body, Some(true), false);
                }
                _ => self.visit_expr(argument),
            }
        }
    }

    fn visit_expr_call(&mut self, one: &'ast syn::ExprCall) {
        let is_from = matches!(&*one.func, Expr::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "from"));
        match one.args.first() {
            Some(only) if is_from && looks_boolean(only) => self.condition(only, Some(true), false),
            _ => visit::visit_expr_call(self, one),
        }
    }
}

/// The text with each condition wrapped; `first` is the first ID.
fn wrapped(source: &str, found: &[Mutant], first: usize) -> String {
    // Where, begins behind ends, and the outer of two that begin or end together.
    let mut inserts: Vec<((usize, u8, isize, isize), String)> = Vec::new();
    for (place, one) in found.iter().enumerate() {
        let (length, order) = (one.range.len() as isize, place as isize);
        let open = format!("crate::explain::mutant::is({}, {}, ", first + place, one.forced);
        inserts.push(((one.range.start, 1, -length, order), open));
        inserts.push(((one.range.end, 0, length, -order), ")".to_owned()));
    }
    inserts.sort();
    let mut text = String::new();
    let mut from = 0;
    for ((at, ..), insert) in inserts {
        text.push_str(&source[from..at]);
        text.push_str(&insert);
        from = at;
    }
    text.push_str(&source[from..]);
    text
}

fn main() -> ExitCode {
    let mut next = 1;
    for file in std::env::args().skip(1) {
        let parsed = std::fs::read_to_string(&file).map_err(|error| error.to_string());
        let parsed = parsed.and_then(|source| match syn::parse_file(&source) {
            Ok(parsed) => Ok((source, parsed)),
            Err(error) => Err(format!("line {}: {error}", error.span().start().line)),
        });
        let (source, parsed) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        };
        let mut conditions = Conditions { source: &source, found: Vec::new() };
        conditions.visit_file(&parsed);
        for (place, one) in conditions.found.iter().enumerate() {
            let text = source[one.range.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
            println!(
                "{}\t{file}\t{}\t{}\t{}\t{text}",
                next + place,
                one.line,
                one.forced,
                one.is_limit
            );
        }
        if let Err(error) = std::fs::write(&file, wrapped(&source, &conditions.found, next)) {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
        next += conditions.found.len();
    }
    ExitCode::SUCCESS
}
