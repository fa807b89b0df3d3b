/** The flag groups "authentication" and "authorization" of components that delegate to the API server. */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'

const AUTHENTICATION = {
  'authentication-kubeconfig':
    'string Kubeconfig of the API server that reviews tokens and publishes the certificate authorities of clients. If empty, only --client-ca-file applies.',
  'authentication-skip-lookup': 'bool If true, do not read the certificate authorities of clients from the cluster.',
  'authentication-token-webhook-cache-ttl': 'duration =10s Time to cache the results of token reviews.',
  'authentication-tolerate-lookup-failure':
    'bool If true, start even if the certificate authorities cannot be read from the cluster.',
  'client-ca-file':
    'string PEM file with certificate authorities. A client with a certificate of one of them is the user named in its common name.',
  'requestheader-allowed-names':
    'strings Common names of proxies whose identity headers are trusted. If empty, every certificate of --requestheader-client-ca-file is accepted.',
  'requestheader-client-ca-file':
    'string PEM file with the certificate authorities of proxies whose identity headers are trusted.',
  'requestheader-extra-headers-prefix':
    'strings =x-remote-extra- Prefixes of the headers with extra attributes of the user.',
  'requestheader-group-headers': 'strings =x-remote-group Headers with the groups of the user.',
  'requestheader-uid-headers': 'strings Headers with the UID of the user.',
  'requestheader-username-headers': 'strings =x-remote-user Headers with the name of the user.',
} as const

const AUTHORIZATION = {
  'authorization-always-allow-paths':
    'strings =/healthz,/readyz,/livez Paths that need no authorization. A "*" at the end matches all paths below.',
  'authorization-kubeconfig':
    'string Kubeconfig of the API server that authorizes requests. If empty, only the paths of --authorization-always-allow-paths are served.',
  'authorization-webhook-cache-authorized-ttl': 'duration =10s Time to cache allowed results of authorization.',
  'authorization-webhook-cache-unauthorized-ttl': 'duration =10s Time to cache denied results of authorization.',
} as const

export interface DelegatedAuthenticationValues extends RowValues<typeof AUTHENTICATION> {}

export interface DelegatedAuthorizationValues extends RowValues<typeof AUTHORIZATION> {}

export interface DelegationValues extends DelegatedAuthenticationValues, DelegatedAuthorizationValues {}

export const DELEGATED_AUTHENTICATION_FLAGS: FlagsOf<DelegatedAuthenticationValues> & FlagGroup =
  flagRows(AUTHENTICATION)

export const DELEGATED_AUTHORIZATION_FLAGS: FlagsOf<DelegatedAuthorizationValues> & FlagGroup = flagRows(AUTHORIZATION)
