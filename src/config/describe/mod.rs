//! How keys are described: once, in [`keys`](super::keys), for reading, defaults, `config show` and `config schema`.

mod read;
mod scalar;
mod section;
mod shape;
mod text;

pub(super) use read::{At, Reader, Setting};
pub(super) use scalar::{Named, OneOrMany, duration_text};
pub(super) use section::{choice, section};
pub(super) use shape::{Key, Kind, Shape, closest};
pub(super) use text::FromText;
