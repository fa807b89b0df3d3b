/** The groups "authentication", "authorization", "admission" and "API enablement": who may do what, and to what. */
import { type FlagGroup, type FlagsOf, unsupported } from '#lib/flags/flag-support.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, oneOf, string } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'

import { claimMap, configurationMap } from './flag-kinds.ts'
import { int64 } from './serving-flags.ts'

type Names = readonly string[]

export interface AuthenticationValues {
  readonly 'anonymous-auth': boolean
  readonly 'api-audiences': Names
  readonly 'authentication-config': string
  readonly 'authentication-token-webhook-cache-ttl': number
  readonly 'authentication-token-webhook-config-file': string
  readonly 'authentication-token-webhook-version': 'v1' | 'v1beta1'
  readonly 'client-ca-file': string
  readonly 'enable-bootstrap-token-auth': boolean
  readonly 'oidc-ca-file': string
  readonly 'oidc-client-id': string
  readonly 'oidc-groups-claim': string
  readonly 'oidc-groups-prefix': string
  readonly 'oidc-issuer-url': string
  readonly 'oidc-required-claim': ReadonlyMap<string, string>
  readonly 'oidc-signing-algs': Names
  readonly 'oidc-username-claim': string
  readonly 'oidc-username-prefix': string
  readonly 'requestheader-allowed-names': Names
  readonly 'requestheader-client-ca-file': string
  readonly 'requestheader-extra-headers-prefix': Names
  readonly 'requestheader-group-headers': Names
  readonly 'requestheader-uid-headers': Names
  readonly 'requestheader-username-headers': Names
  readonly 'service-account-extend-token-expiration': boolean
  readonly 'service-account-issuer': Names
  readonly 'service-account-jwks-uri': string
  readonly 'service-account-key-file': Names
  readonly 'service-account-lookup': boolean
  readonly 'service-account-max-token-expiration': number
  readonly 'token-auth-file': string
}

const reviewVersion = oneOf('v1', 'v1beta1')

export const AUTHENTICATION_FLAGS: FlagsOf<AuthenticationValues> & FlagGroup = {
  'anonymous-auth': flag(bool, true, 'Whether requests without credentials are served, as user system:anonymous'),
  'api-audiences': flag(
    strings,
    [],
    'Whom tokens for this server must name; default: the issuer of ServiceAccount tokens',
  ),
  'authentication-config': flag(
    string,
    '',
    'File with an AuthenticationConfiguration: issuers of tokens, and where one may go without. Followed while it changes; instead of the --oidc-* flags',
  ),
  'authentication-token-webhook-cache-ttl': flag(duration, 120_000, 'How long answers of the token webhook are kept'),
  'authentication-token-webhook-config-file': flag(string, '', 'Kubeconfig of a webhook that knows whose tokens are'),
  'authentication-token-webhook-version': flag(
    reviewVersion,
    'v1beta1',
    'Version of the TokenReview sent to the webhook',
  ),
  'client-ca-file': flag(string, '', 'PEM file with authorities; who shows a certificate of theirs is its common name'),
  'enable-bootstrap-token-auth': flag(bool, false, 'Whether Secrets of type bootstrap.kubernetes.io/token are tokens'),
  'oidc-ca-file': flag(string, '', "PEM file with the authorities of the OpenID issuer; default: the machine's own"),
  'oidc-client-id': flag(string, '', 'Our name at the OpenID issuer; needed with --oidc-issuer-url'),
  'oidc-groups-claim': flag(string, '', 'Claim that holds the groups of a user: a text or a list of texts'),
  'oidc-groups-prefix': flag(string, '', 'What is put in front of groups of OpenID users'),
  'oidc-issuer-url': flag(string, '', 'Address of the OpenID issuer, https only; its tokens are accepted'),
  'oidc-required-claim': flag(claimMap, new Map(), 'A key=value that tokens must have. May be repeated'),
  'oidc-signing-algs': flag(
    strings,
    ['RS256'],
    'Signatures accepted: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512',
  ),
  'oidc-username-claim': flag(string, 'sub', 'Claim that holds the name of the user'),
  'oidc-username-prefix': flag(
    string,
    '',
    'What is put in front of names; "-" for nothing. Default: the issuer, except for email',
  ),
  'requestheader-allowed-names': flag(
    strings,
    [],
    'Common names of proxies that may say who the user is; none: every one of the authority',
  ),
  'requestheader-client-ca-file': flag(string, '', 'PEM file with the authorities of proxies that say who the user is'),
  'requestheader-extra-headers-prefix': flag(
    strings,
    [],
    'What headers begin with that hold more about the user: X-Remote-Extra-',
  ),
  'requestheader-group-headers': flag(strings, [], 'Headers that hold groups of the user: X-Remote-Group'),
  'requestheader-uid-headers': flag(strings, [], 'Headers that hold the uid of the user: X-Remote-Uid'),
  'requestheader-username-headers': flag(strings, [], 'Headers that hold the name of the user: X-Remote-User'),
  'service-account-extend-token-expiration': flag(
    bool,
    true,
    "Whether pods' own tokens last a year, for clients that do not read them again",
  ),
  'service-account-issuer': flag(
    stringArray,
    [],
    'Who issues ServiceAccount tokens. Repeated, the first signs and all are accepted',
  ),
  'service-account-jwks-uri': flag(string, '', 'Address of the key set in the discovery document, if not our own'),
  'service-account-key-file': flag(
    stringArray,
    [],
    'PEM file with keys to verify ServiceAccount tokens. May be repeated; default: the key that signs them',
  ),
  'service-account-lookup': flag(bool, true, 'Whether ServiceAccount tokens die with what they are bound to'),
  'service-account-max-token-expiration': flag(
    duration,
    0,
    'The longest life of a token, an hour at least; 0: no limit',
  ),
  'token-auth-file': flag(string, '', 'CSV file of static tokens: token,user,uid,"group1,group2"'),
}

export interface AuthorizationValues {
  readonly 'authorization-config': string
  readonly 'authorization-mode': Names
  readonly 'authorization-webhook-cache-authorized-ttl': number
  readonly 'authorization-webhook-cache-unauthorized-ttl': number
  readonly 'authorization-webhook-config-file': string
  readonly 'authorization-webhook-version': 'v1' | 'v1beta1'
}

export const AUTHORIZATION_FLAGS: FlagsOf<AuthorizationValues> & FlagGroup = {
  'authorization-config': flag(
    string,
    '',
    'File with an AuthorizationConfiguration: who decides, in this order. Followed while it changes; instead of --authorization-mode and the --authorization-webhook-* flags',
  ),
  'authorization-mode': flag(
    strings,
    [],
    'Who decides, in this order: AlwaysAllow (default), AlwaysDeny, Webhook, RBAC, Node',
  ),
  'authorization-webhook-cache-authorized-ttl': flag(
    duration,
    300_000,
    'How long a yes of the authorization webhook is kept',
  ),
  'authorization-webhook-cache-unauthorized-ttl': flag(
    duration,
    30_000,
    'How long a no of the authorization webhook is kept',
  ),
  'authorization-webhook-config-file': flag(string, '', 'Kubeconfig of the webhook of mode Webhook'),
  'authorization-webhook-version': flag(
    reviewVersion,
    'v1beta1',
    'Version of the SubjectAccessReview sent to the webhook',
  ),

  'authorization-policy-file': unsupported(string, '', 'there is no mode ABAC; use RBAC'),
}

export interface AdmissionValues {
  readonly 'admission-control-config-file': string
  readonly 'default-not-ready-toleration-seconds': number
  readonly 'default-unreachable-toleration-seconds': number
  readonly 'disable-admission-plugins': Names
  readonly 'enable-admission-plugins': Names
}

export const ADMISSION_FLAGS: FlagsOf<AdmissionValues> & FlagGroup = {
  'admission-control-config-file': flag(string, '', 'File with an AdmissionConfiguration: settings of plugins'),
  'default-not-ready-toleration-seconds': flag(
    int64,
    300,
    'How long pods tolerate nodes that are not ready, unless they say',
  ),
  'default-unreachable-toleration-seconds': flag(
    int64,
    300,
    'How long pods tolerate nodes that cannot be reached, unless they say',
  ),
  'disable-admission-plugins': flag(strings, [], 'Admission plugins to switch off that are on by default'),
  'enable-admission-plugins': flag(
    strings,
    [],
    'Admission plugins to switch on besides those that are on by default; order does not matter',
  ),

  'admission-control': unsupported(strings, [], 'use --enable-admission-plugins and --disable-admission-plugins', {
    deprecated:
      'Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.',
  }),
}

export interface EnablementValues {
  readonly 'runtime-config': ReadonlyMap<string, string>
}

export const ENABLEMENT_FLAGS: FlagsOf<EnablementValues> = {
  'runtime-config': flag(
    configurationMap,
    new Map(),
    'Which versions of the API are served, as key=true|false:\nv1, <group>/<version> or <group>/<version>/<resource>\n' +
      'api/all, api/ga, api/beta, api/alpha: all versions, or those of that maturity',
  ),
}
