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
  'anonymous-auth': 'bool =true If true, serve requests without credentials as the user system:anonymous.',
  'api-audiences': 'strings Audiences of which tokens must contain one. Default: the issuer of ServiceAccount tokens.',
  'authentication-config':
    'string File with an AuthenticationConfiguration: token issuers and anonymous paths. The server reloads it when it changes. Replaces the --oidc-* flags.',
  'authentication-token-webhook-cache-ttl': 'duration =2m0s Time to cache the results of the token webhook.',
  'authentication-token-webhook-config-file': 'string Kubeconfig of a webhook that authenticates tokens.',
  'authentication-token-webhook-version':
    'reviewVersion =v1beta1 Version of the TokenReview that the server sends to the webhook.',
  'client-ca-file':
    'string PEM file with certificate authorities. A client with a certificate of one of them is the user named in its common name.',
  'enable-bootstrap-token-auth': 'bool If true, accept the tokens of Secrets of type bootstrap.kubernetes.io/token.',
  'oidc-ca-file':
    'string PEM file with the certificate authorities of the OpenID issuer. Default: the authorities of the machine.',
  'oidc-client-id': 'string Client ID of this server at the OpenID issuer. Required with --oidc-issuer-url.',
  'oidc-groups-claim': 'string Claim with the groups of the user: a string or a list of strings.',
  'oidc-groups-prefix': 'string Prefix for the groups of OpenID users.',
  'oidc-issuer-url': 'string HTTPS URL of the OpenID issuer whose tokens are accepted.',
  'oidc-required-claim': 'claimMap Required claim of tokens, as key=value. May be repeated.',
  'oidc-signing-algs':
    'strings =RS256 Accepted signature algorithms: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.',
  'oidc-username-claim': 'string =sub Claim with the name of the user.',
  'oidc-username-prefix':
    'string Prefix for user names. "-" means none. Default: the issuer URL, except for the claim email.',
  'requestheader-allowed-names':
    'strings Common names of proxies whose identity headers are trusted. If empty, every certificate of --requestheader-client-ca-file is accepted.',
  'requestheader-client-ca-file':
    'string PEM file with the certificate authorities of proxies whose identity headers are trusted.',
  'requestheader-extra-headers-prefix':
    'strings Prefixes of the headers with extra attributes of the user, such as X-Remote-Extra-.',
  'requestheader-group-headers': 'strings Headers with the groups of the user, such as X-Remote-Group.',
  'requestheader-uid-headers': 'strings Headers with the UID of the user, such as X-Remote-Uid.',
  'requestheader-username-headers': 'strings Headers with the name of the user, such as X-Remote-User.',
  'service-account-extend-token-expiration':
    'bool =true If true, the tokens that the API server projects into pods are valid for a year, for clients that do not reload them.',
  'service-account-issuer':
    'stringArray Issuer of ServiceAccount tokens. If repeated, the first issues tokens and all are accepted.',
  'service-account-jwks-uri': 'string URL of the key set in the discovery document. Default: the URL of this server.',
  'service-account-key-file':
    'stringArray PEM file with keys that verify ServiceAccount tokens. May be repeated. Default: the signing key.',
  'service-account-lookup': 'bool =true If true, reject ServiceAccount tokens whose bound objects were deleted.',
  'service-account-max-token-expiration': 'duration Maximum lifetime of a token, at least one hour. 0 means no limit.',
  'token-auth-file': 'string CSV file with static tokens: token,user,uid,"group1,group2"',
} as const

export interface AuthenticationValues extends RowValues<typeof AUTHENTICATION, AccessKinds> {}

export const AUTHENTICATION_FLAGS: FlagsOf<AuthenticationValues> & FlagGroup = flagRows(AUTHENTICATION, KINDS)

const AUTHORIZATION = {
  'authorization-config':
    'string File with an AuthorizationConfiguration: an ordered list of authorizers. The server reloads it when it changes. Replaces --authorization-mode and the --authorization-webhook-* flags.',
  'authorization-mode': 'strings Ordered list of authorizers: AlwaysAllow (default), AlwaysDeny, Webhook, RBAC, Node.',
  'authorization-webhook-cache-authorized-ttl':
    'duration =5m0s Time to cache allowed results of the authorization webhook.',
  'authorization-webhook-cache-unauthorized-ttl':
    'duration =30s Time to cache denied results of the authorization webhook.',
  'authorization-webhook-config-file': 'string Kubeconfig of the webhook for the mode Webhook.',
  'authorization-webhook-version':
    'reviewVersion =v1beta1 Version of the SubjectAccessReview that the server sends to the webhook.',
  'authorization-policy-file': 'string unsupported: the mode ABAC does not exist; use RBAC',
} as const

export interface AuthorizationValues extends RowValues<typeof AUTHORIZATION, AccessKinds> {}

export const AUTHORIZATION_FLAGS: FlagsOf<AuthorizationValues> & FlagGroup = flagRows(AUTHORIZATION, KINDS)

const ADMISSION = {
  'admission-control-config-file': 'string File with an AdmissionConfiguration: the settings of admission plugins.',
  'default-not-ready-toleration-seconds':
    'int64 =300 Time in seconds that pods tolerate nodes that are not ready. Applies to pods that set no such toleration.',
  'default-unreachable-toleration-seconds':
    'int64 =300 Time in seconds that pods tolerate unreachable nodes. Applies to pods that set no such toleration.',
  'disable-admission-plugins': 'strings Admission plugins to disable although they are on by default.',
  'enable-admission-plugins':
    'strings Admission plugins to enable in addition to the default ones. The order has no effect.',
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
  'runtime-config': `configurationMap API versions to enable or disable, as key=true|false:
v1, <group>/<version> or <group>/<version>/<resource>
api/all, api/ga, api/beta, api/alpha: all versions, or those of that maturity`,
} as const

export interface EnablementValues extends RowValues<typeof ENABLEMENT, AccessKinds> {}

export const ENABLEMENT_FLAGS: FlagsOf<EnablementValues> = flagRows(ENABLEMENT, KINDS)
