/**
 * `--authentication-config`: an AuthenticationConfiguration, whose tokens are accepted and how they name their users, and
 * where one may go without any. Read again when it changes; what cannot be used then changes nothing.
 */
import type { JwtIssuer } from '#apiserver/authenticators/index.ts'
import type { ClaimExpressions, ExpressionRule } from '#apiserver/credentials/claim-expressions.ts'
import { createJsonFetcher } from '#apiserver/credentials/provider-keys.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText } from '#lib/go-text.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { defineConfig, flag, listOf, optional, readConfig, struct, text, texts } from '#meta/config-kind.ts'
import {
  aggregateText,
  duplicate,
  type FieldError,
  index,
  invalid,
  required,
  tooMany,
  verbatim,
} from '#meta/validation/field-error.ts'
import { validateDomainPrefixedPath } from '#meta/validation/rules.ts'
import { compileClaimMapping, compileClaimRule, compileUserRule } from '#model/expressions/claims.ts'
import { type CompiledExpression, expressionErrors, fit } from '#model/expressions/compile.ts'

const PREFIXED = struct('v1.PrefixedClaimOrExpression', { claim: text, prefix: optional(text), expression: text })

const JWT = struct('v1.JWTAuthenticator', {
  issuer: struct('v1.Issuer', {
    url: text,
    discoveryURL: optional(text),
    certificateAuthority: text,
    audiences: texts,
    audienceMatchPolicy: text,
    egressSelectorType: text,
  }),
  claimValidationRules: listOf(
    struct('v1.ClaimValidationRule', { claim: text, requiredValue: text, expression: text, message: text }),
  ),
  claimMappings: struct('v1.ClaimMappings', {
    username: PREFIXED,
    groups: PREFIXED,
    uid: struct('v1.ClaimOrExpression', { claim: text, expression: text }),
    extra: listOf(struct('v1.ExtraMapping', { key: text, valueExpression: text })),
  }),
  userValidationRules: listOf(struct('v1.UserValidationRule', { expression: text, message: text })),
})

const AUTHENTICATION = defineConfig(
  'AuthenticationConfiguration',
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
  'v1.AuthenticationConfiguration',
  {
    jwt: listOf(JWT),
    anonymous: optional(
      struct('v1.AnonymousAuthConfig', {
        enabled: flag,
        conditions: listOf(struct('v1.AnonymousAuthCondition', { path: text })),
      }),
    ),
  },
)

interface Mapping {
  readonly claim?: string
  readonly prefix?: string
  readonly expression?: string
}

interface IssuerSettings {
  readonly url?: string
  readonly discoveryURL?: string
  readonly certificateAuthority?: string
  readonly audiences?: readonly string[]
  readonly audienceMatchPolicy?: string
  readonly egressSelectorType?: string
}

interface ClaimRule {
  readonly claim?: string
  readonly requiredValue?: string
  readonly expression?: string
  readonly message?: string
}

interface Mappings {
  readonly username?: Mapping
  readonly groups?: Mapping
  readonly uid?: Mapping
  readonly extra?: readonly { readonly key?: string; readonly valueExpression?: string }[]
}

interface JwtSettings {
  readonly issuer?: IssuerSettings
  readonly claimValidationRules?: readonly ClaimRule[]
  readonly claimMappings?: Mappings
  readonly userValidationRules?: readonly { readonly expression?: string; readonly message?: string }[]
}

export interface AuthenticationSettings {
  readonly jwt: readonly JwtSettings[]
  /** Absent: as `--anonymous-auth` says. */
  readonly anonymous?: { readonly enabled: boolean; readonly paths: readonly string[] }
}

/** Throws upstream's texts. Issuers of ServiceAccount tokens are no others'. */
export function parseAuthenticationConfig(
  source: string,
  disallowedIssuers: readonly string[],
): AuthenticationSettings {
  const { value } = readConfig(source, [AUTHENTICATION], {
    mistaken: (kind) => `expected AuthenticationConfiguration, got *apiserver.${kind}`,
  })
  const { jwt = [], anonymous } = value as {
    readonly jwt?: readonly JwtSettings[]
    readonly anonymous?: { readonly enabled?: boolean; readonly conditions?: readonly { readonly path?: string }[] }
  }
  const { enabled = false, conditions = [] } = anonymous ?? {}
  const paths = conditions.map(({ path = '' }) => path)
  const errors = [...issuersErrors(jwt, disallowedIssuers)]
  if (anonymous !== undefined && !enabled && paths.length > 0) {
    const shown = verbatim(JSON.stringify(paths.map((path) => ({ Path: path }))))
    errors.push(invalid('anonymous.conditions', shown, 'enabled should be set to true when conditions are defined'))
  }
  if (errors.length > 0)
    throw new InvalidAuthentication(`invalid authentication configuration: ${aggregateText(errors)}`)
  return { jwt, ...(anonymous !== undefined && { anonymous: { enabled, paths } }) }
}

/** Read, and refused for what it says. */
export class InvalidAuthentication extends Error {
  override readonly name = 'InvalidAuthentication'
}

const MAX_ISSUERS = 64

function issuersErrors(jwt: readonly JwtSettings[], disallowed: readonly string[]): FieldError[] {
  if (jwt.length > MAX_ISSUERS) return [tooMany('jwt', jwt.length, MAX_ISSUERS)]
  return jwt.flatMap((one, at) => {
    const path = index('jwt', at)
    const earlier = jwt.slice(0, at)
    const { url = '', discoveryURL = '' } = one.issuer ?? {}
    const isRepeated = earlier.some(({ issuer }) => (issuer?.url ?? '') === url)
    const isFoundTwice = discoveryURL !== '' && earlier.some(({ issuer }) => issuer?.discoveryURL === discoveryURL)
    return [
      ...issuerErrors(`${path}.issuer`, one.issuer ?? {}, disallowed),
      ...claimRuleErrors(`${path}.claimValidationRules`, one.claimValidationRules ?? []),
      ...mappingErrors(`${path}.claimMappings`, one.claimMappings ?? {}),
      ...emailErrors(`${path}.claimMappings.username.expression`, one),
      ...userRuleErrors(`${path}.userValidationRules`, one.userValidationRules ?? []),
      ...(isRepeated ? [duplicate(`${path}.issuer.url`, url)] : []),
      ...(isFoundTwice ? [duplicate(`${path}.issuer.discoveryURL`, discoveryURL)] : []),
    ]
  })
}

function issuerErrors(path: string, issuer: IssuerSettings, disallowed: readonly string[]): FieldError[] {
  const { url = '', discoveryURL = '', certificateAuthority = '', egressSelectorType = '' } = issuer
  const withoutSlash = (address: string): string => address.replace(/\/+$/, '')
  const isSame = url !== '' && discoveryURL !== '' && withoutSlash(url) === withoutSlash(discoveryURL)
  const field = `${path}.discoveryURL`
  return [
    ...(url === '' ? [required(`${path}.url`)] : urlErrors(`${path}.url`, url, disallowed)),
    ...(isSame ? [invalid(field, discoveryURL, 'discoveryURL must be different from URL')] : []),
    ...(discoveryURL === '' ? [] : urlErrors(field, discoveryURL, [])),
    ...audienceErrors(path, issuer),
    ...authorityErrors(`${path}.certificateAuthority`, certificateAuthority),
    ...egressErrors(`${path}.egressSelectorType`, egressSelectorType),
  ]
}

function urlErrors(field: string, url: string, disallowed: readonly string[]): FieldError[] {
  const overlap = `URL must not overlap with disallowed issuers: [${disallowed.toSorted(compareText).join(' ')}]`
  const errors = disallowed.includes(url) ? [invalid(field, url, overlap)] : []
  const complain = (isWrong: boolean, what: string): void => {
    if (isWrong) errors.push(invalid(field, url, what))
  }
  complain(!/^https:/i.test(url), 'URL scheme must be https')
  complain(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*@/i.test(url), 'URL must not contain a username or password')
  complain(/^[^#]*\?[^#]/.test(url), 'URL must not contain a query')
  complain(/#./.test(url), 'URL must not contain a fragment')
  return errors
}

function audienceErrors(
  path: string,
  { audiences = [], audienceMatchPolicy: policy = '' }: IssuerSettings,
): FieldError[] {
  const field = `${path}.audiences`
  if (audiences.length === 0) return [required(field, `at least one ${field} is required`)]
  const errors = audiences.flatMap((audience, at) => [
    ...(audience === '' ? [required(index(field, at))] : []),
    ...(audiences.indexOf(audience) < at ? [duplicate(index(field, at), audience)] : []),
  ])
  const many = 'audienceMatchPolicy must be MatchAny for multiple audiences'
  const one = 'audienceMatchPolicy must be empty or MatchAny for single audience'
  const isWrong = policy !== 'MatchAny' && (audiences.length > 1 || policy !== '')
  if (isWrong) errors.push(invalid(`${path}.audienceMatchPolicy`, policy, audiences.length > 1 ? many : one))
  return errors
}

function authorityErrors(field: string, pem: string): FieldError[] {
  if (pem === '') return []
  const none = invalid(field, '<omitted>', 'data does not contain any valid RSA or ECDSA certificates')
  try {
    return parseBundle(pem).length > 0 ? [] : [none]
  } catch {
    return [none]
  }
}

function egressErrors(field: string, type: string): FieldError[] {
  if (type === '') return []
  if (type !== 'controlplane' && type !== 'cluster') {
    return [invalid(field, type, 'egress selector must be either controlplane or cluster')]
  }
  return [invalid(field, type, 'egress selectors are not supported by this server: connections are made directly')]
}

function claimRuleErrors(path: string, rules: readonly ClaimRule[]): FieldError[] {
  return rules.flatMap((rule, at) => {
    const field = index(path, at)
    const { claim = '', requiredValue = '', expression = '', message = '' } = rule
    const earlier = rules.slice(0, at)
    if (claim !== '' && expression !== '') return [invalid(field, claim, BOTH)]
    if (claim === '' && expression === '') return [required(field, NEITHER)]
    if (claim !== '') {
      const isRepeated = earlier.some((one) => one.claim === claim && (one.expression ?? '') === '')
      return [
        ...(message === '' ? [] : [invalid(`${field}.message`, message, 'may not be specified when claim is set')]),
        ...(isRepeated ? [duplicate(`${field}.claim`, claim)] : []),
      ]
    }
    const value = `${field}.requiredValue`
    const place = `${field}.expression`
    return [
      ...(requiredValue === '' ? [] : [invalid(value, requiredValue, 'may not be specified when expression is set')]),
      ...(earlier.some((one) => one.expression === expression)
        ? [duplicate(place, expression)]
        : expressionErrors(place, compileClaimRule(expression))),
    ]
  })
}

const BOTH = "claim and expression can't both be set"
const NEITHER = 'claim or expression is required'

function mappingErrors(path: string, { username = {}, groups = {}, uid = {}, extra = [] }: Mappings): FieldError[] {
  const uidField = `${path}.uid`
  return [
    ...prefixedErrors(`${path}.username`, username, true),
    ...prefixedErrors(`${path}.groups`, groups, false),
    ...((uid.claim ?? '') !== '' && (uid.expression ?? '') !== ''
      ? [invalid(uidField, '', BOTH)]
      : (uid.expression ?? '') === ''
        ? []
        : expressionErrors(`${uidField}.expression`, compileClaimMapping(uid.expression ?? ''))),
    ...extra.flatMap(({ key = '', valueExpression = '' }, at) =>
      extraErrors(index(`${path}.extra`, at), { key, valueExpression }, extra.slice(0, at)),
    ),
  ]
}

const UNVERIFIED =
  'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression'

/** An address that the provider has not seen to be the user's may be anybody's. */
function emailErrors(field: string, { claimMappings = {}, claimValidationRules = [] }: JwtSettings): FieldError[] {
  const { username = {}, extra = [] } = claimMappings
  const { expression = '' } = username
  const selects = (source: string | undefined, claim: string): boolean =>
    source !== undefined &&
    source !== '' &&
    fit(compileClaimMapping(source)).some((one) => one.selects('claims', claim))
  if (!selects(expression, 'email')) return []
  const sources = [
    expression,
    ...extra.map((one) => one.valueExpression),
    ...claimValidationRules.map((one) => one.expression),
  ]
  return sources.some((source) => selects(source, 'email_verified')) ? [] : [invalid(field, expression, UNVERIFIED)]
}

function prefixedErrors(
  field: string,
  { claim = '', prefix, expression = '' }: Mapping,
  isNeeded: boolean,
): FieldError[] {
  if (claim !== '' && expression !== '') return [invalid(field, '', BOTH)]
  if (claim === '' && expression === '') return isNeeded ? [required(field, NEITHER)] : []
  if (expression !== '') {
    return [
      ...(prefix === undefined
        ? []
        : [invalid(`${field}.prefix`, prefix, 'may not be specified when expression is set')]),
      ...expressionErrors(`${field}.expression`, compileClaimMapping(expression)),
    ]
  }
  const needed = 'prefix is required when claim is set. It can be set to an empty string to disable prefixing'
  return prefix === undefined ? [required(`${field}.prefix`, needed)] : []
}

function extraErrors(
  path: string,
  { key, valueExpression }: { readonly key: string; readonly valueExpression: string },
  earlier: readonly { readonly key?: string }[],
): FieldError[] {
  const field = `${path}.key`
  const reserved = 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use'
  const errors = [
    ...validateDomainPrefixedPath(field, key),
    ...(key === key.toLowerCase() ? [] : [invalid(field, key, 'must be lowercase')]),
    ...(/^(?:[^/]*\.)?(?:kubernetes|k8s)\.io\//.test(key) ? [invalid(field, key, reserved)] : []),
  ]
  if (earlier.some((one) => one.key === key)) return [...errors, duplicate(field, key)]
  if (valueExpression === '') return [...errors, required(`${path}.valueExpression`)]
  return [...errors, ...expressionErrors(`${path}.valueExpression`, compileClaimMapping(valueExpression))]
}

function userRuleErrors(path: string, rules: readonly { readonly expression?: string }[]): FieldError[] {
  return rules.flatMap(({ expression = '' }, at) => {
    const field = `${index(path, at)}.expression`
    if (expression === '') return [required(field)]
    if (rules.slice(0, at).some((one) => one.expression === expression)) return [duplicate(field, expression)]
    return expressionErrors(field, compileUserRule(expression))
  })
}

/** Any will do, as long as the issuer has a key for it. */
const ALL_ALGORITHMS = ['RS', 'ES', 'PS'].flatMap((kind) => ['256', '384', '512'].map((bits) => kind + bits))

/** The issuers of settings that `parseAuthenticationConfig` let pass. */
export function jwtIssuers({ jwt }: AuthenticationSettings, clock: Clock): readonly JwtIssuer[] {
  return jwt.map((settings) => {
    const { issuer = {}, claimMappings = {}, claimValidationRules = [] } = settings
    const { url = '', discoveryURL = '', certificateAuthority: ca = '', audiences = [] } = issuer
    const client = createHttpClient({ clock, ...(ca !== '' && { tls: { ca } }) })
    return {
      fetchJson: createJsonFetcher(client),
      issuerUrl: url,
      ...(discoveryURL !== '' && { discoveryUrl: discoveryURL }),
      clientId: audiences[0] ?? '',
      audiences,
      ...mappedClaims(claimMappings),
      requiredClaims: Object.fromEntries(
        claimValidationRules.flatMap(({ claim = '', requiredValue = '' }) =>
          claim === '' ? [] : [[claim, requiredValue]],
        ),
      ),
      ...claimExpressions(settings),
      signingAlgs: ALL_ALGORITHMS,
    }
  })
}

function mappedClaims({ username = {}, groups = {}, uid = {} }: Mappings): Partial<JwtIssuer> {
  return {
    usernameClaim: username.claim ?? '',
    literalPrefix: username.prefix ?? '',
    groupsClaim: groups.claim ?? '',
    groupsPrefix: groups.prefix ?? '',
    uidClaim: uid.claim ?? '',
  }
}

/** Of settings that have passed; nothing when there are none. */
function claimExpressions(settings: JwtSettings): Pick<JwtIssuer, 'expressions'> {
  const { claimMappings = {}, claimValidationRules, userValidationRules } = settings
  const { username, groups, uid, extra = [] } = claimMappings
  const mapping = (source = ''): CompiledExpression[] => (source === '' ? [] : fit(compileClaimMapping(source)))
  const rules = (list: readonly ClaimRule[] = [], compile: typeof compileUserRule): readonly ExpressionRule[] =>
    list.flatMap(({ expression = '', message = '' }) =>
      expression === '' ? [] : fit(compile(expression)).map((one) => ({ expression: one, message })),
    )
  const expressions: ClaimExpressions = {
    username: mapping(username?.expression)[0],
    groups: mapping(groups?.expression)[0],
    uid: mapping(uid?.expression)[0],
    extra: extra.flatMap(({ key = '', valueExpression }) =>
      mapping(valueExpression).map((expression) => ({ key, expression })),
    ),
    claimRules: rules(claimValidationRules, compileClaimRule),
    userRules: rules(userValidationRules, compileUserRule),
  }
  return Object.values(expressions)
    .flat()
    .every((one) => one === undefined)
    ? {}
    : { expressions }
}
