//! Waiting until a callback comes.

use std::time::Duration;

use http::request;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::answer::Receipt;
use super::cancel::Waits;
use crate::callback::tool::AWAIT;
use crate::callback::{Sight, TmpHooks};
use crate::id::SessionKey;
use crate::store::{InboxMessage, StoreError};
use crate::time::Timestamp;

/// A sign of life each time, for clients that asked for it: it keeps their own limits (ten seconds, with some) from ending
/// the call.
const PROGRESS: Duration = Duration::from_secs(5);
/// How long is waited when nothing is said and the client asked for no signs of life: common ones give up after 60 s.
const WITHOUT_PROGRESS: Duration = Duration::from_secs(50);

/// What is waited for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Awaited {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

impl Awaited {
    pub(super) fn read(arguments: &Value) -> Result<Self, String> {
        Awaited::deserialize(arguments).map_err(|error| {
            format!(
                "the arguments of {AWAIT} are wrong: {error}; it takes url (a string) and timeout_seconds (a whole number), both optional"
            )
        })
    }
}

/// Waits; the result, or the error, is a text for the model.
pub(super) async fn run(
    hooks: &TmpHooks,
    waits: &Waits,
    session: &SessionKey,
    awaited: Awaited,
    head: &request::Parts,
    context: &RequestContext<RoleServer>,
) -> Result<String, String> {
    let receipt = head.extensions.get::<Receipt>().ok_or("the call came without a way back for its message")?;
    let of = awaited.url.as_deref().filter(|url| !url.trim().is_empty());
    let of = of.map(|url| {
        hooks.callback_at(url).ok_or("url is not one of a callback; give it exactly as request_tmp_hook returned it")
    });
    let of = of.transpose()?;
    let Some(_place) = waits.enter(&head.headers, &context.id.to_string(), context.ct.clone()) else {
        return Err("too many calls wait for callbacks at this moment; try again later, or end your turn".to_owned());
    };
    let mut progress = Progress::new(context);
    let asked = awaited.timeout_seconds.map(Duration::from_secs);
    let most = asked.or((!progress.is_wanted()).then_some(WITHOUT_PROGRESS));
    let begun = Instant::now();
    let closed = hooks.until_closed();
    tokio::pin!(closed);
    loop {
        // Listening begins before looking, so that nothing slips between.
        let arrival = hooks.arrival(session);
        let until = match hooks.look_for(session, of).await.map_err(failed)? {
            Sight::Message(message) => return deliver(hooks, session, *message, receipt, context).await,
            Sight::Nothing(why) => return Err(why.to_string()),
            Sight::Open(until) => until,
        };
        let left = Timestamp::now().until(until);
        let left = most.map_or(left, |most| left.min(most.saturating_sub(begun.elapsed())));
        if left.is_zero() {
            return Ok(format!(
                "Nothing came within {} seconds. The callback is open until {until}: call {AWAIT} again to go on waiting, or end your turn.",
                begun.elapsed().as_secs()
            ));
        }
        progress.tell(begun.elapsed(), left).await;
        tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err("the call was given up".to_owned()),
            () = arrival => {}
            () = tokio::time::sleep(left.min(PROGRESS)) => {}
            () = &mut closed => return Err(format!("hookgate is stopping; call {AWAIT} again in a moment")),
        }
    }
}

fn failed(error: StoreError) -> String {
    tracing::error!(%error, "a callback cannot be waited for");
    "hookgate's store failed, and its log says how; try again".to_owned()
}

/// Gives the message to the answer as a policy lets it pass, or back to the inbox when nobody is there to get it.
async fn deliver(
    hooks: &TmpHooks,
    session: &SessionKey,
    message: InboxMessage,
    receipt: &Receipt,
    context: &RequestContext<RoleServer>,
) -> Result<String, String> {
    let Some(text) = hooks.screened(session, &message).await else {
        hooks.put_back(session, message.id).await;
        return Err("a callback came, but a policy that has to be asked about it failed; the message waits, try again"
            .to_owned());
    };
    if context.ct.is_cancelled() || !receipt.has(session, message.id) {
        hooks.put_back(session, message.id).await;
        return Err("the call was given up".to_owned());
    }
    Ok(text)
}

/// Signs of life, if the client asked for them.
struct Progress<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    last: Option<Instant>,
}

impl<'a> Progress<'a> {
    fn new(context: &'a RequestContext<RoleServer>) -> Self {
        Progress { context, token: context.meta.get_progress_token(), last: None }
    }

    fn is_wanted(&self) -> bool {
        self.token.is_some()
    }

    async fn tell(&mut self, waited: Duration, left: Duration) {
        let Some(token) = self.token.clone() else { return };
        if self.last.is_some_and(|last| last.elapsed() < PROGRESS) {
            return;
        }
        // The figure has to grow.
        let (sofar, total) = (waited.as_secs_f64(), (waited + left).as_secs_f64());
        let told = ProgressNotificationParam::new(token, sofar).with_total(total);
        let told = told.with_message(format!("waiting for a callback, {} s so far", waited.as_secs()));
        self.last = Some(Instant::now());
        if let Err(error) = self.context.peer.notify_progress(told).await {
            tracing::debug!(%error, "a client could not be told that its callback is waited for");
        }
    }
}
