/** The paths, streams and headers that replicas of the management server use to connect to each other. */

/** Replicas connect here. */
export const PEER_PATH = '/v3/replicas/connect'

export const STREAMS = {
  /** The other replica writes a line for each of its clusters: `+c-x7k2p` when an agent connects, `-c-x7k2p` when the last one is gone. */
  clusters: 'clusters',
  /** One request to the API server of the cluster whose name is the address, or a connection to a service of a machine: `machine:m-0123:machine`. */
  cluster: 'cluster',
  /** HTTP/1.1 requests to the port of the replica, whose clients this replica has seen. */
  port: 'port',
} as const

/** The header with the address of the client, in requests that a replica passes on. */
export const CLIENT_ADDRESS = 'x-hk-client-address'
/** The header with the id for the audit log. */
export const AUDIT_ID = 'x-hk-audit-id'
