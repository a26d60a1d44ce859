//! `hooks …`.

mod list;
mod recorder;
mod report;
mod sample;
mod test;

pub(super) use list::list;
pub(super) use test::test;
