/** The flag groups "authentication" and "authorization" of components that delegate to the API server. */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'

const AUTHENTICATION = {
  'authentication-kubeconfig':
    'string Kubeconfig of the API server that knows tokens and authorities; none: only --client-ca-file counts',
  'authentication-skip-lookup': 'bool Whether authorities are not looked up in the cluster',
  'authentication-token-webhook-cache-ttl': 'duration =10s How long answers about tokens are kept',
  'authentication-tolerate-lookup-failure': 'bool Whether to start without authorities that cannot be looked up',
  'client-ca-file': 'string PEM file with authorities whose certificates say who a client is',
  'requestheader-allowed-names': 'strings Common names of proxies whose headers are believed; none: any',
  'requestheader-client-ca-file': 'string PEM file with authorities of proxies whose headers are believed',
  'requestheader-extra-headers-prefix': 'strings =x-remote-extra- What headers with more about a user begin with',
  'requestheader-group-headers': 'strings =x-remote-group Headers with the groups of a user',
  'requestheader-uid-headers': 'strings Headers with the uid of a user',
  'requestheader-username-headers': 'strings =x-remote-user Headers with the name of a user',
} as const

const AUTHORIZATION = {
  'authorization-always-allow-paths':
    'strings =/healthz,/readyz,/livez Paths that are for everybody; "*" at the end stands for all below',
  'authorization-kubeconfig':
    'string Kubeconfig of the API server that knows who may what; none: nobody may see the other paths',
  'authorization-webhook-cache-authorized-ttl': 'duration =10s How long a yes is kept',
  'authorization-webhook-cache-unauthorized-ttl': 'duration =10s How long a no is kept',
} as const

export interface DelegatedAuthenticationValues extends RowValues<typeof AUTHENTICATION> {}

export interface DelegatedAuthorizationValues extends RowValues<typeof AUTHORIZATION> {}

export interface DelegationValues extends DelegatedAuthenticationValues, DelegatedAuthorizationValues {}

export const DELEGATED_AUTHENTICATION_FLAGS: FlagsOf<DelegatedAuthenticationValues> & FlagGroup =
  flagRows(AUTHENTICATION)

export const DELEGATED_AUTHORIZATION_FLAGS: FlagsOf<DelegatedAuthorizationValues> & FlagGroup = flagRows(AUTHORIZATION)
