// A program of counting.py: escapes and joins texts. `tenth` has about a tenth of the instructions.
#[inline(never)]
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}
#[inline(never)]
fn digits(text: &str) -> u64 {
    text.bytes().filter(u8::is_ascii_digit).map(u64::from).sum()
}
#[inline(never)]
fn tenth(n: u32) -> u32 {
    let mut x = SEEDu32;
    for i in 0..n {
        x = x.wrapping_mul(31).wrapping_add(std::hint::black_box(i));
    }
    x
}
fn main() {
    let text: String = (0..300).map(|i| format!("<a{i}&b>")).collect();
    let mut kept = 0u64;
    for _ in 0..REPEAT {
        let escaped = escape(&text);
        kept += digits(&escaped) + escaped.len() as u64;
        for _ in 0..2 {
            kept += u64::from(tenth(std::hint::black_box(TENTH))) % 7;
        }
    }
    println!("{kept}");
}
