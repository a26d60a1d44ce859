//! A server that is away: its port is taken, so that no other test gets it, but nobody listens there.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// Connections to it are refused as long as it lives.
pub(crate) struct Away {
    pub(crate) address: SocketAddr,
    socket: TcpSocket,
}

impl Away {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Away { address: socket.local_addr().unwrap(), socket }
    }

    /// The server comes back.
    #[cfg(feature = "cli")]
    pub(crate) fn listen(self) -> std::net::TcpListener {
        let listener = self.socket.listen(64).unwrap().into_std().unwrap();
        listener.set_nonblocking(false).unwrap();
        listener
    }
}
