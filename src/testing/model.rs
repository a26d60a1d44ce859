use std::io;
use std::sync::Arc;

use super::answer::Answer;
use super::server::{Received, Server};

/// A scripted model server on loopback that speaks Anthropic Messages. It ends when it is dropped.
#[derive(Debug)]
pub struct Model {
    server: Server,
}

impl Model {
    /// Answers the requests in the order in which they come; one more than there are answers gets status 500.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn scripted<A: Into<Answer>>(answers: impl IntoIterator<Item = A>) -> io::Result<Model> {
        let answers: Vec<Answer> = answers.into_iter().map(Into::into).collect();
        Model::answering(move |number, _| {
            answers.get(number).cloned().unwrap_or_else(|| {
                Answer::error(500, "api_error", &format!("the script has no answer to request {number}"))
            })
        })
        .await
    }

    /// Answers each request as the closure says; requests are numbered from 0.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn answering(answer: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> io::Result<Model> {
        let server = Server::start(|log| {
            Arc::new(move |number, request| {
                let (answer, unfinished) = (answer(number, &request), log.unfinished());
                Box::pin(async move { answer.give(&request, unfinished).await })
            })
        });
        Ok(Model { server: server.await? })
    }

    /// The base URL, without a slash at its end.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Arc<Received>> {
        self.server.log().received()
    }

    /// Waits until that many requests have come and gives all that came.
    pub async fn at_least(&self, count: usize) -> Vec<Arc<Received>> {
        self.server.log().at_least(count).await
    }

    /// Waits until the other side gave up that many answers before their end.
    pub async fn abandoned(&self, count: usize) {
        self.server.log().abandoned(count).await;
    }
}
