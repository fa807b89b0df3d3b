/**
 * The channels in which one connection carries the streams of a remote command. Clients, API server and kubelets use
 * them.
 */

/** The first subprotocol that can close a channel. */
export const CHANNEL_PROTOCOL = 'v5.channel.k8s.io'
/** SPDY streams close by themselves; both of these report the exit status as a Status. */
export const SPDY_CHANNEL_PROTOCOLS: readonly string[] = ['v5.channel.k8s.io', 'v4.channel.k8s.io']

/** The first byte of each message. */
export const STDIN = 0
export const STDOUT = 1
export const STDERR = 2
export const ERROR = 3
export const RESIZE = 4
/** A pseudo channel: closes the channel in the next byte. */
export const CLOSE = 255
