/** The groups "authentication" and "authorization" of components that ask the API server: the same in all of them. */
import { type FlagGroup, type FlagsOf } from '#lib/flags/flag-support.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

export interface DelegatedAuthenticationValues {
  readonly 'authentication-kubeconfig': string
  readonly 'authentication-skip-lookup': boolean
  readonly 'authentication-token-webhook-cache-ttl': number
  readonly 'authentication-tolerate-lookup-failure': boolean
  readonly 'client-ca-file': string
  readonly 'requestheader-allowed-names': readonly string[]
  readonly 'requestheader-client-ca-file': string
  readonly 'requestheader-extra-headers-prefix': readonly string[]
  readonly 'requestheader-group-headers': readonly string[]
  readonly 'requestheader-uid-headers': readonly string[]
  readonly 'requestheader-username-headers': readonly string[]
}

export interface DelegatedAuthorizationValues {
  readonly 'authorization-always-allow-paths': readonly string[]
  readonly 'authorization-kubeconfig': string
  readonly 'authorization-webhook-cache-authorized-ttl': number
  readonly 'authorization-webhook-cache-unauthorized-ttl': number
}

export interface DelegationValues extends DelegatedAuthenticationValues, DelegatedAuthorizationValues {}

export const DELEGATED_AUTHENTICATION_FLAGS: FlagsOf<DelegatedAuthenticationValues> & FlagGroup = {
  'authentication-kubeconfig': flag(
    string,
    '',
    'Kubeconfig of the API server that knows tokens and authorities; none: only --client-ca-file counts',
  ),
  'authentication-skip-lookup': flag(bool, false, 'Whether authorities are not looked up in the cluster'),
  'authentication-token-webhook-cache-ttl': flag(duration, 10_000, 'How long answers about tokens are kept'),
  'authentication-tolerate-lookup-failure': flag(
    bool,
    false,
    'Whether to start without authorities that cannot be looked up',
  ),
  'client-ca-file': flag(string, '', 'PEM file with authorities whose certificates say who a client is'),
  'requestheader-allowed-names': flag(strings, [], 'Common names of proxies whose headers are believed; none: any'),
  'requestheader-client-ca-file': flag(string, '', 'PEM file with authorities of proxies whose headers are believed'),
  'requestheader-extra-headers-prefix': flag(
    strings,
    ['x-remote-extra-'],
    'What headers with more about a user begin with',
  ),
  'requestheader-group-headers': flag(strings, ['x-remote-group'], 'Headers with the groups of a user'),
  'requestheader-uid-headers': flag(strings, [], 'Headers with the uid of a user'),
  'requestheader-username-headers': flag(strings, ['x-remote-user'], 'Headers with the name of a user'),
}

export const DELEGATED_AUTHORIZATION_FLAGS: FlagsOf<DelegatedAuthorizationValues> & FlagGroup = {
  'authorization-always-allow-paths': flag(
    strings,
    ['/healthz', '/readyz', '/livez'],
    'Paths that are for everybody; "*" at the end stands for all below',
  ),
  'authorization-kubeconfig': flag(
    string,
    '',
    'Kubeconfig of the API server that knows who may what; none: nobody may see the other paths',
  ),
  'authorization-webhook-cache-authorized-ttl': flag(duration, 10_000, 'How long a yes is kept'),
  'authorization-webhook-cache-unauthorized-ttl': flag(duration, 10_000, 'How long a no is kept'),
}
