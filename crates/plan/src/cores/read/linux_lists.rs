//! Small notations of Linux: `key: value`, lists of numbers, masks of CPUs.

/// Key and value of a line `key: value`, both without blanks around them.
pub(super) fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    (!key.is_empty()).then(|| (key, value.trim()))
}

/// A list of numbers such as `0-3,8,10-11`, at most `limit` of them. An empty list is valid.
pub fn number_list(text: &str, limit: usize) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => {
                (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?)
            }
            None => {
                let number = part.parse().ok()?;
                (number, number)
            }
        };
        let count = usize::try_from(last.checked_sub(first)?).ok()?;
        if count >= limit.saturating_sub(numbers.len()) {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The bits of a mask such as `00000000,0000ff01`, lowest first. The kernel writes words of 32 bits.
pub fn mask_list(text: &str, limit: usize) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    let mut base = 0u32;
    for word in text.trim().rsplit(',') {
        let bits = u64::from_str_radix(word.trim().trim_start_matches("0x"), 16).ok()?;
        numbers
            .extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| base.saturating_add(bit)));
        base = base.checked_add(32)?;
        if numbers.len() > limit {
            return None;
        }
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_numbers_has_a_limit() {
        assert_eq!(number_list("0-2,8", 64), Some(vec![0, 1, 2, 8]));
        assert_eq!(number_list("", 64), Some(Vec::new()));
        assert_eq!(number_list("0-4294967295", 64), None);
        assert_eq!(number_list("3-1", 64), None);
        assert_eq!(number_list("x", 64), None);
    }

    #[test]
    fn a_mask_is_written_with_the_highest_word_first() {
        assert_eq!(mask_list("00000001,00000003\n", 64), Some(vec![0, 1, 32]));
        assert_eq!(mask_list("0", 64), Some(Vec::new()));
        assert_eq!(mask_list("g", 64), None);
    }
}
