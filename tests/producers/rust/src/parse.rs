//! A recursive descent parser for sums and products.

pub enum Tree {
    Number(f64),
    Name(String),
    Operation(char, Box<Tree>, Box<Tree>),
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

pub fn parse(text: &str) -> Tree {
    Parser {
        text: text.as_bytes(),
        at: 0,
    }
    .sum()
}

impl Parser<'_> {
    fn sum(&mut self) -> Tree {
        let mut left = self.product();
        while let Some(sign) = self.take(b"+-") {
            left = Tree::Operation(sign, Box::new(left), Box::new(self.product()));
        }
        left
    }

    fn product(&mut self) -> Tree {
        let mut left = self.factor();
        while let Some(sign) = self.take(b"*/") {
            left = Tree::Operation(sign, Box::new(left), Box::new(self.factor()));
        }
        left
    }

    fn factor(&mut self) -> Tree {
        if self.take(b"(").is_some() {
            let inner = self.sum();
            self.take(b")");
            return inner;
        }
        let word = self.word();
        match word.parse() {
            Ok(number) => Tree::Number(number),
            Err(_) => Tree::Name(word),
        }
    }

    /// Everything up to the next sign, without the spaces around it.
    fn word(&mut self) -> String {
        let start = self.at;
        while self.at < self.text.len() && !is_sign(self.text[self.at]) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at])
            .trim()
            .to_string()
    }

    #[inline(always)]
    fn take(&mut self, signs: &[u8]) -> Option<char> {
        self.skip_spaces();
        let sign = *self.text.get(self.at)?;
        signs.contains(&sign).then(|| {
            self.at += 1;
            sign as char
        })
    }

    #[inline(always)]
    fn skip_spaces(&mut self) {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }
}

#[inline(always)]
fn is_sign(letter: u8) -> bool {
    b"()+-*/".contains(&letter)
}
