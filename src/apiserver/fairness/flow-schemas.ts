/**
 * Assigns requests to priority levels by flow schema. Schemas are tried in order of precedence, then of name; the first
 * match counts.
 */
import type {
  FlowSchema,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  ResourcePolicyRule,
  Subject,
} from '#apis/flowcontrol/v1.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { HeaderList } from '#lib/http/exchange.ts'

import type { PriorityLevel } from './level.ts'
import type { FlowMeter } from './meters.ts'

/** A compiled schema. */
export interface Flow {
  readonly name: string
  readonly level: PriorityLevel
  readonly meter: FlowMeter
  /** The headers of every response. */
  readonly headers: HeaderList
  readonly matches: Matches
  /** The flow of a request. */
  readonly distinguish: (user: User, info: RequestInfo) => string
}

/** A stored schema, or a mandatory one that is missing. */
export type SchemaConfig = Pick<FlowSchema, 'metadata' | 'spec'>

type Matches = (user: User, info: RequestInfo) => boolean

export interface FlowParts {
  readonly levelNamed: (name: string) => PriorityLevel | undefined
  readonly meterOf: (level: string, schema: string) => FlowMeter
}

/** In matching order. A schema whose priority level is missing matches nothing. */
export function flowsOf(schemas: readonly SchemaConfig[], { levelNamed, meterOf }: FlowParts): Flow[] {
  return schemas.toSorted(byPrecedence).flatMap(({ metadata, spec }) => {
    const level = levelNamed(spec.priorityLevelConfiguration.name)
    if (level === undefined || level.isQuiescing) return []
    const name = metadata.name ?? ''
    const headers = [
      'X-Kubernetes-Pf-Flowschema-Uid',
      metadata.uid ?? '',
      'X-Kubernetes-Pf-Prioritylevel-Uid',
      level.config.metadata.uid ?? '',
    ]
    const matches = anyOf((spec.rules ?? []).map(ruleMatcher))
    const distinguish = distinguisherOf(spec.distinguisherMethod?.type)
    return [{ name, level, meter: meterOf(level.name, name), headers, matches, distinguish }]
  })
}

function distinguisherOf(method: string | undefined): Flow['distinguish'] {
  if (method === 'ByUser') return (user) => user.name
  return method === 'ByNamespace' ? (_user, info) => info.namespace : () => ''
}

function byPrecedence(a: SchemaConfig, b: SchemaConfig): number {
  const names = (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1
  return a.spec.matchingPrecedence - b.spec.matchingPrecedence || names
}

function ruleMatcher({ subjects, resourceRules, nonResourceRules }: PolicyRulesWithSubjects): Matches {
  const asks = anyOf(subjects.map(subjectMatcher))
  const resources = anyOf((resourceRules ?? []).map(resourceMatcher))
  const paths = anyOf((nonResourceRules ?? []).map(pathMatcher))
  return (user, info) => asks(user, info) && (info.isResource ? resources : paths)(user, info)
}

function subjectMatcher({ user: account, group, serviceAccount }: Subject): Matches {
  if (account !== undefined) return account.name === '*' ? always : ({ name }) => name === account.name
  if (group !== undefined) return group.name === '*' ? always : ({ groups }) => groups.includes(group.name)
  if (serviceAccount === undefined) return never
  const start = `system:serviceaccount:${serviceAccount.namespace}:`
  const name = start + serviceAccount.name
  return serviceAccount.name === '*' ? (user) => user.name.startsWith(start) : (user) => user.name === name
}

function resourceMatcher({ verbs, apiGroups, resources, clusterScope, namespaces }: ResourcePolicyRule): Matches {
  const hasVerb = memberOf(verbs)
  const hasGroup = memberOf(apiGroups)
  const hasResource = memberOf(resources)
  const hasNamespace = memberOf(namespaces ?? [])
  return (_user, { verb, group, resource, subresource, namespace }) =>
    hasVerb(verb) &&
    hasGroup(group) &&
    hasResource(subresource === '' ? resource : `${resource}/${subresource}`) &&
    (namespace === '' ? clusterScope === true : hasNamespace(namespace))
}

function pathMatcher({ verbs, nonResourceURLs }: NonResourcePolicyRule): Matches {
  const hasVerb = memberOf(verbs)
  const isOne = memberOf(nonResourceURLs)
  // Without an asterisk, a path also matches everything below it.
  const folders = nonResourceURLs.map((url) => url.replace(/\*$/, '').replace(/\/?$/, '/'))
  return (_user, { verb, path }) => hasVerb(verb) && (isOne(path) || folders.some((folder) => path.startsWith(folder)))
}

function memberOf(values: readonly string[]): (value: string) => boolean {
  if (values.includes('*')) return always
  const members = new Set(values)
  return (value) => members.has(value)
}

function anyOf(matchers: readonly Matches[]): Matches {
  const [only, ...others] = matchers
  if (only === undefined) return never
  return others.length === 0 ? only : (user, info) => matchers.some((matches) => matches(user, info))
}

const always = (): boolean => true
const never = (): boolean => false
