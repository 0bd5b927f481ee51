//! Names of classes and methods as in source code, without the numbers that a JVM assigns anew in each run.

use std::borrow::Cow;

use pprofdiff_profile::canonical;

/// Converts the JVM's name of a class (`java/lang/String`, `[[I`) to the name in source code: `java.lang.String`,
/// `int[][]`.
pub(super) fn class(name: &[u8]) -> Vec<u8> {
    let element = name.iter().take_while(|&&b| b == b'[').count();
    if element == 0 {
        return stable(name);
    }
    let mut text = match &name[element..] {
        [b'L', class @ .., b';'] => stable(class),
        b"Z" => b"boolean".to_vec(),
        b"B" => b"byte".to_vec(),
        b"C" => b"char".to_vec(),
        b"S" => b"short".to_vec(),
        b"I" => b"int".to_vec(),
        b"J" => b"long".to_vec(),
        b"F" => b"float".to_vec(),
        b"D" => b"double".to_vec(),
        other => stable(other),
    };
    text.extend(b"[]".repeat(element));
    text
}

/// Returns the name of a method with its class, `java.lang.String.indexOf`. Native frames of async-profiler lack a
/// class, so their name is the method alone.
pub(super) fn method(class: &[u8], method: &[u8]) -> Vec<u8> {
    let mut name = stable(class);
    if !name.is_empty() {
        name.push(b'.');
    }
    name.extend_from_slice(method);
    name
}

/// Returns the name of a class with dots, and without the numbers of hidden and generated classes.
fn stable(class: &[u8]) -> Vec<u8> {
    let class = match str::from_utf8(class) {
        Ok(class) => match canonical::stable(class) {
            Cow::Borrowed(class) => class.as_bytes().to_vec(),
            Cow::Owned(class) => class.into_bytes(),
        },
        Err(_) => class.to_vec(),
    };
    class.into_iter().map(|b| if b == b'/' { b'.' } else { b }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_source_code_and_lose_run_specific_numbers() {
        for (name, expected) in [
            ("java/lang/String", "java.lang.String"),
            ("[[I", "int[][]"),
            ("[Ljava/lang/String;", "java.lang.String[]"),
            ("Press$$Lambda$87+0x00007f2f70007a08/1572098393", "Press$$Lambda"),
            ("a/B$$Lambda/0x00007f2f70007a08", "a.B$$Lambda"),
            ("a/B$$Lambda$14/0x0000000800c03000", "a.B$$Lambda"),
            ("Shop$$Lambda$6.0x00007feba8001440", "Shop$$Lambda"),
            ("java/lang/invoke/LambdaForm$MH+0x00007f2f7000a400/12", "java.lang.invoke.LambdaForm$MH"),
            ("jdk/internal/reflect/GeneratedMethodAccessor12", "jdk.internal.reflect.GeneratedMethodAccessor"),
            ("jdk/proxy2/$Proxy7", "jdk.proxy2.$Proxy"),
            ("a/Outer$1", "a.Outer$1"),
            ("a/Base64", "a.Base64"),
            ("[", "[]"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&class(name.as_bytes())), expected, "{name}");
        }
        assert_eq!(method(b"a/B", b"f"), b"a.B.f");
        assert_eq!(method(b"", b"libc.so.read"), b"libc.so.read");
    }
}
