//! The two macros with which keys are written down.

/// Declares a table of the configuration: a struct, its keys, their documentation, ranges and defaults.
///
/// `key: Type [low..=high] = default` — range (integers; milliseconds for durations) and default can be left out. A key without
/// a default is required, unless its type is an `Option`.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $name:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty $([$range:expr])? $(= $default:expr)?, )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $( $(#[doc = $doc])+ pub(crate) $key: $type, )*
        }

        impl $crate::config::describe::Setting for $name {
            fn shape() -> $crate::config::describe::Shape {
                use $crate::config::describe::{Key, Kind, Setting, Shape};
                Shape::new(Kind::Table(vec![$({
                    let default = None::<$crate::config::document::Value>;
                    $( let default = default.or(Some($default.into())); )?
                    Key {
                        name: stringify!($key),
                        about: concat!($($doc),+).trim_ascii(),
                        shape: <$type as Setting>::shape()$(.within($range))?,
                        required: default.is_none() && !<$type as Setting>::OPTIONAL,
                        default,
                    }
                }),*]))
            }

            fn read(
                node: &$crate::config::document::Node,
                shape: &$crate::config::describe::Shape,
                reader: &mut $crate::config::describe::Reader<'_>,
            ) -> Option<Self> {
                if !matches!(node.value, $crate::config::document::Value::Table(_)) {
                    return reader.wrong(node, shape);
                }
                // Every key is read before a fault in one ends it, so that all faults are reported.
                $( let $key = reader.key::<$type>(node, shape, stringify!($key)); )*
                Some($name { $($key: $key?),* })
            }
        }
    };
}

/// Makes an enum readable as one of a few words.
macro_rules! choice {
    ($type:ty { $($word:literal => $value:expr, $about:literal;)+ }) => {
        impl $crate::config::describe::Setting for $type {
            fn shape() -> $crate::config::describe::Shape {
                $crate::config::describe::Shape::new($crate::config::describe::Kind::Choice(&[$(($word, $about)),+]))
            }

            fn read(
                node: &$crate::config::document::Node,
                shape: &$crate::config::describe::Shape,
                reader: &mut $crate::config::describe::Reader<'_>,
            ) -> Option<Self> {
                match &node.value {
                    $( $crate::config::document::Value::Text(text) if text == $word => Some($value), )+
                    _ => reader.wrong(node, shape),
                }
            }
        }
    };
}

pub(crate) use {choice, section};
