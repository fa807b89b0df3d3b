/** How a command's streams share one connection, as clients, API server and kubelets have it in common. */

/** The first subprotocol with a way to say that a channel is closed. */
export const CHANNEL_PROTOCOL = 'v5.channel.k8s.io'
/** By SPDY streams close by themselves; both of these report how the command ended as a Status. */
export const SPDY_CHANNEL_PROTOCOLS: readonly string[] = ['v5.channel.k8s.io', 'v4.channel.k8s.io']

/** The first byte of each message. */
export const STDIN = 0
export const STDOUT = 1
export const STDERR = 2
export const ERROR = 3
export const RESIZE = 4
/** In place of a channel: the channel in the next byte is closed. */
export const CLOSE = 255
