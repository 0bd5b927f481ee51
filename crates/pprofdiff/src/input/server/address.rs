//! Parses addresses of profiles on servers: `pyroscope://HOST/{SELECTOR}?type=cpu&from=-1h&until=now`.
//!
//! The addresses are our own kind of URL and are not parsed as web addresses. A selector is written as on the server,
//! with quotes, braces, spaces and `?`, so the user needs shell quotes around the address but no escapes inside it.

use super::{MILLISECOND, SERVERS, ServerQuery, show_millis};
use pprofdiff_profile::time::parse_time;
use pprofdiff_profile::{Error, Result};

/// The start of the time range if the address has no `from`.
const DEFAULT_FROM: &str = "-1h";

pub(super) fn parse(text: &str, now: i64) -> Result<ServerQuery> {
    let (api, transport, rest) = scheme(text).ok_or_else(|| Error::query("this is not the address of a server"))?;
    let end = rest.find(['/', '?', '{']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if authority.contains('@') {
        return Err(Error::query(
            "write no password or token in an address, where others may see it: set PPROFDIFF_TOKEN in the environment",
        ));
    }
    let host = host(authority)?;
    let (prefix, rest) = rest.split_at(rest.find(['?', '{']).unwrap_or(rest.len()));
    let is_path_byte = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%+:,=".contains(&b);
    if !prefix.bytes().all(is_path_byte) {
        return Err(Error::query(format!("{prefix:?} is not a valid path; write the selector in braces after it")));
    }
    if rest.starts_with('{') && !prefix.ends_with('/') {
        return Err(Error::query(format!(
            "the selector needs a slash before it: {}://{authority}{prefix}/{{",
            api.scheme
        )));
    }
    let (selector, rest) = match rest.strip_prefix('{') {
        Some(_) => rest.split_at(selector_end(rest)?),
        None => ("", rest),
    };
    let params = match rest.strip_prefix('?') {
        Some(params) => params,
        None if rest.is_empty() => "",
        None => return Err(Error::query(format!("unexpected {rest:?} after the selector; only ?type=... may follow"))),
    };
    let (mut profile_type, mut from, mut until, mut tenant) = (None, None, None, None);
    for param in params.split('&').filter(|param| !param.is_empty()) {
        let (key, value) = param.split_once('=').unwrap_or((param, ""));
        let slot = match key {
            "type" => &mut profile_type,
            "from" => &mut from,
            "until" => &mut until,
            "tenant" => &mut tenant,
            _ => return Err(Error::query(format!("an address supports type, from, until and tenant, not {key:?}"))),
        };
        let value = percent_decoded(value)?;
        let is_visible = |c: char| !c.is_control() && (key != "tenant" || c.is_ascii_graphic());
        if value.is_empty() || !value.chars().all(is_visible) {
            return Err(Error::query(format!("{key}={value:?} is empty or has invalid characters")));
        }
        if slot.replace(value).is_some() {
            return Err(Error::query(format!("{key} is given twice")));
        }
    }
    if selector.is_empty() && profile_type.is_some() {
        return Err(Error::query(format!(
            "a type needs a selector: {}://{authority}{}/{{service_name=\"...\"}}?type=...",
            api.scheme,
            prefix.trim_end_matches('/')
        )));
    }
    let millis = |text: &str| parse_time(text, i128::from(now) * MILLISECOND).map(|t| t.div_euclid(MILLISECOND) as i64);
    let from = millis(from.as_deref().unwrap_or(DEFAULT_FROM))?;
    let until = millis(until.as_deref().unwrap_or("now"))?;
    if from >= until {
        let (from, until) = (show_millis(from), show_millis(until));
        return Err(Error::query(format!("from ({from}) is not before until ({until})")));
    }
    let is_encrypted = transport.unwrap_or_else(|| !is_loopback(host));
    Ok(ServerQuery {
        address: text.to_owned(),
        server_address: text[..text.find(['{', '?']).unwrap_or(text.len())].trim_end_matches('/').to_owned(),
        api,
        origin: format!(
            "{}://{authority}{}",
            if is_encrypted { "https" } else { "http" },
            prefix.trim_end_matches('/')
        ),
        host: host.to_ascii_lowercase(),
        is_private: is_encrypted || is_loopback(host),
        selector: (!selector.is_empty()).then(|| selector.to_owned()),
        profile_type,
        from,
        until,
        tenant,
    })
}

/// Returns the server kind of an address, whether its scheme requires or forbids TLS, and the text after `://`.
pub(super) fn scheme(text: &str) -> Option<(&'static super::Api, Option<bool>, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = |name: &str| scheme.eq_ignore_ascii_case(name);
    SERVERS.iter().find_map(|api| {
        let name = api.scheme;
        let transports = [(String::new(), None), ("+https".to_owned(), Some(true)), ("+http".to_owned(), Some(false))];
        let (_, transport) = transports.into_iter().find(|(end, _)| is_scheme(&format!("{name}{end}")))?;
        Some((*api, transport, rest))
    })
}

/// Returns the host of `HOST` or `HOST:PORT`, without the brackets of an IPv6 address.
fn host(authority: &str) -> Result<&str> {
    let invalid = || Error::query(format!("{authority:?} is not a valid host; write for example localhost:4040"));
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inner) => {
            inner.split_once(']').filter(|(ip, _)| ip.parse::<std::net::Ipv6Addr>().is_ok()).ok_or_else(invalid)?
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = rest.strip_prefix(':');
    let is_port = port.map_or(rest.is_empty(), |p| p.bytes().all(|b| b.is_ascii_digit()) && p.parse::<u16>().is_ok());
    let is_name = host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b)) && !host.is_empty();
    if is_port && is_name { Ok(host) } else { Err(invalid()) }
}

/// Returns true if the host's name or IP address means this machine, so that requests to it can't be intercepted. Does
/// not resolve the name.
pub fn is_loopback(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    // An IPv4 address may be written as an IPv6 address: `::ffff:127.0.0.1`.
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    is_loopback || name == "localhost" || name.ends_with(".localhost")
}

/// Returns the end of the selector at the start of `text`: the index after its closing brace, skipping braces in
/// quotes. The server checks the rest of the selector's syntax.
fn selector_end(text: &str) -> Result<usize> {
    let mut quote = None;
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((index, byte)) = bytes.next() {
        match (quote, byte) {
            // Backquoted text has no escapes.
            (Some(b'"' | b'\''), b'\\') => drop(bytes.next()),
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'' | b'`') => quote = Some(byte),
            (None, b'}') => return Ok(index + 1),
            (None, b'{') => return Err(Error::query("the selector contains a brace that is not in quotes")),
            (None, _) => {}
        }
    }
    Err(Error::query(match quote {
        Some(_) => "the selector has an unclosed quote; in a shell, put the address in single quotes",
        None => "the selector's closing brace is missing; in a shell, put the address in single quotes",
    }))
}

/// Decodes percent-encoding, such as `%2B` to `+`. A plus stays a plus, because times contain it.
fn percent_decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let digit = |b: u8| char::from(b).to_digit(16);
        match (*first, after) {
            (b'%', [high, low, after @ ..]) if digit(*high).is_some() && digit(*low).is_some() => {
                bytes.push((digit(*high).unwrap_or(0) << 4 | digit(*low).unwrap_or(0)) as u8);
                rest = after;
            }
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| Error::query(format!("{text:?} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::super::ServerQuery;

    const NOW: i64 = 1_772_366_400_000;

    fn parse(text: &str) -> ServerQuery {
        ServerQuery::parse(text, NOW).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn address_is_parsed_into_host_selector_type_and_times() {
        let q =
            parse(r#"pyroscope://Example.com:4040/a/b/{service_name="shop",version="v2"}?type=cpu&from=-2h&until=-1h"#);
        assert_eq!((q.origin.as_str(), q.host.as_str()), ("https://Example.com:4040/a/b", "example.com"));
        assert_eq!(q.selector.as_deref(), Some(r#"{service_name="shop",version="v2"}"#));
        assert_eq!(q.profile_type.as_deref(), Some("cpu"));
        assert_eq!((q.from, q.until, q.tenant), (NOW - 7_200_000, NOW - 3_600_000, None));
        let q = parse("PYROSCOPE://localhost:7070?tenant=a|b");
        assert_eq!((q.origin.as_str(), q.api.scheme), ("http://localhost:7070", "pyroscope"));
        assert_eq!((q.selector, q.profile_type, q.tenant.as_deref()), (None, None, Some("a|b")));
        assert_eq!((q.from, q.until), (NOW - 3_600_000, NOW));
        // This address has a type with all its parts, and a time with a plus.
        let q = parse(
            "pyroscope://h/{}?type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&from=2026-03-01T12:00:00%2B01:00&",
        );
        assert_eq!(q.profile_type.as_deref(), Some("process_cpu:cpu:nanoseconds:cpu:nanoseconds"));
        assert_eq!((q.selector.as_deref(), q.from), (Some("{}"), NOW - 3_600_000));
        assert_eq!(parse("pyroscope://h?from=2026-03-01T12:00:00+01:00").from, NOW - 3_600_000);
    }

    #[test]
    fn selector_is_taken_verbatim() {
        for selector in [
            r#"{a="x y", b=~"x|y{2,3}", c!="?type=z&", d!~'}"', e="\"}", f=`\`}"#,
            r#"{ "service.name" = "shop/cart" , path="http://u@h/#x" }"#,
            "{namespace=\"ünï\"}",
            "{}",
        ] {
            let q = parse(&format!("pyroscope://h/{selector}?type=cpu"));
            assert_eq!((q.selector.as_deref(), q.profile_type.as_deref()), (Some(selector), Some("cpu")));
            assert_eq!(parse(&format!("pyroscope://h/p/{selector}")).origin, "https://h/p");
        }
    }

    #[test]
    fn tls_is_used_unless_the_host_is_local_or_the_scheme_forbids_it() {
        for (address, origin, is_private) in [
            ("pyroscope://host", "https://host", true),
            ("pyroscope://host/", "https://host", true),
            ("pyroscope+http://host", "http://host", false),
            ("pyroscope://127.0.0.1:1", "http://127.0.0.1:1", true),
            ("pyroscope://[::1]:4040/x", "http://[::1]:4040/x", true),
            ("pyroscope://shop.localhost", "http://shop.localhost", true),
            ("pyroscope+https://localhost", "https://localhost", true),
            // These names of other hosts begin like names of this machine.
            ("pyroscope://localhost.example.com", "https://localhost.example.com", true),
            ("pyroscope://127.0.0.1.example.com", "https://127.0.0.1.example.com", true),
        ] {
            let q = parse(address);
            assert_eq!((q.origin.as_str(), q.is_private), (origin, is_private), "{address}");
        }
    }

    #[test]
    fn invalid_addresses_are_explained() {
        for (address, message) in [
            ("pyroscope://", "is not a valid host"),
            ("pyroscope://:4040", "is not a valid host"),
            ("pyroscope://h:port", "is not a valid host"),
            ("pyroscope://h:99999", "is not a valid host"),
            ("pyroscope://h:+80", "is not a valid host"),
            ("pyroscope://[::1", "is not a valid host"),
            ("pyroscope://[evil]/", "is not a valid host"),
            ("pyroscope://a b/", "is not a valid host"),
            ("pyroscope://h\r\nx: y/", "is not a valid host"),
            ("pyroscope://user:secret@h/{}", "set PPROFDIFF_TOKEN"),
            ("pyroscope://h{a=\"b\"}", "the selector needs a slash before it: pyroscope://h/{"),
            ("pyroscope://h/x y/{}", "is not a valid path"),
            ("pyroscope://h/a=\"b\"", "is not a valid path"),
            ("pyroscope://h/{a=\"b\"", "closing brace is missing"),
            ("pyroscope://h/{a=\"b}", "an unclosed quote"),
            ("pyroscope://h/{a=\"b\\", "an unclosed quote"),
            ("pyroscope://h/{{a}}", "a brace that is not in quotes"),
            ("pyroscope://h/{}x", "after the selector"),
            ("pyroscope://h/{}/?type=cpu", "after the selector"),
            ("pyroscope://h/p/?type=cpu", "a type needs a selector: pyroscope://h/p/{service_name="),
            ("pyroscope://h/{}?typ=cpu", "not \"typ\""),
            ("pyroscope://h/{}?type", "type=\"\" is empty"),
            ("pyroscope://h/{}?type=a%00", "has invalid characters"),
            ("pyroscope://h/{}?type=%ff", "is not UTF-8"),
            ("pyroscope://h/{}?tenant=a%0d%0ab", "has invalid characters"),
            ("pyroscope://h/{}?type=a&type=b", "given twice"),
            ("pyroscope://h/{}?from=soon", "is not a time"),
            ("pyroscope://h/{}?from=-1h&until=-2h", "is not before until"),
            ("http://h/{}", "not the address of a server"),
        ] {
            let error = ServerQuery::parse(address, NOW).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(message) && !error.contains("secret"), "{address:?}: {error}");
        }
    }

    /// Each insertion of one character, and each truncation, gives a valid query or an error.
    #[test]
    fn mutated_addresses_are_valid_or_rejected() {
        let address = "pyroscope+http://[::1]:4040/p/{a=~\"b\\\"c\",d='}',e=`f`}?type=a%2Bb&from=-1h30m&until=2026-03-01T12:00:00.5Z";
        let mut accepted = 0;
        for (index, _) in address.char_indices() {
            accepted += usize::from(ServerQuery::parse(&address[..index], NOW).is_ok());
            for c in ['{', '}', '"', '\'', '`', '\\', '%', '&', '?', '=', '/', ':', '@', '[', 'é', '\0', '9', '-'] {
                let text = format!("{}{c}{}", &address[..index], &address[index..]);
                let Ok(q) = ServerQuery::parse(&text, NOW) else { continue };
                accepted += 1;
                assert!(q.origin.starts_with("http://") && !q.origin.contains(['{', ' ', '\0', '@']), "{text}");
                assert!(
                    q.from < q.until && q.selector.is_none_or(|s| s.starts_with('{') && s.ends_with('}')),
                    "{text}"
                );
            }
        }
        assert!(accepted > 100, "{accepted}");
    }
}
