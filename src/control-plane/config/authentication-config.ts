/**
 * `--authentication-config`: an AuthenticationConfiguration with the accepted token issuers, their mapping to users,
 * and anonymous access. The file is reloaded when it changes; an invalid file then has no effect.
 */
import type { JwtIssuer } from '#auth/authenticators/index.ts'
import type { ClaimExpressions, ExpressionRule } from '#auth/credentials/claim-expressions.ts'
import { createJsonFetcher } from '#auth/credentials/provider-keys.ts'
import type { Clock } from '#lib/clock.ts'
import { compareText } from '#lib/go/text.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { defineConfig, readConfig } from '#meta/config-kind.ts'
import type { Given } from '#meta/config-rows.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath, verbatim } from '#meta/validation/field-path.ts'
import { validateDomainPrefixedPath } from '#meta/validation/rules.ts'
import { compileClaimMapping, compileClaimRule, compileUserRule } from '#model/expressions/claims.ts'
import { type CompiledExpression, expressionErrors, fit } from '#model/expressions/compile.ts'

const STRUCTS = {
  'v1.AuthenticationConfiguration': { jwt: '[]v1.JWTAuthenticator', anonymous: '*v1.AnonymousAuthConfig' },
  'v1.JWTAuthenticator': {
    issuer: 'v1.Issuer',
    claimValidationRules: '[]v1.ClaimValidationRule',
    claimMappings: 'v1.ClaimMappings',
    userValidationRules: '[]v1.UserValidationRule',
  },
  'v1.Issuer': {
    url: 'string',
    discoveryURL: '*string',
    certificateAuthority: 'string',
    audiences: '[]string',
    audienceMatchPolicy: 'string',
    egressSelectorType: 'string',
  },
  'v1.ClaimValidationRule': { claim: 'string', requiredValue: 'string', expression: 'string', message: 'string' },
  'v1.ClaimMappings': {
    username: 'v1.PrefixedClaimOrExpression',
    groups: 'v1.PrefixedClaimOrExpression',
    uid: 'v1.ClaimOrExpression',
    extra: '[]v1.ExtraMapping',
  },
  'v1.PrefixedClaimOrExpression': { claim: 'string', prefix: '*string', expression: 'string' },
  'v1.ClaimOrExpression': { claim: 'string', expression: 'string' },
  'v1.ExtraMapping': { key: 'string', valueExpression: 'string' },
  'v1.UserValidationRule': { expression: 'string', message: 'string' },
  'v1.AnonymousAuthConfig': { enabled: 'bool', conditions: '[]v1.AnonymousAuthCondition' },
  'v1.AnonymousAuthCondition': { path: 'string' },
} as const

const AUTHENTICATION = defineConfig(
  ['AuthenticationConfiguration', 'v1.AuthenticationConfiguration'],
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
  STRUCTS,
)

type Structs = typeof STRUCTS
type JwtSettings = Given<Structs, 'v1.JWTAuthenticator'>
type IssuerSettings = Given<Structs, 'v1.Issuer'>
type ClaimRule = Given<Structs, 'v1.ClaimValidationRule'>
type Mappings = Given<Structs, 'v1.ClaimMappings'>
type Mapping = Given<Structs, 'v1.PrefixedClaimOrExpression'>

export interface AuthenticationSettings {
  readonly jwt: readonly JwtSettings[]
  /** Absent: `--anonymous-auth` decides. */
  readonly anonymous?: { readonly enabled: boolean; readonly paths: readonly string[] }
}

/** Throws upstream's texts. Issuers of ServiceAccount tokens are not allowed. */
export function parseAuthenticationConfig(
  source: string,
  disallowedIssuers: readonly string[],
): AuthenticationSettings {
  const { value } = readConfig(source, [AUTHENTICATION], {
    mistaken: (kind) => `expected AuthenticationConfiguration, got *apiserver.${kind}`,
  })
  const { jwt = [], anonymous } = value as Given<Structs, 'v1.AuthenticationConfiguration'>
  const { enabled = false, conditions = [] } = anonymous ?? {}
  const paths = conditions.map(({ path = '' }) => path)
  const errors = [...issuersErrors(jwt, disallowedIssuers)]
  if (anonymous !== undefined && !enabled && paths.length > 0) {
    const shown = verbatim(JSON.stringify(paths.map((path) => ({ Path: path }))))
    errors.push(
      fieldPath('anonymous.conditions').invalid(shown, 'enabled should be set to true when conditions are defined'),
    )
  }
  if (errors.length > 0)
    throw new InvalidAuthentication(`invalid authentication configuration: ${aggregateText(errors)}`)
  return { jwt, ...(anonymous !== undefined && { anonymous: { enabled, paths } }) }
}

/** Parses and validates. */
export class InvalidAuthentication extends Error {
  override readonly name = 'InvalidAuthentication'
}

const MAX_ISSUERS = 64

function issuersErrors(jwt: readonly JwtSettings[], disallowed: readonly string[]): FieldError[] {
  if (jwt.length > MAX_ISSUERS) return [fieldPath('jwt').tooMany(jwt.length, MAX_ISSUERS)]
  return fieldPath('jwt').each(jwt, (path, one, at) => {
    const earlier = jwt.slice(0, at)
    const { url = '', discoveryURL = '' } = one.issuer ?? {}
    const isRepeated = earlier.some(({ issuer }) => (issuer?.url ?? '') === url)
    const isFoundTwice = discoveryURL !== '' && earlier.some(({ issuer }) => issuer?.discoveryURL === discoveryURL)
    return collectErrors(
      issuerErrors(path.child('issuer'), one.issuer ?? {}, disallowed),
      claimRuleErrors(path.child('claimValidationRules'), one.claimValidationRules ?? []),
      mappingErrors(path.child('claimMappings'), one.claimMappings ?? {}),
      emailErrors(path.child('claimMappings.username.expression'), one),
      userRuleErrors(path.child('userValidationRules'), one.userValidationRules ?? []),
      isRepeated && path.child('issuer.url').duplicate(url),
      isFoundTwice && path.child('issuer.discoveryURL').duplicate(discoveryURL),
    )
  })
}

function issuerErrors(path: FieldPath, issuer: IssuerSettings, disallowed: readonly string[]): FieldError[] {
  const { url = '', discoveryURL = '', certificateAuthority = '', egressSelectorType = '' } = issuer
  const withoutSlash = (address: string): string => address.replace(/\/+$/, '')
  const isSame = url !== '' && discoveryURL !== '' && withoutSlash(url) === withoutSlash(discoveryURL)
  const field = path.child('discoveryURL')
  return collectErrors(
    url === '' ? path.child('url').required() : urlErrors(path.child('url'), url, disallowed),
    isSame && field.invalid(discoveryURL, 'discoveryURL must be different from URL'),
    discoveryURL !== '' && urlErrors(field, discoveryURL, []),
    audienceErrors(path, issuer),
    authorityErrors(path.child('certificateAuthority'), certificateAuthority),
    egressErrors(path.child('egressSelectorType'), egressSelectorType),
  )
}

function urlErrors(path: FieldPath, url: string, disallowed: readonly string[]): FieldError[] {
  const overlap = `URL must not overlap with disallowed issuers: [${disallowed.toSorted(compareText).join(' ')}]`
  const errors = disallowed.includes(url) ? [path.invalid(url, overlap)] : []
  const complain = (isWrong: boolean, what: string): void => {
    if (isWrong) errors.push(path.invalid(url, what))
  }
  complain(!/^https:/i.test(url), 'URL scheme must be https')
  complain(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*@/i.test(url), 'URL must not contain a username or password')
  complain(/^[^#]*\?[^#]/.test(url), 'URL must not contain a query')
  complain(/#./.test(url), 'URL must not contain a fragment')
  return errors
}

function audienceErrors(
  path: FieldPath,
  { audiences = [], audienceMatchPolicy: policy = '' }: IssuerSettings,
): FieldError[] {
  const field = path.child('audiences')
  if (audiences.length === 0) return [field.required(`at least one ${field} is required`)]
  const many = 'audienceMatchPolicy must be MatchAny for multiple audiences'
  const one = 'audienceMatchPolicy must be empty or MatchAny for single audience'
  const isWrong = policy !== 'MatchAny' && (audiences.length > 1 || policy !== '')
  return collectErrors(
    field.each(audiences, (path, audience, at) =>
      collectErrors(audience === '' && path.required(), audiences.indexOf(audience) < at && path.duplicate(audience)),
    ),
    isWrong && path.child('audienceMatchPolicy').invalid(policy, audiences.length > 1 ? many : one),
  )
}

function authorityErrors(path: FieldPath, pem: string): FieldError[] {
  if (pem === '') return []
  const none = path.invalid('<omitted>', 'data does not contain any valid RSA or ECDSA certificates')
  try {
    return parseBundle(pem).length > 0 ? [] : [none]
  } catch {
    return [none]
  }
}

function egressErrors(path: FieldPath, type: string): FieldError[] {
  if (type === '') return []
  if (type !== 'controlplane' && type !== 'cluster') {
    return [path.invalid(type, 'egress selector must be either controlplane or cluster')]
  }
  return [path.invalid(type, 'egress selectors are not supported by this server: connections are made directly')]
}

function claimRuleErrors(path: FieldPath, rules: readonly ClaimRule[]): FieldError[] {
  return path.each(rules, (field, rule, at) => {
    const { claim = '', requiredValue = '', expression = '', message = '' } = rule
    const earlier = rules.slice(0, at)
    if (claim !== '' && expression !== '') return [field.invalid(claim, BOTH)]
    if (claim === '' && expression === '') return [field.required(NEITHER)]
    if (claim !== '') {
      const isRepeated = earlier.some((one) => one.claim === claim && (one.expression ?? '') === '')
      return collectErrors(
        message !== '' && field.child('message').invalid(message, 'may not be specified when claim is set'),
        isRepeated && field.child('claim').duplicate(claim),
      )
    }
    const value = field.child('requiredValue')
    const place = field.child('expression')
    return collectErrors(
      requiredValue !== '' && value.invalid(requiredValue, 'may not be specified when expression is set'),
      earlier.some((one) => one.expression === expression)
        ? place.duplicate(expression)
        : expressionErrors(place, compileClaimRule(expression)),
    )
  })
}

const BOTH = "claim and expression can't both be set"
const NEITHER = 'claim or expression is required'

function mappingErrors(path: FieldPath, { username = {}, groups = {}, uid = {}, extra = [] }: Mappings): FieldError[] {
  const uidField = path.child('uid')
  return collectErrors(
    prefixedErrors(path.child('username'), username, true),
    prefixedErrors(path.child('groups'), groups, false),
    (uid.claim ?? '') !== '' && (uid.expression ?? '') !== ''
      ? uidField.invalid('', BOTH)
      : (uid.expression ?? '') !== '' &&
          expressionErrors(uidField.child('expression'), compileClaimMapping(uid.expression ?? '')),
    path
      .child('extra')
      .each(extra, (path, { key = '', valueExpression = '' }, at) =>
        extraErrors(path, { key, valueExpression }, extra.slice(0, at)),
      ),
  )
}

const UNVERIFIED =
  'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression'

/** Without `email_verified` the address may belong to another person. */
function emailErrors(path: FieldPath, { claimMappings = {}, claimValidationRules = [] }: JwtSettings): FieldError[] {
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
  return sources.some((source) => selects(source, 'email_verified')) ? [] : [path.invalid(expression, UNVERIFIED)]
}

function prefixedErrors(
  path: FieldPath,
  { claim = '', prefix, expression = '' }: Mapping,
  isNeeded: boolean,
): FieldError[] {
  if (claim !== '' && expression !== '') return [path.invalid('', BOTH)]
  if (claim === '' && expression === '') return isNeeded ? [path.required(NEITHER)] : []
  if (expression !== '') {
    return collectErrors(
      prefix !== undefined && path.child('prefix').invalid(prefix, 'may not be specified when expression is set'),
      expressionErrors(path.child('expression'), compileClaimMapping(expression)),
    )
  }
  const needed = 'prefix is required when claim is set. It can be set to an empty string to disable prefixing'
  return prefix === undefined ? [path.child('prefix').required(needed)] : []
}

function extraErrors(
  path: FieldPath,
  { key, valueExpression }: { readonly key: string; readonly valueExpression: string },
  earlier: readonly { readonly key?: string }[],
): FieldError[] {
  const field = path.child('key')
  const reserved = 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use'
  const errors = collectErrors(
    validateDomainPrefixedPath(field, key),
    key !== key.toLowerCase() && field.invalid(key, 'must be lowercase'),
    /^(?:[^/]*\.)?(?:kubernetes|k8s)\.io\//.test(key) && field.invalid(key, reserved),
  )
  if (earlier.some((one) => one.key === key)) return [...errors, field.duplicate(key)]
  if (valueExpression === '') return [...errors, path.child('valueExpression').required()]
  return [...errors, ...expressionErrors(path.child('valueExpression'), compileClaimMapping(valueExpression))]
}

function userRuleErrors(path: FieldPath, rules: readonly { readonly expression?: string }[]): FieldError[] {
  return path.each(rules, (path, { expression = '' }, at) => {
    const field = path.child('expression')
    if (expression === '') return [field.required()]
    if (rules.slice(0, at).some((one) => one.expression === expression)) return [field.duplicate(expression)]
    return expressionErrors(field, compileUserRule(expression))
  })
}

/** Every algorithm for which the issuer has a key is accepted. */
const ALL_ALGORITHMS = ['RS', 'ES', 'PS'].flatMap((kind) => ['256', '384', '512'].map((bits) => kind + bits))

/** The issuers of settings that passed `parseAuthenticationConfig`. */
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

/** For settings that passed validation; empty if there are none. */
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
