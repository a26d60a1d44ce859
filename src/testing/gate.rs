use tokio::sync::watch;

/// Something to wait for: closed until it is opened, then open for ever. Clones are one gate.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use hookgate::testing::Gate;
/// let gate = Gate::default();
/// let waiting = tokio::spawn({ let gate = gate.clone(); async move { gate.passed().await } });
/// gate.reached().await;
/// gate.open();
/// waiting.await.unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    open: bool,
    reached: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Gate { state: watch::Sender::new(State::default()) }
    }
}

impl Gate {
    /// Lets everyone through who waits or will come.
    pub fn open(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Waits until the gate is open.
    pub async fn passed(&self) {
        let mut state = self.state.subscribe();
        self.state.send_modify(|state| state.reached = true);
        // The sender is in `self`, so the channel cannot close while this waits.
        let _ = state.wait_for(|state| state.open).await;
    }

    /// Waits until someone has come to the gate.
    pub async fn reached(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.reached).await;
    }
}
