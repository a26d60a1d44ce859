//! Scenarios of routes to agents, against both hosts; those of `all` in each revision, binding and kind of answer.

mod cards;
mod delegations;
mod dialect;
mod gone;
mod requests;
mod stage;
mod tasks;

use dialect::Dialect;
use stage::At;

use crate::suite::Host;

/// Makes the tests of all hosts: scenarios that are played in every form, and those for which one form will do.
macro_rules! agents {
    (all { $($all:tt)+ } once { $($once:tt)+ }) => {
        agents!(@host layer Layer { $($all)+ } { $($once)+ });
        agents!(@host proxy Proxy { $($all)+ } { $($once)+ });
    };
    (@host $module:ident $host:ident { $($all:tt)+ } { $($once:tt)+ }) => {
        mod $module {
            use super::*;

            mod rpc_0_3 {
                tests!(At { host: Host::$host, dialect: Dialect::Rpc03, stream: false }, $($all)+);
            }
            mod rpc_0_3_streamed {
                tests!(At { host: Host::$host, dialect: Dialect::Rpc03, stream: true }, $($all)+);
            }
            mod rpc_1 {
                tests!(At { host: Host::$host, dialect: Dialect::Rpc1, stream: false }, $($all)+);
            }
            mod rpc_1_streamed {
                tests!(At { host: Host::$host, dialect: Dialect::Rpc1, stream: true }, $($all)+ $($once)+);
            }
            mod rest_0_3 {
                tests!(At { host: Host::$host, dialect: Dialect::Rest03, stream: false }, $($all)+);
            }
            mod rest_1_streamed {
                tests!(At { host: Host::$host, dialect: Dialect::Rest1, stream: true }, $($all)+);
            }
            mod rest_1 {
                tests!(At { host: Host::$host, dialect: Dialect::Rest1, stream: false }, $($all)+);
            }
        }
    };
}

agents! {
    all {
        delegations: a_delegation_passes_as_it_came, a_denied_delegation_reaches_no_agent, a_replacement_is_one_text,
            context_follows_the_prompt, a_continuation_is_not_asked_about, what_two_readers_could_read_differently_is_refused,
            a_prompt_that_is_too_large_is_refused;
        tasks: a_task_is_told_from_its_start_to_its_end, a_task_that_waits_is_not_over, an_end_is_told_once,
            ends_have_their_words, a_message_ends_the_delegation, an_error_ends_the_delegation;
    }
    once {
        delegations: a_policy_that_fails_decides_by_its_mode, matchers_know_the_agent, without_hooks_nothing_is_touched;
        tasks: what_is_long_over_is_no_news, a_conversation_is_a_session, a_task_that_began_elsewhere_is_told_once,
            a_compressed_answer_is_read;
        requests: batches_are_refused_while_something_gates, unknown_methods_are_refused_while_something_gates,
            grpc_is_refused_while_something_gates, a_body_of_another_binding_is_refused, other_requests_pass,
            an_upgrade_is_no_way_round_a_policy,
            a_request_that_is_too_large_says_so, an_absent_agent_ends_the_delegation;
        cards: a_card_leads_to_the_route, a_card_of_0_3_leads_to_the_route, a_public_origin_comes_first,
            an_extended_card_leads_to_the_route, a_card_names_the_agent, what_is_no_card_passes, a_card_may_be_compressed,
            a_card_that_is_too_large_is_refused;
        gone: events_are_not_held, any_split_gives_the_same, a_client_that_leaves_takes_the_request_with_it,
            a_client_that_leaves_while_a_policy_thinks_asks_no_agent;
    }
}
