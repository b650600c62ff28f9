//! One change of one function, found in its syntax tree: what the function does, not how its text looks.

use std::ops::Range;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What is done to a function.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// The statement that calls this function, or assigns to the field of this name, is removed.
    Drop(&'static str),
    /// The statement that calls the first function moves before the statement that calls the second.
    Before(&'static str, &'static str),
    /// The condition of the `if` that has this name in it is never true.
    Never(&'static str),
    /// The condition of the `if` that has this name in it is always true.
    Always(&'static str),
    /// Each of the two names is replaced by the other, but for names of fields in a literal.
    Swap(&'static str, &'static str),
    /// Atomic accesses have no order.
    Relax,
    /// The constant of this name, anywhere in the file, has this value.
    Value(&'static str, &'static str),
}

/// Replaces a range of the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// What stands there instead.
    pub text: String,
}

impl Edit {
    fn new(span: Span, text: impl Into<String>) -> Self {
        Self { range: span.byte_range(), text: text.into() }
    }
}

/// Applies edits that do not overlap.
pub fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.range.start);
    let mut changed = text.to_owned();
    for edit in edits.iter().rev() {
        changed.replace_range(edit.range.clone(), &edit.text);
    }
    changed
}

/// The edits of a change of `function` in `text`: its name, with `Type::` before it for one of several.
///
/// # Errors
/// The text is no Rust, or there is not exactly one place for the change.
pub fn edits(text: &str, function: &str, change: Change) -> Result<Vec<Edit>, String> {
    let file = syn::parse_file(text).map_err(|error| format!("not Rust: {error}"))?;
    let (of, name) = function.rsplit_once("::").map_or((None, function), |(of, name)| (Some(of), name));
    let mut found = Functions { of, name, current: String::new(), blocks: Vec::new(), constants: Vec::new() };
    found.visit_file(&file);
    if let Change::Value(name, value) = change {
        let constants = found.constants.iter().filter(|constant| constant.ident == name);
        let edits: Vec<_> = constants.map(|constant| Edit::new(constant.expr.span(), value)).collect();
        return one(edits, &format!("constant {name}")).map(|edit| vec![edit]);
    }
    let block = one(found.blocks, &format!("function {function}"))?;
    let mut places = Places { change, drops: Vec::new(), conditions: Vec::new(), text };
    places.visit_block(&block);
    match change {
        Change::Drop(name) => Ok(vec![Edit::new(one(places.drops, name)?, "")]),
        Change::Never(name) => Ok(vec![Edit::new(one(places.conditions, name)?, "false")]),
        Change::Always(name) => Ok(vec![Edit::new(one(places.conditions, name)?, "true")]),
        Change::Before(name, other) => {
            let [first, second] = [other, name].map(|name| {
                let calls = block_statements(&block, name);
                one(calls, name)
            });
            let (first, second) = (first?.byte_range(), second?.byte_range());
            if first.start >= second.start {
                return Err(format!("{name} is before {other} already"));
            }
            let moved = format!("{};\n", text[second.clone()].trim_end_matches(';'));
            let insert = Edit { range: first.start..first.start, text: moved };
            Ok(vec![insert, Edit { range: second, text: String::new() }])
        }
        Change::Swap(one_name, other) => {
            let mut edits = Vec::new();
            swap(quoted(&block), [one_name, other], &mut edits);
            let both = [one_name, other].iter().all(|name| edits.iter().any(|edit: &Edit| edit.text == *name));
            if both { Ok(edits) } else { Err(format!("{one_name} and {other} are not both there")) }
        }
        Change::Relax => {
            let mut edits = Vec::new();
            relax(quoted(&block), &mut edits);
            if edits.is_empty() { Err("no atomic access has an order".to_owned()) } else { Ok(edits) }
        }
        Change::Value(..) => unreachable!("answered above"),
    }
}

fn one<T>(mut found: Vec<T>, what: &str) -> Result<T, String> {
    match (found.pop(), found.len()) {
        (Some(only), 0) => Ok(only),
        (_, more) => Err(format!("{what} is there {} times", if more == 0 { 0 } else { more + 1 })),
    }
}

/// Bodies of the functions of one name, and the constants of the file.
struct Functions<'n> {
    /// The type that it must be of.
    of: Option<&'n str>,
    name: &'n str,
    /// The type whose functions are looked at.
    current: String,
    blocks: Vec<syn::Block>,
    constants: Vec<syn::ItemConst>,
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.ident == self.name && self.of.is_none() {
            self.blocks.push((*item.block).clone());
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.ident == self.name && self.of.is_none_or(|of| of == self.current) {
            self.blocks.push(item.block.clone());
        }
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let syn::Type::Path(path) = &*item.self_ty {
            self.current = path.path.segments.last().map_or(String::new(), |segment| segment.ident.to_string());
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constants.push(item.clone());
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // Tests are not what is changed.
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

/// Places in a function that a change may be of.
struct Places<'t> {
    change: Change,
    drops: Vec<Span>,
    conditions: Vec<Span>,
    text: &'t str,
}

impl<'ast> Visit<'ast> for Places<'_> {
    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        if let Change::Drop(name) = self.change
            && is_call(statement, name)
        {
            self.drops.push(statement.span());
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_if(&mut self, expression: &'ast syn::ExprIf) {
        if let Change::Never(name) | Change::Always(name) = self.change {
            let span = expression.cond.span();
            let condition = &self.text[span.byte_range()];
            let words = condition.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            if words.clone().any(|word| word == name) && !condition.starts_with("let ") {
                self.conditions.push(span);
            }
        }
        visit::visit_expr_if(self, expression);
    }
}

/// Whether a statement is a call of a function or method, with or without `?` or `let _ =`, or an assignment to a field.
fn is_call(statement: &syn::Stmt, name: &str) -> bool {
    let expression = match statement {
        syn::Stmt::Expr(expression, Some(_)) => expression,
        // `let _ = f();`
        syn::Stmt::Local(local) if matches!(local.pat, syn::Pat::Wild(_)) => match &local.init {
            Some(init) => &*init.expr,
            None => return false,
        },
        _ => return false,
    };
    if let syn::Expr::Assign(assign) = expression
        && let syn::Expr::Field(field) = &*assign.left
        && let syn::Member::Named(member) = &field.member
    {
        return member == name;
    }
    called(expression).is_some_and(|called| called == name)
}

fn called(expression: &syn::Expr) -> Option<String> {
    match expression {
        syn::Expr::Try(inner) => called(&inner.expr),
        syn::Expr::MethodCall(call) => Some(call.method.to_string()),
        syn::Expr::Call(call) => match &*call.func {
            syn::Expr::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Statements of a block, not of those inside it, that have a call of this name in them.
fn block_statements(block: &syn::Block, name: &str) -> Vec<Span> {
    struct Calls<'n>(&'n str, bool);
    impl<'ast> Visit<'ast> for Calls<'_> {
        fn visit_expr(&mut self, expression: &'ast syn::Expr) {
            self.1 |= called(expression).is_some_and(|called| called == self.0);
            visit::visit_expr(self, expression);
        }
    }
    let has_call = |statement: &&syn::Stmt| {
        let mut calls = Calls(name, false);
        calls.visit_stmt(statement);
        calls.1
    };
    block.stmts.iter().filter(has_call).map(Spanned::span).collect()
}

fn quoted(block: &syn::Block) -> TokenStream {
    block.to_token_stream()
}

fn swap(tokens: TokenStream, names: [&str; 2], edits: &mut Vec<Edit>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => swap(group.stream(), names, edits),
            TokenTree::Ident(ident) => {
                // `name:` in a struct literal is the field's name, not a value.
                let is_field = matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == ':');
                if let Some(at) = names.iter().position(|name| ident == name).filter(|_| !is_field) {
                    edits.push(Edit::new(ident.span(), names[1 - at]));
                }
            }
            _ => {}
        }
    }
}

fn relax(tokens: TokenStream, edits: &mut Vec<Edit>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => relax(group.stream(), edits),
            TokenTree::Ident(ident) if ["Acquire", "Release", "AcqRel", "SeqCst"].iter().any(|name| ident == name) => {
                edits.push(Edit::new(ident.span(), "Relaxed"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        const MAX: u64 = 4 << 30;
        fn other() { barrier(); }
        fn submit(dst: u64, src: u64) -> Result<(), E> {
            check(dst)?;
            slot.write(Sqe { src: src, dst: dst });
            if src == MAX { return bad(); }
            flag.store(1, Ordering::Release);
            port.barrier();
            port.ring()?;
            self.wait = None;
            let _ = take_loss(dst);
            Ok(())
        }
        impl Other { fn send() { own(); } }
        impl Third { fn send() { other(); } }";

    fn changed(change: Change) -> String {
        changed_in("submit", change)
    }

    fn changed_in(function: &str, change: Change) -> String {
        apply(TEXT, edits(TEXT, function, change).unwrap())
    }

    #[test]
    fn each_change_changes_what_it_says() {
        for (change, old, new) in [
            (Change::Drop("check"), "check(dst)?;", ""),
            (Change::Drop("wait"), "self.wait = None;", ""),
            (Change::Drop("take_loss"), "let _ = take_loss(dst);", ""),
            (Change::Never("MAX"), "src == MAX", "false"),
            (Change::Always("MAX"), "src == MAX", "true"),
            (Change::Value("MAX", "7"), "4 << 30", "7"),
            (Change::Relax, "Release", "Relaxed"),
        ] {
            assert_eq!(changed(change), TEXT.replace(old, new), "{change:?}");
        }
        assert_eq!(changed_in("Other::send", Change::Drop("own")), TEXT.replace("own();", ""));
        assert!(changed(Change::Swap("dst", "src")).contains("Sqe { src: dst, dst: src }"));
        let moved = changed(Change::Before("ring", "barrier"));
        assert!(moved.find("ring()?").unwrap() < moved.find("port.barrier()").unwrap(), "{moved}");
        assert_eq!(moved.matches("ring()?").count(), 1);
    }

    #[test]
    fn change_without_one_place_is_an_error() {
        for (function, change) in [
            ("submit", Change::Drop("nothing")),
            ("submit", Change::Never("nothing")),
            ("submit", Change::Swap("dst", "nothing")),
            ("submit", Change::Before("check", "ring")),
            ("other", Change::Relax),
            ("nothing", Change::Drop("check")),
            ("send", Change::Drop("own")),
        ] {
            assert!(edits(TEXT, function, change).is_err(), "{function} {change:?}");
        }
    }
}
