//! Calendar dates.

/// Days from 1970-01-01 to a day of the Gregorian calendar, with the year beginning in March.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year_of_march = if month > 2 { year } else { year - 1 };
    let (era, year_of_era) = (year_of_march.div_euclid(400), year_of_march.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day (UTC) of a day counted from 1970-01-01. Counts in eras of 400 years that
/// begin in March.
pub fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let (era, in_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + carry, month, day)
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_agree_with_the_calendar() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2022, 6, 6), 19_149),
        ] {
            assert_eq!(super::days(date.0, date.1, date.2), days, "{date:?}");
            assert_eq!(super::civil(days), date);
        }
    }
}
