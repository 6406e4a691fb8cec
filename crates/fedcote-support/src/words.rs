//! Words and numbers in messages.

/// A number as a person would write it: with an exponent instead of many zeros.
pub fn readable(value: f64) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-5..1e15).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// What to write instead of a wrong word, to follow the complaint: the nearest known word, or all of them.
pub fn suggestion(wrong: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|&word| (strsim::damerau_levenshtein(wrong, word), word))
        .min()
        .filter(|&(distance, word)| distance <= 1 + word.len().min(wrong.len()) / 3);
    match nearest {
        Some((_, word)) => format!("; did you mean `{word}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; expected one of {}", known.join(", ")),
    }
}

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A text as a field of a CSV file: quoted where it must be, and never a formula to a spreadsheet program.
pub fn csv_field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if !text.contains([',', '"', '\n', '\r']) {
        return text;
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The `fedcote` command with these words, as a shell reads it.
pub fn command(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let words = words.into_iter().map(|word| quoted(word.as_ref()));
    std::iter::once("fedcote".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scheme's name with a comma used to shift the columns, one that begins with `=` was a formula.
    #[test]
    fn names_stay_in_their_field() {
        for (name, field) in [
            ("fedavg", "fedavg"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("@SUM(A1),2", "\"'@SUM(A1),2\""),
            ("-x\ny", "\"'-x\ny\""),
        ] {
            assert_eq!(csv_field(name), field);
        }
    }

    /// 1e308 used to be printed with all its 309 digits.
    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-2.0, "-2"),
            (1e308, "1e308"),
            (-1e300, "-1e300"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (123_456_789.5, "123456789.5"),
        ] {
            assert_eq!(readable(value), text);
        }
    }

    #[test]
    fn a_near_word_is_suggested_and_otherwise_all() {
        let known = ["wifi24", "wifi5", "4g"];
        assert_eq!(suggestion("wifi42", &known), "; did you mean `wifi24`?");
        assert_eq!(suggestion("bluetooth", &known), "; expected one of wifi24, wifi5, 4g");
        assert_eq!(suggestion("x", &[]), "");
    }

    #[test]
    fn words_survive_a_shell() {
        for (word, text) in [
            ("a/b-c_d.e=f,g:h", "a/b-c_d.e=f,g:h"),
            ("", "''"),
            ("it's", "'it'\\''s'"),
            ("$x", "'$x'"),
        ] {
            assert_eq!(quoted(word), text);
        }
        assert_eq!(command(["run", "--out", "a b"]), "fedcote run --out 'a b'");
    }
}
