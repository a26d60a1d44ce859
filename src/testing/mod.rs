//! Scripted counterparts on loopback: a model, a policy service and an agent, for trying policies out without a provider.
//!
//! Everything here speaks over real sockets, so that what is tested is what runs. [`Model`] answers as a script says,
//! [`Policy`] decides as a closure says, [`Agent`] is a small loop that does what SDK agents do: send the history, put
//! the streamed answer together, run the tools that it asks for and send their results. Each of them records what it
//! got. Waiting is done by [`Gate`]s and by awaiting the next request, never by sleeping.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), hookgate::BoxError> {
//! use hookgate::testing::{Agent, Message, Model};
//! let model = Model::scripted([
//!     Message::new("msg_1").tool("toolu_1", "read", r#"{"path":"a.txt"}"#),
//!     Message::new("msg_2").text("It says hello."),
//! ])
//! .await?;
//! let mut agent = Agent::new(&model.url()).tool("read", |_| Ok("hello".to_owned()));
//! let replies = agent.prompt("What is in a.txt?").await?;
//! assert_eq!(replies.last().unwrap().text(), "It says hello.");
//! assert_eq!(model.requests()[1].json()["messages"][2]["content"][0]["content"], "hello");
//! # Ok(()) }
//! ```

mod agent;
mod answer;
mod client;
#[cfg(feature = "pingora")]
pub mod demo;
mod gate;
mod message;
mod model;
mod policy;
mod reply;
mod server;

pub use agent::{Agent, Echo};
pub use answer::Answer;
pub use client::{Client, Incoming, SseEvent};
pub use gate::Gate;
pub use message::Message;
pub use model::Model;
pub use policy::{Envelope, Hook, Policy, Ruling, document};
pub use reply::{Call, Reply};
pub use server::Received;
