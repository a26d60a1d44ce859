//! Calls of revision 2026-07-28 that need answers of the client: they end with questions, and the client calls again with
//! its answers. Nothing is kept here meanwhile; the state that comes back is sealed.

use rmcp::model::{ClientCapabilities, ErrorData, InputRequest, InputRequiredResult, InputResponses};
use serde_json::{Value, json};

use crate::ask;

/// What a call brings of the rounds before.
pub(crate) struct Round<'a> {
    pub(crate) answers: Option<&'a InputResponses>,
    pub(crate) state: Option<&'a str>,
    pub(crate) client: &'a ClientCapabilities,
}

/// What a round comes to.
pub(crate) enum Outcome {
    Ask(InputRequiredResult),
    /// All is answered: the last answers.
    Go(InputResponses),
}

type Questions = Vec<(&'static str, InputRequest)>;

/// What is asked for a tool or prompt, round by round, and whether there is a state to come back. `None`: it has no rounds.
fn questions(name: &str) -> Result<Option<(Vec<Questions>, bool)>, ErrorData> {
    let name_of_user = || ask::user_for("What is your name?", "name");
    let confirm = || ask::user("Please confirm", json!({"ok": {"type": "boolean"}}), true);
    let (rounds, with_state) = match name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" | "test_tool_with_task" => {
            (vec![vec![("user_name", name_of_user()?)]], false)
        }
        "test_input_required_result_sampling" => {
            (vec![vec![("capital_question", ask::model("What is the capital of France?", 100))]], false)
        }
        "test_input_required_result_list_roots" => (vec![vec![("client_roots", ask::roots())]], false),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            (vec![vec![("confirm", confirm()?)]], true)
        }
        "test_input_required_result_multiple_inputs" | "test_input_required_result_capabilities" => {
            let greeting = ask::model("Generate a greeting", 50);
            let all = vec![("user_name", name_of_user()?), ("greeting", greeting), ("client_roots", ask::roots())];
            (vec![all], true)
        }
        "test_input_required_result_multi_round" => {
            let first = ask::user_for("Step 1: What is your name?", "name")?;
            let second = ask::user_for("Step 2: What is your favorite color?", "color")?;
            (vec![vec![("step1", first)], vec![("step2", second)]], true)
        }
        "test_input_required_result_prompt" => {
            (vec![vec![("user_context", ask::user_for("What context should the prompt use?", "context")?)]], false)
        }
        _ => return Ok(None),
    };
    Ok(Some((rounds, with_state)))
}

/// Seals states with a key that nobody else has.
#[derive(Clone)]
pub(crate) struct Seal([u8; 32]);

impl Seal {
    pub(crate) fn new() -> Seal {
        let mut key = [0; 32];
        key[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        key[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        Seal(key)
    }

    fn close(&self, name: &str, round: usize) -> String {
        format!("{round}.{}", blake3::keyed_hash(&self.0, format!("{name}.{round}").as_bytes()).to_hex())
    }

    fn open(&self, name: &str, state: &str) -> Result<usize, ErrorData> {
        let round = state.split_once('.').and_then(|(round, _)| round.parse().ok());
        // This is a fixture: nobody measures the time that the comparison takes.
        round
            .filter(|round| self.close(name, *round) == state)
            .ok_or_else(|| ErrorData::invalid_params("the requestState is not one of this server", None))
    }

    /// Takes a tool or prompt one round further. `None`: it has no rounds.
    pub(crate) fn turn(&self, name: &str, round: Round<'_>) -> Result<Option<Outcome>, ErrorData> {
        let Some((mut rounds, with_state)) = questions(name)? else { return Ok(None) };
        let mut number = match round.state {
            Some(state) if with_state => self.open(name, state)?,
            _ => 0,
        };
        for questions in &mut rounds {
            questions.retain(|(_, question)| ask::is_answerable(question, round.client));
        }
        if let (Some(answers), Some(asked)) = (round.answers, rounds.get(number)) {
            if let Some((key, _)) = answers.iter().find(|(_, answer)| !answer.is_object()) {
                return Err(ErrorData::invalid_params(format!("the answer to {key:?} is not an object"), None));
            }
            if !asked.is_empty() && asked.iter().all(|(key, _)| answers.contains_key(*key)) {
                number += 1;
            }
        }
        let Some(asked) = rounds.into_iter().nth(number) else {
            return Ok(Some(Outcome::Go(round.answers.cloned().unwrap_or_default())));
        };
        let asked = asked.into_iter().map(|(key, question)| (key.to_owned(), question)).collect();
        let state = with_state.then(|| self.close(name, number));
        Ok(Some(Outcome::Ask(InputRequiredResult::new(Some(asked), state))))
    }
}

/// What a tool says when all is answered.
pub(crate) fn said(name: &str, answers: &InputResponses) -> String {
    match name {
        "test_input_required_result_request_state" => "state-ok".to_owned(),
        "test_input_required_result_elicitation" | "test_streaming_elicitation" | "test_tool_with_task" => {
            format!("Hello, {}!", answers["user_name"]["content"]["name"].as_str().unwrap_or("whoever you are"))
        }
        _ => json!(answers.iter().collect::<std::collections::BTreeMap<&String, &Value>>()).to_string(),
    }
}
