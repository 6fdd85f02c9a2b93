"""What agents send: one websocket a rank, from the handshake to the ack."""
