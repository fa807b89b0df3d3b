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
    'string Where objects are stored: "sqlite:FILE", "memory", or the URLs of an etcd cluster, separated by commas; instead of --etcd-servers',
  'encryption-key-file':
    'string hyperkube only: file with the key that Secrets are encrypted with at rest, made when it is not there, for those who have no --encryption-provider-config',
  'encryption-provider-config': 'string File that says which resources are encrypted at rest, and with what',
  'encryption-provider-config-automatic-reload':
    'bool Whether the file of --encryption-provider-config is read again when it changes',
  'etcd-cafile': 'string PEM file with the authority of the etcd cluster',
  'etcd-certfile': 'string PEM file with our certificate for the etcd cluster',
  'etcd-compaction-interval':
    'duration =5m0s How much history is kept; older revisions are compacted. 0 leaves compaction to others',
  'etcd-keyfile': 'string PEM file with the key of --etcd-certfile',
  'etcd-prefix': 'string =/registry What keys begin with in the store; only "/registry" is supported',
  'etcd-servers': 'strings URLs of the etcd cluster (scheme://ip:port), separated by commas',
  'storage-backend': 'backend Kind of the store behind --etcd-servers: "etcd3"',
  'storage-media-type':
    'string =application/vnd.kubernetes.protobuf Form of stored objects, where they have it. Both are read; unless this is given, JSON is written',
  'default-watch-cache-size': 'int =100 idle: watch caches size themselves',
  'delete-collection-workers': 'int =1 Workers for each deletion of a collection; each has 16 objects under way',
  'enable-garbage-collector': 'bool =true unsupported: the garbage collector is part of every cluster',
  'etcd-count-metric-poll-period': 'duration =1m0s idle: objects are counted when metrics are read',
  'etcd-db-metric-poll-interval': 'duration =30s idle: the size of the store is asked for when metrics are read',
  'etcd-healthcheck-timeout': 'duration =2s idle: the store has time limits of its own',
  'etcd-readycheck-timeout': 'duration =2s idle: the store has time limits of its own',
  'etcd-servers-overrides': 'strings unsupported: all objects are in one store',
  'lease-reuse-duration-seconds': 'int64 =60 For how long events may share a lease',
  'watch-cache': 'bool =true unsupported: everything is read through the watch cache',
  'watch-cache-sizes': 'strings idle: watch caches size themselves',
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
  'bind-address':
    'ip =0.0.0.0 Address to listen on. Unspecified (0.0.0.0 or ::): all interfaces and families of addresses',
  'cert-dir':
    'string =/var/run/kubernetes Directory of apiserver.crt and apiserver.key, made when they are not there; not used with --tls-cert-file',
  'http2-max-streams-per-connection': 'int Requests a client may have running on one HTTP/2 connection. 0: our default',
  'permit-port-sharing': 'bool Let other processes listen on the same port (SO_REUSEPORT)',
  'secure-port': 'int =6443 Port for HTTPS; 0 picks a free one, which is told in the log',
  'tls-cert-file': 'string PEM file with the certificate to show, and those between it and its root',
  'tls-cipher-suites': 'strings Cipher suites',
  'tls-min-version': 'string Lowest version of TLS',
  'tls-private-key-file': 'string PEM file with the key of --tls-cert-file',
  'tls-sni-cert-key':
    'namedCertificates Another certificate and key, with the names they are for behind a colon: "a.crt,a.key:*.example.com,example.com". May be repeated',
  'disable-http2-serving': 'bool unsupported: HTTP/2 is always offered; clients may choose HTTP/1.1',
  'permit-address-sharing': 'bool idle: addresses in TIME_WAIT are always taken over',
  'tls-curve-preferences': 'int32Slice unsupported: curves are negotiated by OpenSSL, X25519 and P-256 first',
} as const

export interface ServingValues extends RowValues<typeof SERVING, ServingKinds> {}

export const SERVING_FLAGS: FlagsOf<ServingValues> & FlagGroup = flagRows(
  SERVING,
  { int32Slice: { ...strings, type: 'int32Slice', hint: 'int32Slice', plain: [] }, namedCertificates },
  {
    'tls-cipher-suites': {
      usage: `Cipher suites offered, best first, for TLS 1.2; none: a safe choice.\nValues: ${[...CIPHER_SUITES.keys()].join(', ')}`,
    },
    'tls-min-version': { usage: `Lowest version of TLS: ${[...TLS_VERSIONS.keys()].join(', ')}` },
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
