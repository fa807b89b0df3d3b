/** The groups "etcd" and "secure serving": where the state is, and where and with what certificates the server listens. */
import { type FlagGroup, type FlagsOf, idle, unsupported } from '#lib/flags/flag-support.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, type Kind, oneOf, string } from '#lib/flags/kinds.ts'
import { ip, strings } from '#lib/flags/list-kinds.ts'

import { type NamedCertificate, namedCertificates } from './flag-kinds.ts'
import { CIPHER_SUITES, TLS_VERSIONS } from './tls-names.ts'

export interface StorageValues {
  readonly datastore: string
  readonly 'delete-collection-workers': number
  readonly 'encryption-key-file': string
  readonly 'encryption-provider-config': string
  readonly 'encryption-provider-config-automatic-reload': boolean
  readonly 'etcd-cafile': string
  readonly 'etcd-certfile': string
  readonly 'etcd-compaction-interval': number
  readonly 'etcd-keyfile': string
  readonly 'etcd-prefix': string
  readonly 'etcd-servers': readonly string[]
  readonly 'lease-reuse-duration-seconds': number
  readonly 'storage-backend': '' | 'etcd3'
  readonly 'storage-media-type': string
}

/** int64 of pflag: another name for the same. */
export const int64: Kind<number> = { ...int, type: 'int64' }

export const STORAGE_FLAGS: FlagsOf<StorageValues> & FlagGroup = {
  datastore: flag(
    string,
    '',
    'Where objects are stored: "sqlite:FILE", "memory", or the URLs of an etcd cluster, separated by commas; instead of --etcd-servers',
  ),
  'encryption-key-file': flag(
    string,
    '',
    'hyperkube only: file with the key that Secrets are encrypted with at rest, made when it is not there, for those who have no --encryption-provider-config',
  ),
  'encryption-provider-config': flag(string, '', 'File that says which resources are encrypted at rest, and with what'),
  'encryption-provider-config-automatic-reload': flag(
    bool,
    false,
    'Whether the file of --encryption-provider-config is read again when it changes',
  ),
  'etcd-cafile': flag(string, '', 'PEM file with the authority of the etcd cluster'),
  'etcd-certfile': flag(string, '', 'PEM file with our certificate for the etcd cluster'),
  'etcd-compaction-interval': flag(
    duration,
    300_000,
    'How much history is kept; older revisions are compacted. 0 leaves compaction to others',
  ),
  'etcd-keyfile': flag(string, '', 'PEM file with the key of --etcd-certfile'),
  'etcd-prefix': flag(string, '/registry', 'What keys begin with in the store; only "/registry" is supported'),
  'etcd-servers': flag(strings, [], 'URLs of the etcd cluster (scheme://ip:port), separated by commas'),
  'storage-backend': flag(oneOf('', 'etcd3'), '', 'Kind of the store behind --etcd-servers: "etcd3"'),
  'storage-media-type': flag(
    string,
    'application/vnd.kubernetes.protobuf',
    'Form of stored objects, where they have it. Both are read; unless this is given, JSON is written',
  ),

  'default-watch-cache-size': idle(int, 100, 'watch caches size themselves', {
    deprecated: 'watch caches are sized automatically and this flag will be removed in a future version',
  }),
  'delete-collection-workers': flag(int, 1, 'Workers for each deletion of a collection; each has 16 objects under way'),
  'enable-garbage-collector': unsupported(bool, true, 'the garbage collector is part of every cluster'),
  'etcd-count-metric-poll-period': idle(duration, 60_000, 'objects are counted when metrics are read'),
  'etcd-db-metric-poll-interval': idle(duration, 30_000, 'the size of the store is asked for when metrics are read'),
  'etcd-healthcheck-timeout': idle(duration, 2_000, 'the store has time limits of its own'),
  'etcd-readycheck-timeout': idle(duration, 2_000, 'the store has time limits of its own'),
  'etcd-servers-overrides': unsupported(strings, [], 'all objects are in one store'),
  'lease-reuse-duration-seconds': flag(int64, 60, 'For how long events may share a lease'),
  'watch-cache': unsupported(bool, true, 'everything is read through the watch cache'),
  'watch-cache-sizes': idle(strings, [], 'watch caches size themselves'),
}

export interface ServingValues {
  readonly 'bind-address': string
  readonly 'cert-dir': string
  readonly 'http2-max-streams-per-connection': number
  readonly 'permit-port-sharing': boolean
  readonly 'secure-port': number
  readonly 'tls-cert-file': string
  readonly 'tls-cipher-suites': readonly string[]
  readonly 'tls-min-version': string
  readonly 'tls-private-key-file': string
  readonly 'tls-sni-cert-key': readonly NamedCertificate[]
}

const int32Slice: Kind<readonly string[]> = { ...strings, type: 'int32Slice', hint: 'int32Slice', plain: [] }

export const SERVING_FLAGS: FlagsOf<ServingValues> & FlagGroup = {
  'bind-address': flag(
    ip,
    '0.0.0.0',
    'Address to listen on. Unspecified (0.0.0.0 or ::): all interfaces and families of addresses',
  ),
  'cert-dir': flag(
    string,
    '/var/run/kubernetes',
    'Directory of apiserver.crt and apiserver.key, made when they are not there; not used with --tls-cert-file',
  ),
  'http2-max-streams-per-connection': flag(
    int,
    0,
    'Requests a client may have running on one HTTP/2 connection. 0: our default',
  ),
  'permit-port-sharing': flag(bool, false, 'Let other processes listen on the same port (SO_REUSEPORT)'),
  'secure-port': flag(int, 6443, 'Port for HTTPS; 0 picks a free one, which is told in the log'),
  'tls-cert-file': flag(string, '', 'PEM file with the certificate to show, and those between it and its root'),
  'tls-cipher-suites': flag(
    strings,
    [],
    `Cipher suites offered, best first, for TLS 1.2; none: a safe choice.\nValues: ${[...CIPHER_SUITES.keys()].join(', ')}`,
  ),
  'tls-min-version': flag(string, '', `Lowest version of TLS: ${[...TLS_VERSIONS.keys()].join(', ')}`),
  'tls-private-key-file': flag(string, '', 'PEM file with the key of --tls-cert-file'),
  'tls-sni-cert-key': flag(
    namedCertificates,
    [],
    'Another certificate and key, with the names they are for behind a colon: "a.crt,a.key:*.example.com,example.com". May be repeated',
  ),

  'disable-http2-serving': unsupported(bool, false, 'HTTP/2 is always offered; clients may choose HTTP/1.1'),
  'permit-address-sharing': idle(bool, false, 'addresses in TIME_WAIT are always taken over'),
  'tls-curve-preferences': unsupported(int32Slice, [], 'curves are negotiated by OpenSSL, X25519 and P-256 first'),
}
