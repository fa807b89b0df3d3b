/** The flag groups "authentication", "authorization", "admission" and "API enablement". */
import { claimMap, configurationMap } from '#component/flags/flag-kinds.ts'
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'
import { type Kind, oneOf } from '#lib/flags/kinds.ts'

interface AccessKinds {
  readonly claimMap: Kind<ReadonlyMap<string, string>>
  readonly configurationMap: Kind<ReadonlyMap<string, string>>
  readonly reviewVersion: Kind<'v1' | 'v1beta1'>
}

const KINDS: AccessKinds = { claimMap, configurationMap, reviewVersion: oneOf('v1', 'v1beta1') }

const AUTHENTICATION = {
  'anonymous-auth': 'bool =true Whether requests without credentials are served, as user system:anonymous',
  'api-audiences': 'strings Whom tokens for this server must name; default: the issuer of ServiceAccount tokens',
  'authentication-config':
    'string File with an AuthenticationConfiguration: issuers of tokens, and where one may go without. Followed while it changes; instead of the --oidc-* flags',
  'authentication-token-webhook-cache-ttl': 'duration =2m0s How long answers of the token webhook are kept',
  'authentication-token-webhook-config-file': 'string Kubeconfig of a webhook that knows whose tokens are',
  'authentication-token-webhook-version': 'reviewVersion =v1beta1 Version of the TokenReview sent to the webhook',
  'client-ca-file': 'string PEM file with authorities; who shows a certificate of theirs is its common name',
  'enable-bootstrap-token-auth': 'bool Whether Secrets of type bootstrap.kubernetes.io/token are tokens',
  'oidc-ca-file': "string PEM file with the authorities of the OpenID issuer; default: the machine's own",
  'oidc-client-id': 'string Our name at the OpenID issuer; needed with --oidc-issuer-url',
  'oidc-groups-claim': 'string Claim that holds the groups of a user: a text or a list of texts',
  'oidc-groups-prefix': 'string What is put in front of groups of OpenID users',
  'oidc-issuer-url': 'string Address of the OpenID issuer, https only; its tokens are accepted',
  'oidc-required-claim': 'claimMap A key=value that tokens must have. May be repeated',
  'oidc-signing-algs':
    'strings =RS256 Signatures accepted: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512',
  'oidc-username-claim': 'string =sub Claim that holds the name of the user',
  'oidc-username-prefix':
    'string What is put in front of names; "-" for nothing. Default: the issuer, except for email',
  'requestheader-allowed-names':
    'strings Common names of proxies that may say who the user is; none: every one of the authority',
  'requestheader-client-ca-file': 'string PEM file with the authorities of proxies that say who the user is',
  'requestheader-extra-headers-prefix':
    'strings What headers begin with that hold more about the user: X-Remote-Extra-',
  'requestheader-group-headers': 'strings Headers that hold groups of the user: X-Remote-Group',
  'requestheader-uid-headers': 'strings Headers that hold the uid of the user: X-Remote-Uid',
  'requestheader-username-headers': 'strings Headers that hold the name of the user: X-Remote-User',
  'service-account-extend-token-expiration':
    "bool =true Whether pods' own tokens last a year, for clients that do not read them again",
  'service-account-issuer':
    'stringArray Who issues ServiceAccount tokens. Repeated, the first signs and all are accepted',
  'service-account-jwks-uri': 'string Address of the key set in the discovery document, if not our own',
  'service-account-key-file':
    'stringArray PEM file with keys to verify ServiceAccount tokens. May be repeated; default: the key that signs them',
  'service-account-lookup': 'bool =true Whether ServiceAccount tokens die with what they are bound to',
  'service-account-max-token-expiration': 'duration The longest life of a token, an hour at least; 0: no limit',
  'token-auth-file': 'string CSV file of static tokens: token,user,uid,"group1,group2"',
} as const

export interface AuthenticationValues extends RowValues<typeof AUTHENTICATION, AccessKinds> {}

export const AUTHENTICATION_FLAGS: FlagsOf<AuthenticationValues> & FlagGroup = flagRows(AUTHENTICATION, KINDS)

const AUTHORIZATION = {
  'authorization-config':
    'string File with an AuthorizationConfiguration: who decides, in this order. Followed while it changes; instead of --authorization-mode and the --authorization-webhook-* flags',
  'authorization-mode': 'strings Who decides, in this order: AlwaysAllow (default), AlwaysDeny, Webhook, RBAC, Node',
  'authorization-webhook-cache-authorized-ttl': 'duration =5m0s How long a yes of the authorization webhook is kept',
  'authorization-webhook-cache-unauthorized-ttl': 'duration =30s How long a no of the authorization webhook is kept',
  'authorization-webhook-config-file': 'string Kubeconfig of the webhook of mode Webhook',
  'authorization-webhook-version': 'reviewVersion =v1beta1 Version of the SubjectAccessReview sent to the webhook',
  'authorization-policy-file': 'string unsupported: there is no mode ABAC; use RBAC',
} as const

export interface AuthorizationValues extends RowValues<typeof AUTHORIZATION, AccessKinds> {}

export const AUTHORIZATION_FLAGS: FlagsOf<AuthorizationValues> & FlagGroup = flagRows(AUTHORIZATION, KINDS)

const ADMISSION = {
  'admission-control-config-file': 'string File with an AdmissionConfiguration: settings of plugins',
  'default-not-ready-toleration-seconds': 'int64 =300 How long pods tolerate nodes that are not ready, unless they say',
  'default-unreachable-toleration-seconds':
    'int64 =300 How long pods tolerate nodes that cannot be reached, unless they say',
  'disable-admission-plugins': 'strings Admission plugins to switch off that are on by default',
  'enable-admission-plugins':
    'strings Admission plugins to switch on besides those that are on by default; order does not matter',
  'admission-control': 'strings unsupported: use --enable-admission-plugins and --disable-admission-plugins',
} as const

export interface AdmissionValues extends RowValues<typeof ADMISSION> {}

export const ADMISSION_FLAGS: FlagsOf<AdmissionValues> & FlagGroup = flagRows(ADMISSION, KINDS, {
  'admission-control': {
    deprecated:
      'Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.',
  },
})

const ENABLEMENT = {
  'runtime-config': `configurationMap Which versions of the API are served, as key=true|false:
v1, <group>/<version> or <group>/<version>/<resource>
api/all, api/ga, api/beta, api/alpha: all versions, or those of that maturity`,
} as const

export interface EnablementValues extends RowValues<typeof ENABLEMENT, AccessKinds> {}

export const ENABLEMENT_FLAGS: FlagsOf<EnablementValues> = flagRows(ENABLEMENT, KINDS)
