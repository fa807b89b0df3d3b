/**
 * Flow classes: which flow schema a request belongs to, and so to which priority level. The schemas are asked in the
 * order of their precedence, then of their names; the first that matches counts. Clients learn both from headers.
 */
import {
  type FlowSchema,
  FlowSchemas,
  type NonResourcePolicyRule,
  type PolicyRulesWithSubjects,
  type PriorityLevelConfiguration,
  PriorityLevelConfigurations,
  type ResourcePolicyRule,
  type Subject,
} from '#apis/flowcontrol/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { HeaderList } from '#lib/http/exchange.ts'
import type { KubeObject } from '#meta/object.ts'

import { follow, type Following, joinFollowings } from '../authorizers/follow.ts'
import type { Registry } from '../registry/registry.ts'
import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'
import { isLongRunning } from './inflight.ts'

export type Classify = (user: User, info: RequestInfo) => FlowClass | undefined

export interface FlowClasses {
  /** Undefined for connections that are handed on, and while nothing matches. */
  readonly classify: Classify
  close(): void
}

/** Follows what is stored. Where flow control is not served, nothing has a class. */
export function followFlowClasses(registry: Pick<Registry, 'storeOf'>): FlowClasses {
  const schemas = new Map<string, FlowSchema>()
  const levels = new Map<string, PriorityLevelConfiguration>()
  /** Undefined when something has changed since. */
  let classes: readonly FlowClass[] | undefined
  const part = <T extends KubeObject>(kind: Kind<T>, known: Map<string, T>): Following[] => {
    const store = registry.storeOf(kind)
    if (store === undefined) return []
    const changed = (): void => void (classes = undefined)
    const set = (name: string, object: KubeObject): void => (known.set(name, object as T), changed())
    const remove = (name: string): void => (known.delete(name), changed())
    return [
      follow(store.collection, {
        set: ({ name, object }) => set(name, object),
        remove: ({ name }) => remove(name),
      }),
    ]
  }
  const following = joinFollowings([...part(FlowSchemas, schemas), ...part(PriorityLevelConfigurations, levels)])
  return {
    classify(user, info) {
      if (info.verb !== 'watch' && isLongRunning(info)) return undefined
      classes ??= flowClassesOf([...schemas.values()], levels)
      return classes.find(({ matches }) => matches(user, info))
    },
    close: () => following.close(),
  }
}

/** A schema, ready to be asked. */
export interface FlowClass {
  readonly name: string
  /** The name of its priority level. */
  readonly level: string
  /** Of every answer to somebody who is known. */
  readonly headers: HeaderList
  readonly matches: Matches
}

type Matches = (user: User, info: RequestInfo) => boolean

/** In the order in which they are asked. A schema whose priority level is missing matches nothing. */
export function flowClassesOf(
  schemas: readonly FlowSchema[],
  levels: ReadonlyMap<string, PriorityLevelConfiguration>,
): FlowClass[] {
  return schemas.toSorted(byPrecedence).flatMap(({ metadata, spec }) => {
    const level = levels.get(spec.priorityLevelConfiguration.name)
    if (level === undefined) return []
    const headers = [
      'X-Kubernetes-Pf-Flowschema-Uid',
      metadata.uid ?? '',
      'X-Kubernetes-Pf-Prioritylevel-Uid',
      level.metadata.uid ?? '',
    ]
    const names = { name: metadata.name ?? '', level: level.metadata.name ?? '' }
    return [{ ...names, headers, matches: anyOf((spec.rules ?? []).map(ruleMatcher)) }]
  })
}

function byPrecedence(a: FlowSchema, b: FlowSchema): number {
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
  return (_user, { verb, path }) =>
    hasVerb(verb) &&
    nonResourceURLs.some((url) => (url.endsWith('*') ? path.startsWith(url.slice(0, -1)) : path === url))
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
