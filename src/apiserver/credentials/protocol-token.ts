/** How browsers send a token where they cannot set a header: as a WebSocket subprotocol beside the real one. */
export const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'
