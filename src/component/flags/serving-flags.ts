/** The flag groups "etcd" and "secure serving": the store, the listening addresses and the certificates. */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'
import { type Kind, oneOf } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

import { type NamedCertificate, namedCertificates } from './flag-kinds.ts'
import { CIPHER_SUITES, TLS_VERSIONS } from './tls-names.ts'

interface StorageKinds {
  readonly backend: Kind<'' | 'etcd3'>
}

const STORAGE = {
  datastore:
    'string Store of the objects: "sqlite:FILE", "memory" or comma-separated URLs of an etcd cluster. Replaces --etcd-servers.',
  'encryption-key-file':
    'string hyperkube only: file with the key that encrypts Secrets at rest. The server creates it if it is missing. Ignored with --encryption-provider-config.',
  'encryption-provider-config': 'string File with the resources that are encrypted at rest, and their providers.',
  'encryption-provider-config-automatic-reload':
    'bool If true, reload the file of --encryption-provider-config when it changes.',
  'etcd-cafile': 'string PEM file with the certificate authority of the etcd cluster.',
  'etcd-certfile': 'string PEM file with the client certificate for the etcd cluster.',
  'etcd-compaction-interval': 'duration =5m0s Age at which old revisions are compacted. 0 disables compaction.',
  'etcd-keyfile': 'string PEM file with the key of --etcd-certfile.',
  'etcd-prefix': 'string =/registry Prefix of all keys in the store. Only "/registry" is supported.',
  'history-file':
    'string hyperkube only: SQLite file that keeps the changes of all objects, so that paths below /past reach further back than --etcd-compaction-interval. Empty keeps no history.',
  'history-policy-file':
    'string hyperkube only: File with a HistoryPolicy: how long the history is kept, how large it grows, and what it keeps of each resource. Default: 24h, 256Mi, and no values of Secrets.',
  'etcd-servers': 'strings URLs of the etcd cluster (scheme://ip:port), separated by commas.',
  'storage-backend': 'backend Type of the store behind --etcd-servers: "etcd3".',
  'storage-media-type':
    'string =application/vnd.kubernetes.protobuf Media type of stored objects. The server reads JSON and protobuf, and writes JSON unless this flag is set.',
  'default-watch-cache-size': 'int =100 idle: watch caches adjust their size',
  'delete-collection-workers':
    'int =1 Number of workers for each request that deletes a collection. Each deletes up to 16 objects at a time.',
  'enable-garbage-collector': 'bool =true unsupported: every cluster has a garbage collector',
  'etcd-count-metric-poll-period': 'duration =1m0s idle: the server counts objects when metrics are read',
  'etcd-db-metric-poll-interval': 'duration =30s idle: the server asks for the size of the store when metrics are read',
  'etcd-healthcheck-timeout': 'duration =2s idle: the store has its own timeouts',
  'etcd-readycheck-timeout': 'duration =2s idle: the store has its own timeouts',
  'etcd-servers-overrides': 'strings unsupported: all objects are in one store',
  'lease-reuse-duration-seconds': 'int64 =60 Time in seconds during which events share an etcd lease.',
  'watch-cache': 'bool =true unsupported: all reads use the watch cache',
  'watch-cache-sizes': 'strings idle: watch caches adjust their size',
} as const

export interface StorageValues extends RowValues<typeof STORAGE, StorageKinds> {}

export const STORAGE_FLAGS: FlagsOf<StorageValues> & FlagGroup = flagRows(
  STORAGE,
  { backend: oneOf('', 'etcd3') },
  {
    'default-watch-cache-size': {
      deprecated: 'watch caches are sized automatically and this flag will be removed in a future version',
    },
  },
)

interface ServingKinds {
  readonly int32Slice: Kind<readonly string[]>
  readonly namedCertificates: Kind<readonly NamedCertificate[]>
}

const SERVING = {
  'bind-address': 'ip =0.0.0.0 Address to listen on. 0.0.0.0 and :: mean all interfaces and both IP families.',
  'cert-dir':
    'string =/var/run/kubernetes Directory of apiserver.crt and apiserver.key, which the server creates if they are missing. Ignored with --tls-cert-file.',
  'http2-max-streams-per-connection':
    'int Maximum number of concurrent streams of an HTTP/2 connection. 0 means the default of the server.',
  'permit-port-sharing': 'bool If true, other processes may listen on the same port (SO_REUSEPORT).',
  'secure-port': 'int =6443 HTTPS port. 0 picks a free port, which the server logs.',
  'tls-cert-file': 'string PEM file with the certificate of the server, followed by its intermediate certificates.',
  'tls-cipher-suites': 'strings Cipher suites',
  'tls-min-version': 'string Minimum TLS version',
  'tls-private-key-file': 'string PEM file with the key of --tls-cert-file.',
  'tls-sni-cert-key':
    'namedCertificates Another certificate and key, optionally with the host names that they serve: "a.crt,a.key:*.example.com,example.com". May be repeated.',
  'disable-http2-serving': 'bool unsupported: the server always offers HTTP/2; clients may choose HTTP/1.1',
  'permit-address-sharing': 'bool idle: the server always reuses addresses in TIME_WAIT',
  'tls-curve-preferences': 'int32Slice unsupported: OpenSSL negotiates the curves, X25519 and P-256 first',
} as const

export interface ServingValues extends RowValues<typeof SERVING, ServingKinds> {}

export const SERVING_FLAGS: FlagsOf<ServingValues> & FlagGroup = flagRows(
  SERVING,
  { int32Slice: { ...strings, type: 'int32Slice', hint: 'int32Slice', plain: [] }, namedCertificates },
  {
    'tls-cipher-suites': {
      usage: `Cipher suites for TLS 1.2, most preferred first. If empty, a secure default.\nValues: ${[...CIPHER_SUITES.keys()].join(', ')}`,
    },
    'tls-min-version': { usage: `Minimum TLS version: ${[...TLS_VERSIONS.keys()].join(', ')}` },
  },
)

/** The flags of a component other than the API server. */
export function componentServingFlags(component: string, port: number): FlagsOf<ServingValues> & FlagGroup {
  const usage = `Directory of ${component}.crt and .key, which are created if missing; empty keeps them in memory`
  return {
    ...SERVING_FLAGS,
    'cert-dir': { ...SERVING_FLAGS['cert-dir'], initial: '', usage },
    'secure-port': { ...SERVING_FLAGS['secure-port'], initial: port, usage: 'HTTPS port; 0 disables it' },
  }
}
