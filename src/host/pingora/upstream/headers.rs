//! The headers of a request on its way to the upstream, and of an answer on its way back.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri, Version, request};
use pingora::http::RequestHeader;

/// Headers that concern one connection only (RFC 9110, section 7.6.1, and what is in use beside it).
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Which of these headers concern one connection only: the known ones, and what `connection` says does.
pub(in crate::host::pingora) fn hop_by_hop(headers: &HeaderMap) -> Vec<HeaderName> {
    let named = |name: &HeaderName| {
        let lists = headers.get_all(header::CONNECTION).iter();
        lists
            .flat_map(|list| list.as_bytes().split(|byte| *byte == b','))
            .any(|named| named.trim_ascii().eq_ignore_ascii_case(name.as_str().as_bytes()))
    };
    let names_any = headers.contains_key(header::CONNECTION);
    headers.keys().filter(|name| HOP_BY_HOP.contains(name) || names_any && named(name)).cloned().collect()
}

/// Removes what concerns one connection only.
pub(in crate::host::pingora) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let names = hop_by_hop(headers);
    remove(headers, &names);
}

/// Removes headers and keeps the others in order, which [`HeaderMap::remove`] does not.
pub(in crate::host::pingora) fn remove(headers: &mut HeaderMap, names: &[HeaderName]) {
    if !names.iter().any(|name| headers.contains_key(name)) {
        return;
    }
    let mut kept = HeaderMap::with_capacity(headers.keys_len());
    let mut current = None;
    for (name, value) in headers.drain() {
        // A name comes with the first of its values.
        current = name.or(current);
        if let Some(name) = current.as_ref().filter(|name| !names.contains(name)) {
            kept.append(name, value);
        }
    }
    *headers = kept;
}

/// How the client wrote its header names: one after another, each behind its length. Travels in a request's extensions, since a
/// [`HeaderMap`] has lower case only.
#[derive(Clone, Debug)]
pub(in crate::host::pingora) struct HeaderCase(Bytes);

impl HeaderCase {
    /// Remembers the names of a request; `None` where there was no case to keep (HTTP/2).
    pub(in crate::host::pingora) fn of(request: &RequestHeader) -> Option<Self> {
        if !request.has_case() {
            return None;
        }
        let mut names = Vec::with_capacity(256);
        for (name, _) in request.case_header_iter() {
            // No name that a `HeaderName` can be is longer.
            let Ok(len) = u16::try_from(name.as_slice().len()) else { continue };
            names.extend_from_slice(&len.to_ne_bytes());
            names.extend_from_slice(name.as_slice());
        }
        Some(HeaderCase(names.into()))
    }

    fn find(&self, name: &HeaderName) -> Option<Bytes> {
        let mut rest = &*self.0;
        while let Some((len, behind)) = rest.split_first_chunk() {
            let (written, others) = behind.split_at_checked(u16::from_ne_bytes(*len).into())?;
            if written.eq_ignore_ascii_case(name.as_str().as_bytes()) {
                return Some(self.0.slice_ref(written));
            }
            rest = others;
        }
        None
    }
}

/// Where on the upstream a request goes, when that is not its path behind the upstream's own. Travels in a request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host::pingora) enum Place {
    /// To the upstream's own path: nothing is left of the client's, for which the URI has a slash.
    Own,
    /// To that path with this in front of it, and the request's behind it.
    Behind(&'static str),
    /// To this path.
    At(&'static str),
}

/// What is the same for every attempt at one call.
pub(in crate::host::pingora) struct Outline {
    pub(super) method: Method,
    path_and_query: String,
    place: Option<Place>,
    headers: HeaderMap,
    /// Those of `headers` that do not go on. Taking them out would mean to make the map anew.
    gone: Vec<HeaderName>,
    case: Option<HeaderCase>,
    length: Option<u64>,
    /// The client, who speaks HTTP/2, takes trailers, which over HTTP/2 the upstream may need to know.
    trailers: bool,
    /// The request asks to switch to another protocol.
    pub(super) switches: bool,
}

impl Outline {
    /// `length`: of the body, where it is known before it is sent.
    pub(super) fn new(parts: request::Parts, length: Option<u64>, own: &[(HeaderName, HeaderValue)]) -> Self {
        let mut headers = parts.headers;
        let sends_length = headers.contains_key(header::CONTENT_LENGTH)
            || matches!(parts.method, Method::POST | Method::PUT | Method::PATCH);
        let mut gone = hop_by_hop(&headers);
        // The proxy has the whole body already, names the upstream itself, and is no proxy that needs a login.
        gone.extend([header::HOST, header::EXPECT, header::TRAILER, header::PROXY_AUTHORIZATION]);
        match length {
            Some(length) if length > 0 || sends_length => {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            }
            _ => gone.push(header::CONTENT_LENGTH),
        }
        for (name, value) in own {
            gone.retain(|gone| gone != name);
            headers.insert(name, value.clone());
        }
        let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let trailers = parts.version == Version::HTTP_2 && headers.get(header::TE).is_some_and(|te| te == "trailers");
        let case = parts.extensions.get::<HeaderCase>().cloned();
        let place = parts.extensions.get::<Place>().copied();
        Outline { method: parts.method, path_and_query, place, headers, gone, case, length, trailers, switches: false }
    }

    /// The path and query on a server, where `on_it` says what a path behind the server's own is there.
    pub(super) fn path(&self, on_it: impl FnOnce(&str) -> String) -> String {
        let rest = self.path_and_query.as_str();
        // A slash alone stands for no path.
        let without = rest.strip_prefix('/').filter(|rest| rest.is_empty() || rest.starts_with('?'));
        match self.place {
            None => on_it(rest),
            Some(Place::Own) => on_it(without.unwrap_or(rest)),
            Some(Place::Behind(start)) => match on_it(without.unwrap_or(rest)).as_str() {
                "/" => start.to_owned(),
                path => format!("{start}{path}"),
            },
            Some(Place::At(path)) => path.to_owned(),
        }
    }

    /// Makes it a request whose body passes as the client sends it: who waits to be asked for it still waits.
    pub(in crate::host::pingora) fn passing(mut self) -> Self {
        self.gone.retain(|name| *name != header::EXPECT);
        self
    }

    /// Makes it a request to switch to one of these protocols.
    pub(super) fn switching_to(mut self, protocols: HeaderValue) -> Self {
        self.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        self.headers.insert(header::UPGRADE, protocols);
        self.gone.retain(|name| !matches!(*name, header::CONNECTION | header::UPGRADE));
        Outline { switches: true, ..self }
    }

    /// The request in the form that HTTP/1.1 sends.
    pub(super) fn http1(&self, authority: &str, path: &str) -> pingora::Result<Box<RequestHeader>> {
        let mut request =
            RequestHeader::build(self.method.clone(), path.as_bytes(), Some(self.headers.len().saturating_add(2)))?;
        request.append_header(header::HOST, authority)?;
        for (name, value) in self.kept() {
            match self.case.as_ref().and_then(|case| case.find(name)) {
                Some(written) => request.append_header(written, value.clone())?,
                None => request.append_header(name, value.clone())?,
            };
        }
        if self.length.is_none() {
            request.append_header(header::TRANSFER_ENCODING, "chunked")?;
        }
        Ok(Box::new(request))
    }

    /// The request in the form that HTTP/2 sends: the upstream's name is in the URI.
    pub(super) fn http2(&self, authority: &str, path: &str) -> Result<Box<RequestHeader>, http::Error> {
        let uri = Uri::builder().scheme("https").authority(authority).path_and_query(path).build()?;
        let mut request = http::Request::builder().method(self.method.clone()).uri(uri).body(())?;
        request.headers_mut().extend(self.kept().map(|(name, value)| (name.clone(), value.clone())));
        if self.trailers {
            request.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
        }
        Ok(Box::new(RequestHeader::from(request.into_parts().0)))
    }

    /// The headers that go on, in order.
    fn kept(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.headers.iter().filter(|(name, _)| !self.gone.contains(name))
    }
}

/// The exact length that an answer's header declares.
pub(super) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn connection_headers_go_and_the_rest_stays_in_order() {
        let mut map = headers(&[
            ("x-first", "1"),
            ("connection", "keep-alive, X-Named"),
            ("keep-alive", "timeout=5"),
            ("x-named", "gone"),
            ("x-twice", "a"),
            ("te", "trailers"),
            ("x-middle", "2"),
            ("x-twice", "b"),
            ("upgrade", "h2c"),
            ("x-last", "3"),
        ]);
        strip_hop_by_hop(&mut map);
        let left: Vec<_> = map.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(left, [("x-first", "1"), ("x-twice", "a"), ("x-twice", "b"), ("x-middle", "2"), ("x-last", "3")]);
    }

    #[test]
    fn names_are_written_as_the_client_wrote_them() {
        let mut written = RequestHeader::build("POST", b"/", None).unwrap();
        for name in ["X-API-Key", "anthropic-VERSION"] {
            written.append_header(name, "v").unwrap();
        }
        let mut parts = written.as_owned_parts();
        parts.extensions.insert(HeaderCase::of(&written).unwrap());
        let outline =
            Outline::new(parts, Some(0), &[(HeaderName::from_static("x-own"), HeaderValue::from_static("1"))]);
        let mut wire = Vec::new();
        outline.http1("up.example", "/p").unwrap().header_to_h1_wire(&mut wire);
        let wire = String::from_utf8(wire).unwrap();
        assert_eq!(
            wire,
            "Host: up.example\r\nX-API-Key: v\r\nanthropic-VERSION: v\r\nContent-Length: 0\r\nx-own: 1\r\n"
        );
    }

    #[test]
    fn a_client_cannot_take_the_routes_own_headers_out() {
        let mut parts = http::Request::builder().body(()).unwrap().into_parts().0;
        parts.headers = headers(&[("connection", "x-api-key, x-other"), ("x-api-key", "theirs"), ("x-other", "1")]);
        let own = [(HeaderName::from_static("x-api-key"), HeaderValue::from_static("ours"))];
        let kept = Outline::new(parts, None, &own);
        let kept: Vec<_> = kept.kept().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(kept, [("x-api-key", "ours")]);
    }

    #[test]
    fn lengths_are_declared_where_servers_expect_them() {
        let length = |method: &str, length, declared: &[(&str, &str)]| {
            let mut parts = http::Request::builder().method(method).body(()).unwrap().into_parts().0;
            parts.headers = headers(declared);
            let outline = Outline::new(parts, length, &[]);
            outline
                .kept()
                .find(|(name, _)| **name == header::CONTENT_LENGTH)
                .map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        assert_eq!(length("GET", Some(0), &[]), None);
        assert_eq!(length("GET", Some(0), &[("content-length", "0")]), Some("0".to_owned()));
        assert_eq!(length("POST", Some(0), &[]), Some("0".to_owned()));
        assert_eq!(length("POST", Some(7), &[("content-length", "99")]), Some("7".to_owned()));
        assert_eq!(length("POST", None, &[("content-length", "99")]), None);
    }
}
