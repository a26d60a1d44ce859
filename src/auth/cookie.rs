//! The login's cookie in headers.

use std::time::Duration;

use http::{HeaderMap, header};

/// The values of the cookies of a name. A browser may send several, and only one of them may be ours.
pub(super) fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    pairs(headers).filter_map(move |pair| value_of(pair, name))
}

/// The `cookie` header without the cookies of a name; `None` when there is none of that name.
pub(super) fn without(headers: &HeaderMap, name: &str) -> Option<String> {
    values(headers, name).next()?;
    let kept: Vec<&str> = pairs(headers).filter(|pair| value_of(pair, name).is_none()).collect();
    Some(kept.join("; "))
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).map(str::trim).filter(|pair| !pair.is_empty())
}

fn value_of<'a>(pair: &'a str, name: &str) -> Option<&'a str> {
    pair.split_once('=').filter(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
}

/// The value of `set-cookie`: not readable for scripts, not sent with requests that another site makes, except for links
/// that are followed.
pub(super) fn set(name: &str, value: &str, lifetime: Duration, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", lifetime.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (header::COOKIE, line.parse().unwrap())).collect()
    }

    #[test]
    fn cookies_are_found_in_every_line() {
        let headers = headers(&["a=1; hg=x", "hg=y;b=2; hgx=3", "hg"]);
        assert_eq!(values(&headers, "hg").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(without(&headers, "hg").unwrap(), "a=1; b=2; hgx=3; hg");
        assert_eq!(without(&headers, "other"), None);
        assert_eq!(without(&self::headers(&["hg=1"]), "hg").unwrap(), "");
    }

    #[test]
    fn flags_are_set() {
        assert_eq!(
            set("hg", "v", Duration::from_secs(60), true),
            "hg=v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
        );
        assert!(!set("hg", "v", Duration::ZERO, false).contains("Secure"));
    }
}
