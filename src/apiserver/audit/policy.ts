/**
 * The audit policy: the audit level of each request. The first matching rule counts; a request without a matching rule
 * is not audited. Upstream's apiserver/pkg/audit/policy, v1.36.
 */
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import { trimEndOf } from '#lib/trim.ts'

export type Level = 'None' | 'Metadata' | 'Request' | 'RequestResponse'
export type Stage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete' | 'Panic'

/** In increasing order. */
export const LEVELS: readonly Level[] = ['None', 'Metadata', 'Request', 'RequestResponse']
export const STAGES: readonly Stage[] = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic']

export interface GroupResources {
  /** Empty: the core group; `*`: every group. */
  readonly group?: string
  /** `pods`, `pods/log`, `pods/*`, `*` + `/scale`, `*`; none: all of the group. */
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
}

export interface PolicyRule {
  readonly level: Level
  readonly users?: readonly string[]
  readonly userGroups?: readonly string[]
  readonly verbs?: readonly string[]
  readonly resources?: readonly GroupResources[]
  /** The empty string matches cluster-scoped resources. */
  readonly namespaces?: readonly string[]
  /** May end with a `*`. */
  readonly nonResourceURLs?: readonly string[]
  readonly omitStages?: readonly Stage[]
  /** Overrides the policy's own. */
  readonly omitManagedFields?: boolean
}

export interface Policy {
  readonly rules: readonly PolicyRule[]
  /** For all rules, in addition to their own. */
  readonly omitStages?: readonly Stage[]
  readonly omitManagedFields?: boolean
}

/** The result of the policy for one request. */
export interface AuditTerms {
  readonly level: Level
  readonly omitStages: ReadonlySet<Stage>
  readonly omitManagedFields: boolean
}

/** `user` is absent if authentication failed. */
export type EvaluatePolicy = (user: User | undefined, info: RequestInfo) => AuditTerms

export function createPolicyEvaluator({ rules, omitStages = [], omitManagedFields = false }: Policy): EvaluatePolicy {
  const compiled = rules.map((rule) => ({
    rule,
    terms: {
      level: rule.level,
      omitStages: new Set([...omitStages, ...(rule.omitStages ?? [])]),
      omitManagedFields: rule.omitManagedFields ?? omitManagedFields,
    },
  }))
  const nothing: AuditTerms = { level: 'None', omitStages: new Set(omitStages), omitManagedFields }
  return (user, info) => compiled.find(({ rule }) => matches(rule, user, info))?.terms ?? nothing
}

function matches(rule: PolicyRule, user: User | undefined, info: RequestInfo): boolean {
  if (!matchesUser(rule, user)) return false
  const { verbs = [], namespaces = [], resources = [], nonResourceURLs = [] } = rule
  if (verbs.length > 0 && !verbs.includes(info.verb)) return false
  if (namespaces.length > 0 || resources.length > 0) return matchesResource(namespaces, resources, info)
  if (nonResourceURLs.length === 0) return true
  return !info.isResource && nonResourceURLs.some((pattern) => matchesPath(pattern, info.path))
}

function matchesUser({ users = [], userGroups = [] }: PolicyRule, user: User | undefined): boolean {
  if (users.length > 0 && (user === undefined || !users.includes(user.name))) return false
  return userGroups.length === 0 || (user?.groups.some((group) => userGroups.includes(group)) ?? false)
}

function matchesPath(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true
  return pattern.endsWith('*') && path.startsWith(trimEndOf(pattern, '*'))
}

function matchesResource(
  namespaces: readonly string[],
  resources: readonly GroupResources[],
  info: RequestInfo,
): boolean {
  if (!info.isResource) return false
  if (namespaces.length > 0 && !namespaces.includes(info.namespace)) return false
  return resources.length === 0 || resources.some((one) => covers(one, info))
}

function covers({ group = '', resources = [], resourceNames = [] }: GroupResources, info: RequestInfo): boolean {
  if (group !== '*' && group !== info.group) return false
  if (resources.length === 0) return true
  if (resourceNames.length > 0 && !resourceNames.includes(info.name)) return false
  const { resource, subresource } = info
  const whole = subresource === '' ? resource : `${resource}/${subresource}`
  return resources.some(
    (pattern) =>
      pattern === '*' ||
      pattern === whole ||
      pattern === `${resource}/*` ||
      (subresource !== '' && pattern === `*/${subresource}`),
  )
}
