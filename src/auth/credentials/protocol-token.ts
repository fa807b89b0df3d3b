/**
 * Reads the token that a browser sends as an additional WebSocket subprotocol, because a browser cannot set headers.
 */
export const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'
