//! A map from byte ranges to values.

use std::collections::BTreeMap;
use std::ops::Range;

/// Values by byte range. Ranges do not overlap; a range without a value is a gap.
#[derive(Clone, Debug)]
pub struct RangeMap<T> {
    /// By first byte.
    pieces: BTreeMap<u64, Piece<T>>,
}

#[derive(Clone, Debug)]
struct Piece<T> {
    end: u64,
    value: T,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { pieces: BTreeMap::new() }
    }
}

impl<T: Clone> RangeMap<T> {
    /// Number of ranges with a value.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether no byte has a value.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Calls `update` for each piece of `range`, in order of address: with the value of the piece, or with `None` for a gap,
    /// which it may fill. A piece that sets the value to `None` becomes a gap.
    pub fn update(&mut self, range: Range<u64>, mut update: impl FnMut(Range<u64>, &mut Option<T>)) {
        if range.is_empty() {
            return;
        }
        // Nearly every access is to a range that was accessed as a whole before.
        if let Some(piece) = self.pieces.get_mut(&range.start)
            && piece.end == range.end
        {
            let start = range.start;
            let mut value = Some(piece.value.clone());
            update(range, &mut value);
            match value {
                Some(value) => piece.value = value,
                None => drop(self.pieces.remove(&start)),
            }
            return;
        }
        self.split_at(range.start);
        self.split_at(range.end);
        let mut at = range.start;
        while at < range.end {
            let next = self.pieces.range(at..range.end).next().map(|(start, piece)| (*start, piece.end));
            let (piece, had_value) = match next {
                Some((start, end)) if start == at => (at..end, true),
                Some((start, _)) => (at..start, false),
                None => (at..range.end, false),
            };
            let mut value = if had_value { self.pieces.remove(&at).map(|piece| piece.value) } else { None };
            at = piece.end;
            update(piece.clone(), &mut value);
            if let Some(value) = value {
                self.pieces.insert(piece.start, Piece { end: piece.end, value });
            }
        }
    }

    /// Takes the values of `range` out.
    pub fn clear(&mut self, range: Range<u64>) {
        self.split_at(range.start);
        self.split_at(range.end);
        let starts: Vec<u64> = self.pieces.range(range).map(|(start, _)| *start).collect();
        for start in starts {
            self.pieces.remove(&start);
        }
    }

    /// Pieces of `range` that have a value, cut to it, in order of address.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &T)> {
        let first = self.pieces.range(..range.start).next_back().filter(|(_, piece)| piece.end > range.start);
        let rest = self.pieces.range(range.clone());
        first
            .into_iter()
            .chain(rest)
            .map(move |(start, piece)| ((*start).max(range.start)..piece.end.min(range.end), &piece.value))
    }

    /// Keeps what `keep` says, which may change the values.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.pieces.retain(|_, piece| keep(&mut piece.value));
    }

    fn split_at(&mut self, at: u64) {
        if let Some((_, piece)) = self.pieces.range_mut(..at).next_back()
            && piece.end > at
        {
            let behind = Piece { end: piece.end, value: piece.value.clone() };
            piece.end = at;
            self.pieces.insert(at, behind);
        }
    }
}

impl<T: Clone + PartialEq> RangeMap<T> {
    /// Gives every byte of `range` this value, and joins it with neighbours of the same value.
    pub fn set(&mut self, range: Range<u64>, value: T) {
        if range.is_empty() {
            return;
        }
        self.clear(range.clone());
        let Range { mut start, mut end } = range;
        if let Some((&before, piece)) = self.pieces.range(..start).next_back()
            && piece.end == start
            && piece.value == value
        {
            start = before;
        }
        if let Some(piece) = self.pieces.get(&end)
            && piece.value == value
        {
            let behind = end;
            end = piece.end;
            self.pieces.remove(&behind);
        }
        self.pieces.insert(start, Piece { end, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T: Clone>(map: &RangeMap<T>) -> Vec<(Range<u64>, T)> {
        map.pieces(0..u64::MAX).map(|(range, value)| (range, value.clone())).collect()
    }

    #[test]
    fn update_sees_pieces_and_gaps_in_order() {
        let mut map = RangeMap::default();
        map.set(10..20, 'a');
        map.set(30..40, 'b');
        let mut seen = Vec::new();
        map.update(15..35, |range, value| {
            seen.push((range, *value));
            *value = Some('c');
        });
        assert_eq!(seen, [(15..20, Some('a')), (20..30, None), (30..35, Some('b'))]);
        let expected = [(10..15, 'a'), (15..20, 'c'), (20..30, 'c'), (30..35, 'c'), (35..40, 'b')];
        assert_eq!(all(&map), expected);
        map.update(12..38, |_, value| *value = None);
        assert_eq!(all(&map), [(10..12, 'a'), (38..40, 'b')]);
        assert_eq!(map.pieces(11..39).map(|(range, _)| range).collect::<Vec<_>>(), [11..12, 38..39]);
    }

    #[test]
    fn equal_neighbours_are_joined() {
        let mut map = RangeMap::default();
        map.set(0..10, 1);
        map.set(20..30, 1);
        map.set(10..20, 1);
        assert_eq!(all(&map), [(0..30, 1)]);
        map.set(5..6, 2);
        assert_eq!(all(&map), [(0..5, 1), (5..6, 2), (6..30, 1)]);
        map.set(5..6, 1);
        assert_eq!(all(&map), [(0..30, 1)]);
    }

    #[test]
    fn equals_an_array_of_bytes_after_random_changes() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let (mut map, mut model) = (RangeMap::default(), [None; 64]);
            for _ in 0..40 {
                let (start, len) = (random.usize(0..64), random.usize(0..32));
                let end = (start + len).min(64);
                let (range, value) = (start as u64..end as u64, random.u8(0..3));
                match random.u8(0..3) {
                    0 => {
                        map.set(range, value);
                        model[start..end].fill(Some(value));
                    }
                    1 => {
                        map.clear(range);
                        model[start..end].fill(None);
                    }
                    _ => {
                        map.update(range, |_, old| *old = old.map_or(Some(value), |old| old.checked_sub(1)));
                        model[start..end]
                            .iter_mut()
                            .for_each(|old| *old = old.map_or(Some(value), |old| old.checked_sub(1)));
                    }
                }
                let mut bytes = [None; 64];
                for (range, value) in map.pieces(0..64) {
                    bytes[range.start as usize..range.end as usize].fill(Some(*value));
                }
                assert_eq!(bytes, model);
            }
        }
    }
}
