// A sample for the comparison of names and lines: iterators, closures and generic containers, which are inlined deeply.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

#[derive(Clone, Debug, PartialEq)]
struct Item<T> {
    name: String,
    value: T,
}

trait Weight {
    fn weight(&self) -> u64;
}

impl Weight for Item<u32> {
    fn weight(&self) -> u64 {
        u64::from(self.value) * self.name.len() as u64
    }
}

impl Weight for Item<String> {
    fn weight(&self) -> u64 {
        self.value.bytes().filter(|b| b.is_ascii_digit()).map(u64::from).sum()
    }
}

#[inline(never)]
fn index<T: Clone + Display>(items: &[Item<T>]) -> BTreeMap<String, Vec<T>> {
    let mut out = BTreeMap::new();
    for i in items {
        out.entry(format!("{}-{}", i.name, i.value)).or_insert_with(Vec::new).push(i.value.clone());
    }
    out
}

#[inline(never)]
fn heaviest(items: &[Box<dyn Weight>]) -> Option<u64> {
    let mut all: Vec<u64> = items.iter().map(|i| i.weight()).collect();
    all.sort_by(|a, b| b.cmp(a));
    all.dedup();
    all.first().copied()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut counts: HashMap<char, usize> = HashMap::new();
    for c in words.iter().flat_map(|w| w.chars()) {
        *counts.entry(c).or_default() += 1;
    }
    let numbers: Vec<Item<u32>> =
        words.iter().zip(1u32..).map(|(w, n)| Item { name: w.clone(), value: n }).collect();
    let texts: Vec<Item<String>> = numbers
        .iter()
        .map(|i| Item { name: i.name.to_uppercase(), value: i.value.to_string() })
        .collect();
    let boxes: Vec<Box<dyn Weight>> = numbers
        .iter()
        .cloned()
        .map(|i| Box::new(i) as Box<dyn Weight>)
        .chain(texts.iter().cloned().map(|i| Box::new(i) as Box<dyn Weight>))
        .collect();
    println!("{} {} {}", index(&numbers).len() + index(&texts).len(), counts.len(), heaviest(&boxes).unwrap_or(0));
}
