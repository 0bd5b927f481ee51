//! An estimate of the number of tokens of a text, for language models.

/// Returns an upper estimate of the tokens of a text, without a vocabulary. For tables, names and commands it exceeds
/// the count of every common model; `tests/python/test_mcp.py` compares it with some. Each digit, capital, sign and
/// non-ASCII byte counts as a token. Every two lowercase letters count as a token, because names are not made of the
/// words in vocabularies; this also covers random letters. A run of blanks counts as one token per 32 blanks, plus one
/// if it is longer than one blank.
pub fn tokens(text: &str) -> usize {
    let (mut rest, mut tokens) = (text.as_bytes(), 0);
    while let Some(&first) = rest.first() {
        let run = |is: fn(&u8) -> bool| rest.iter().take_while(|b| is(b)).count();
        let (length, cost) = match first {
            b'a'..=b'z' => {
                let letters = run(u8::is_ascii_lowercase);
                (letters, letters.div_ceil(2))
            }
            // A run of blanks is few tokens, but the last blank is often a separate token.
            b' ' | b'\t' | b'\n' => {
                let blanks = run(|b| matches!(b, b' ' | b'\t' | b'\n'));
                (blanks, blanks.div_ceil(32) + usize::from(blanks > 1))
            }
            _ => (1, 1),
        };
        tokens += cost;
        rest = &rest[length..];
    }
    tokens
}
